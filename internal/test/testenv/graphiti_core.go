package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GraphitiCore is a running gateways/graphiti: graphiti-core itself over HTTP, on Neo4j.
type GraphitiCore struct {
	URL, Token string
	Neo4j      *Neo4j
	// Python is the interpreter that has graphiti-core, and Environment what a process needs to open the same graph
	// with the library.
	Python      string
	Environment []string
	Env         *Env

	dimensions int
}

// graphitiCoreToken is what the gateway of a test or a trial is asked with; it lives as long as the process.
const graphitiCoreToken = "live-test-gateway-token"

// startGraphitiLibrary installs graphiti-core with what the gateway and its tests need besides, and starts Neo4j: all
// but the gateway.
func (e *Env) startGraphitiLibrary(ctx context.Context) (*GraphitiCore, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	bin, err := e.python(ctx, "graphiti-gateway")
	if err != nil {
		return nil, err
	}
	db, err := e.startNeo4j(ctx, true)
	if err != nil {
		return nil, err
	}
	dimensions := e.endpoint.Dimensions
	if dimensions == 0 {
		dimensions = graphitiDimensions
	}
	return &GraphitiCore{Token: graphitiCoreToken, Neo4j: db, Python: filepath.Join(bin, "python"), Env: e,
		dimensions: dimensions, Environment: []string{
			"PYTHONPATH=" + filepath.Join(root, "gateways", "graphiti"), "GRAPHITI_TELEMETRY_ENABLED=false",
			"OPENAI_API_KEY=" + e.endpoint.APIKey, "OPENAI_BASE_URL=" + e.endpoint.BaseURL,
			"NEO4J_URI=" + db.URL, "NEO4J_USER=" + db.User, "NEO4J_PASSWORD=" + db.Password, "EMBEDDING_DIM=" +
				strconv.Itoa(dimensions), "GATEWAY_TOKEN=" + graphitiCoreToken,
		}}, nil
}

// StartGraphitiCore installs what is missing (the first time: 200 MB of Python packages, 130 MB of Neo4j, a minute and
// a half) and starts Neo4j and the gateway from this checkout (about 12 s, 900 MB of memory).
func (e *Env) StartGraphitiCore(ctx context.Context) (*GraphitiCore, error) {
	g, err := e.startGraphitiLibrary(ctx)
	if err != nil {
		return nil, err
	}
	port, err := e.servicePort(0)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "graphiti-core")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	g.URL = "http://127.0.0.1:" + strconv.Itoa(port)
	// The stub takes the library's own names of models.
	endpoint := func(more map[string]any) map[string]any {
		out := map[string]any{"base_url": e.endpoint.BaseURL, "api_key": map[string]any{"env": "OPENAI_API_KEY"}}
		if e.Stub == nil {
			maps.Copy(out, more)
		}
		return out
	}
	config := map[string]any{
		"listen": map[string]any{"port": port},
		"token":  map[string]any{"env": "GATEWAY_TOKEN"},
		"database": map[string]any{"uri": g.Neo4j.URL, "user": g.Neo4j.User,
			"password": map[string]any{"env": "NEO4J_PASSWORD"}},
		"llm":      endpoint(map[string]any{"model": e.endpoint.Model, "small_model": e.endpoint.Model, "api": "chat"}),
		"embedder": endpoint(map[string]any{"model": e.endpoint.EmbeddingModel, "dimensions": g.dimensions}),
		"reranker": endpoint(map[string]any{"model": e.endpoint.Model}),
		"types": map[string]any{
			"entity": map[string]any{"Person": map[string]any{"description": "A human being",
				"properties": map[string]any{"occupation": map[string]any{"type": "string",
					"description": "what they do for a living"}}}},
			"edge": map[string]any{"PREFERS": map[string]any{"description": "Somebody likes something better",
				"properties": map[string]any{"strength": map[string]any{"type": "string"}}}},
		},
		"queue": map[string]any{"path": filepath.Join(home, "jobs.sqlite")},
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "gateway.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	e.say("start the Graphiti gateway")
	p, err := e.start(command{name: "graphiti-gateway", dir: home, env: g.Environment,
		args: []string{g.Python, "-m", "graphiti_gateway.cli", "--config", file}})
	if err != nil {
		return nil, err
	}
	if err := e.ready(ctx, p, 60*time.Second, answers(g.URL+"/v1/ready", "Authorization",
		"Bearer "+g.Token)); err != nil {
		return nil, err
	}
	if err := e.searchOnce(ctx, p, g.URL+"/v1/groups/first-search/search", map[string]any{"query": "anything"},
		"Authorization", "Bearer "+g.Token); err != nil {
		return nil, err
	}
	e.say("the Graphiti gateway answers at %s", g.URL)
	return g, nil
}

// Backend is this gateway as memhost's configuration sees it: surface "core".
func (g *GraphitiCore) Backend() *Backend {
	return &Backend{Config: map[string]any{"surface": "core", "url": g.URL,
		"api_key": map[string]any{"secret": "graphiti_gateway"}},
		Secrets: map[string]Secret{"graphiti_gateway": {Variable: "GRAPHITI_GATEWAY_TOKEN", Value: g.Token,
			Origin: g.URL}}, Env: g.Env}
}

// TestGraphitiGateway runs the gateway's checks and tests: ruff, mypy, and pytest against a real Neo4j and the stub,
// with the gateway installed from the checkout, then the tests of the installation once more with the built wheel.
// Their output goes to out.
func (e *Env) TestGraphitiGateway(ctx context.Context, out func(string)) error {
	root, err := repository()
	if err != nil {
		return err
	}
	g, err := e.startGraphitiLibrary(ctx)
	if err != nil {
		return err
	}
	source := filepath.Join(root, "gateways", "graphiti")
	tool := func(name string, args ...string) error {
		e.say("%s", name)
		text, err := e.output(ctx, source, g.Environment, append([]string{g.Python, "-m"}, args...)...)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, text)
		}
		out(text)
		return nil
	}
	if err := tool("ruff", "ruff", "check", "--no-cache", "."); err != nil {
		return err
	}
	if err := tool("ruff format", "ruff", "format", "--no-cache", "--check", "."); err != nil {
		return err
	}
	if err := tool("mypy --strict", "mypy", "--cache-dir",
		filepath.Join(e.Cache, "mypy-graphiti-gateway")); err != nil {
		return err
	}
	wheels := filepath.Join(e.Dir, "wheels")
	// A copy, because setuptools builds inside the source folder.
	copied := filepath.Join(e.Dir, "gateway-source")
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return err
	}
	for _, install := range []struct {
		name, marks string
		build       []string
		from        func() (string, error)
	}{
		{"checkout", "", nil, func() (string, error) { return copied, nil }},
		{"wheel", "installation", []string{"pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
			"--disable-pip-version-check", "-w", wheels, copied}, func() (string, error) {
			found, err := filepath.Glob(filepath.Join(wheels, "memhost_gateway_graphiti-*.whl"))
			if err != nil || len(found) != 1 {
				return "", fmt.Errorf("no wheel in %s", wheels)
			}
			return found[0], nil
		}},
	} {
		if install.build != nil {
			if err := tool("build the wheel", install.build...); err != nil {
				return err
			}
		}
		what, err := install.from()
		if err != nil {
			return err
		}
		bin, err := e.overlay(ctx, g.Python, install.name, what)
		if err != nil {
			return err
		}
		e.say("pytest, installed from the %s", install.name)
		args := []string{filepath.Join(bin, "python"), "-m", "pytest", "-p", "no:cacheprovider", "--durations=8", "-s",
			"--no-header", "--tb=short"}
		if install.marks != "" {
			args = append(args, "-m", install.marks)
		}
		environment := append(without(g.Environment, "PYTHONPATH"), "PYTHONDONTWRITEBYTECODE=1",
			"GATEWAY_COMMAND="+filepath.Join(bin, "memhost-gateway-graphiti"),
			"GATEWAY_INSTALLED_FROM="+install.name, "STUB_URL="+e.stubURL())
		for _, name := range []string{"GATEWAY_CALLS", "GATEWAY_QUERIES", "FALKORDB_URI"} {
			if value := os.Getenv(name); value != "" {
				environment = append(environment, name+"="+value)
			}
		}
		text, err := e.output(ctx, filepath.Join(source, "tests"), environment, args...)
		out(text)
		if err != nil {
			return fmt.Errorf("pytest, installed from the %s: %w", install.name, err)
		}
	}
	return nil
}

// overlay makes an environment over the pinned packages of another interpreter, with one more project in it, and gives
// its bin folder.
func (e *Env) overlay(ctx context.Context, python, name, project string) (string, error) {
	dir := filepath.Join(e.Dir, "installed-"+name)
	if err := e.run(ctx, command{name: "overlay", args: []string{python, "-m", "venv", "--without-pip",
		dir}}); err != nil {
		return "", err
	}
	site, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if err != nil || len(site) != 1 {
		return "", fmt.Errorf("no site-packages in %s", dir)
	}
	pinned := filepath.Join(filepath.Dir(filepath.Dir(python)), strings.TrimPrefix(site[0], dir))
	if err := os.WriteFile(filepath.Join(site[0], "pinned.pth"), []byte(pinned+"\n"), 0o644); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "bin")
	args := []string{python, "-m", "pip", "--python", filepath.Join(bin, "python"), "install", "-q", "--no-deps",
		"--no-build-isolation", "--disable-pip-version-check"}
	if !strings.HasSuffix(project, ".whl") {
		args = append(args, "-e")
	}
	return bin, e.run(ctx, command{name: "overlay", args: append(args, project)})
}

// output runs a tool that ends by itself in a clean environment and gives what it wrote.
func (e *Env) output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(cleanEnvironment(e.Dir), env...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func (e *Env) stubURL() string { return strings.TrimSuffix(e.endpoint.BaseURL, "/v1") }

// without leaves out a variable.
func without(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
