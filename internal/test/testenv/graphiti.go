package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Graphiti is a running Graphiti: its REST service and its MCP server on one Neo4j.
type Graphiti struct {
	// REST is the base URL of the REST service, MCP that of the MCP server, without /mcp.
	REST, MCP string
	Neo4j     *Neo4j
	// Python is the interpreter that has graphiti-core, and Environment what a process needs to open the same graph
	// with the library.
	Python      string
	Environment []string
	Env         *Env

	source string // the unpacked sdist
	bin    string
	rest   *process
}

// graphitiDimensions is the length of embeddings that both servers are configured to use: with equal ones they can
// share a database.
const graphitiDimensions = 1024

// graphitiConfig is the MCP server's configuration: its own defaults but for the addresses, and no entity types.
const graphitiConfig = `server: {transport: "http", host: "127.0.0.1", port: %d}
llm:
  provider: "openai"
  model: %q
  providers:
    openai: {api_key: %q, api_url: %q}
embedder:
  provider: "openai"
  model: %q
  dimensions: %d
  providers:
    openai: {api_key: %q, api_url: %q}
database:
  provider: "neo4j"
  providers:
    neo4j: {uri: %q, username: %q, password: %q, database: "neo4j", use_parallel_runtime: false}
graphiti:
  group_id: "main"
  user_id: "mcp_user"
  entity_types: []
`

// graphitiSource unpacks the sdist of graphiti-core, which carries both servers.
func (e *Env) graphitiSource(ctx context.Context, bin string) (string, error) {
	version, err := pinned("graphiti", "graphiti-core")
	if err != nil {
		return "", err
	}
	dir, err := e.installed("graphiti-servers-"+version, "sdist graphiti-core "+version,
		func(dir string) error {
			e.say("fetch the sdist of graphiti-core %s, which carries its servers, into %s (once)", version, dir)
			err := e.run(ctx, command{name: "pip-graphiti", args: []string{filepath.Join(bin, "pip"), "download",
				"--progress-bar", "off", "--disable-pip-version-check", "--no-binary", "graphiti-core", "--no-deps",
				"-d", dir, "graphiti-core==" + version}})
			if err != nil {
				return err
			}
			archives, err := filepath.Glob(filepath.Join(dir, "graphiti_core-*.tar.gz"))
			if err != nil || len(archives) != 1 {
				return fmt.Errorf("no sdist of graphiti-core in %s", dir)
			}
			tar, err := exec.LookPath("tar")
			if err != nil {
				return err
			}
			return e.run(ctx, command{name: "pip-graphiti", args: []string{tar, "-xzf", archives[0], "-C", dir,
				"--strip-components=1"}})
		})
	if err != nil {
		return "", err
	}
	for _, part := range []string{"server/graph_service/main.py", "mcp_server/main.py"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return "", fmt.Errorf("the sdist of graphiti-core %s has no %s", version, part)
		}
	}
	return dir, nil
}

// StartGraphiti installs what is missing (the first time: 200 MB of Python packages, 130 MB of Neo4j, a minute and a
// half) and starts Neo4j and both servers (about 15 s, 1.1 GB of memory).
func (e *Env) StartGraphiti(ctx context.Context) (*Graphiti, error) {
	bin, err := e.python(ctx, "graphiti")
	if err != nil {
		return nil, err
	}
	source, err := e.graphitiSource(ctx, bin)
	if err != nil {
		return nil, err
	}
	db, err := e.startNeo4j(ctx, true)
	if err != nil {
		return nil, err
	}
	restPort, err1 := e.servicePort(0)
	mcpPort, err2 := e.servicePort(1)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "graphiti")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	g := &Graphiti{REST: "http://127.0.0.1:" + strconv.Itoa(restPort), MCP: "http://127.0.0.1:" +
		strconv.Itoa(mcpPort), Neo4j: db,
		Python: filepath.Join(bin, "python"), Env: e, source: source, bin: bin}
	dimensions := e.endpoint.Dimensions
	if dimensions == 0 {
		dimensions = graphitiDimensions
	}
	g.Environment = []string{"GRAPHITI_TELEMETRY_ENABLED=false", "OPENAI_API_KEY=" +
		e.endpoint.APIKey, "OPENAI_BASE_URL=" + e.endpoint.BaseURL, "OPENAI_API_URL=" + e.endpoint.BaseURL,
		"NEO4J_URI=" + db.URL, "NEO4J_USER=" + db.User, "NEO4J_PASSWORD=" + db.Password, "DB_BACKEND=neo4j",
		"EMBEDDING_DIM=" + strconv.Itoa(dimensions)}
	model, embedding := "gpt-5.5", "text-embedding-3-small" // the servers' own defaults; the stub takes them
	if e.Stub == nil {
		model, embedding = e.endpoint.Model, e.endpoint.EmbeddingModel
		g.Environment = append(g.Environment, "MODEL_NAME="+model, "EMBEDDING_MODEL_NAME="+embedding)
	}
	config := filepath.Join(home, "mcp.yaml")
	text := fmt.Sprintf(graphitiConfig, mcpPort, model, e.endpoint.APIKey, e.endpoint.BaseURL, embedding, dimensions,
		e.endpoint.APIKey, e.endpoint.BaseURL, db.URL, db.User, db.Password)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// One after the other: both create the database's indexes at their start.
	if err := g.StartREST(ctx); err != nil {
		return nil, err
	}
	e.say("start Graphiti's MCP server")
	p, err := e.start(command{name: "graphiti-mcp", dir: filepath.Join(source, "mcp_server"), env: g.Environment,
		args: []string{g.Python, "main.py", "--transport", "http", "--host", "127.0.0.1",
			"--port", strconv.Itoa(mcpPort), "--database-provider", "neo4j", "--config", config}})
	if err != nil {
		return nil, err
	}
	if err := e.ready(ctx, p, 90*time.Second, answers(g.MCP+"/health")); err != nil {
		return nil, err
	}
	e.say("Graphiti answers at %s (REST) and %s (MCP)", g.REST, g.MCP)
	return g, nil
}

// StartREST starts the REST service. If it is already running it is started again: its worker ends at the first error,
// and only a new process has another one.
func (g *Graphiti) StartREST(ctx context.Context) error {
	if g.rest != nil {
		if err := g.rest.end(0, 15*time.Second); err != nil {
			return err
		}
	}
	g.Env.say("start Graphiti's REST service")
	_, port, _ := strings.Cut(strings.TrimPrefix(g.REST, "http://"), ":")
	var err error
	g.rest, err = g.Env.start(command{name: "graphiti-rest", dir: filepath.Join(g.source, "server"), env: g.Environment,
		args: []string{g.Python, "-m", "uvicorn", "graph_service.main:app",
			"--host", "127.0.0.1", "--port", port, "--no-access-log"}})
	if err != nil {
		return err
	}
	if err := g.Env.ready(ctx, g.rest, 90*time.Second, answers(g.REST+"/healthcheck")); err != nil {
		return err
	}
	return g.Env.searchOnce(ctx, g.rest, g.REST+"/search",
		map[string]any{"query": "anything", "group_ids": []string{"first-search"}})
}

// Backend is this server as memhost's configuration sees it: surface "rest" or "mcp", with Bolt or without.
func (g *Graphiti) Backend(surface string, bolt bool) *Backend {
	b := &Backend{Config: map[string]any{"surface": surface, "url": g.REST}, Secrets: map[string]Secret{}, Env: g.Env}
	if surface == "mcp" {
		b.Config["url"] = g.MCP
	}
	if bolt {
		b.Config["bolt"], b.Config["bolt_password"] = g.Neo4j.URL, map[string]any{"secret": "neo4j"}
		b.Secrets["neo4j"] = Secret{Variable: "NEO4J_PASSWORD", Value: g.Neo4j.Password, Origin: g.Neo4j.URL}
	}
	return b
}
