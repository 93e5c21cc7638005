package testenv

import (
	"context"
	_ "embed" // the launcher
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// memosLauncher starts MemOS's published server, after changing what has no environment variable.
//
//go:embed memos_launcher.py
var memosLauncher []byte

// MemOS is a running MemOS server on Neo4j, with Redis.
type MemOS struct {
	URL string
	// Graph is neo4j, or neo4j-community (with vectors in an embedded Qdrant).
	Graph string
	Neo4j *Neo4j
	Env   *Env
}

// memosDimensions is the length of the stub's embeddings for MemOS; its index is created with it.
const memosDimensions = 384

// StartMemOS installs what is missing (the first time: 900 MB of Python packages, 130 MB of Neo4j, two minutes) and
// starts Neo4j, Redis and MemOS (about 12 s, 1.1 GB of memory). graph is "neo4j" or "neo4j-community".
func (e *Env) StartMemOS(ctx context.Context, graph string) (*MemOS, error) {
	if graph != "neo4j" && graph != "neo4j-community" {
		return nil, fmt.Errorf("graph %q: want neo4j or neo4j-community", graph)
	}
	bin, err := e.python(ctx, "memos")
	if err != nil {
		return nil, err
	}
	db, err := e.startNeo4j(ctx, false)
	if err != nil {
		return nil, err
	}
	redis, err := e.startRedis(ctx)
	if err != nil {
		return nil, err
	}
	port, err := e.servicePort(0)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "memos")
	launcher := filepath.Join(home, "launch.py")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "qdrant"), 0o755),
		os.WriteFile(launcher, memosLauncher, 0o644)); err != nil {
		return nil, err
	}
	dimensions := e.endpoint.Dimensions
	if dimensions == 0 {
		dimensions = memosDimensions
	}
	env := memosEnvironment(home, db, redis, e.endpoint, dimensions)
	env = append(env, "GRAPH_DB_BACKEND="+graph, "NEO4J_BACKEND="+graph)
	if graph == "neo4j-community" {
		env = append(env, "LAUNCH_QDRANT_PATH="+filepath.Join(home, "qdrant"))
	}
	m := &MemOS{URL: "http://127.0.0.1:" + strconv.Itoa(port), Graph: graph, Neo4j: db, Env: e}
	e.say("start MemOS on %s", graph)
	p, err := e.start(command{name: "memos", dir: home, env: env, patience: 30 * time.Second,
		args: []string{filepath.Join(bin, "python"), launcher, strconv.Itoa(port)}})
	if err != nil {
		return nil, err
	}
	if err := e.ready(ctx, p, 180*time.Second, answers(m.URL+"/health")); err != nil {
		return nil, err
	}
	if err := e.searchOnce(ctx, p, m.URL+"/product/search", map[string]any{"user_id": "first-search",
		"readable_cube_ids": []string{"first-search"}, "query": "anything", "mode": "fast"}); err != nil {
		return nil, err
	}
	e.say("MemOS answers at %s", m.URL)
	return m, nil
}

// memosEnvironment are MemOS's settings: one general model, one memory reader, one embedder, all at one endpoint.
func memosEnvironment(home string, db *Neo4j, redis int, endpoint Endpoint, dimensions int) []string {
	return []string{
		"NEO4J_URI=" + db.URL, "NEO4J_USER=neo4j", "NEO4J_PASSWORD=unused", "NEO4J_DB_NAME=neo4j",
		"MOS_NEO4J_SHARED_DB=true",
		"EMBEDDING_DIMENSION=" + strconv.Itoa(dimensions),
		"MOS_EMBEDDER_BACKEND=universal_api", "MOS_EMBEDDER_PROVIDER=openai", "MOS_EMBEDDER_API_BASE=" +
			endpoint.BaseURL, "MOS_EMBEDDER_API_KEY=" + endpoint.APIKey,
		"MOS_EMBEDDER_MODEL=" + endpoint.EmbeddingModel,
		// A model whose name begins with qwen is taken to these.
		"QWEN_API_BASE=" + endpoint.BaseURL, "QWEN_API_KEY=" + endpoint.APIKey,
		"OPENAI_API_BASE=" + endpoint.BaseURL, "OPENAI_BASE_URL=" + endpoint.BaseURL, "OPENAI_API_KEY=" +
			endpoint.APIKey, "MOS_CHAT_MODEL=" + endpoint.Model,
		"MEMRADER_API_BASE=" + endpoint.BaseURL, "MEMRADER_API_KEY=" + endpoint.APIKey, "MEMRADER_MODEL=" +
			endpoint.Model,
		"MOS_RERANKER_BACKEND=cosine_local", "MOS_FEEDBACK_RERANKER_BACKEND=cosine_local",
		"MEMSCHEDULER_USE_REDIS_QUEUE=true", "MEMSCHEDULER_REDIS_HOST=127.0.0.1", "MEMSCHEDULER_REDIS_PORT=" +
			strconv.Itoa(redis), "MEMSCHEDULER_REDIS_DB=0",
		"API_SCHEDULER_ON=true", "ENABLE_PREFERENCE_MEMORY=true", "ENABLE_INTERNET=false", "ENABLE_CHAT_API=false",
		"MOS_ENABLE_REORGANIZE=false", "MEM_READER_BACKEND=multimodal_struct",
		"MEMOS_BASE_PATH=" + home, "HOME=" + home, "SKILLS_LOCAL_TMP_DIR=" + filepath.Join(home, "skills-tmp"),
		"SKILLS_LOCAL_DIR=" + filepath.Join(home, "skills"),
		"LANGSMITH_TRACING=false", "OTEL_SDK_DISABLED=true",
	}
}

// Backend is this server as memhost's configuration sees it, with the provider's own defaults for the rest.
func (m *MemOS) Backend() *Backend {
	return &Backend{Config: map[string]any{"url": m.URL, "graph_store": m.Graph}, Env: m.Env}
}
