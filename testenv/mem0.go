package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Mem0 is a running mem0: the published library behind gateways/mem0, on PostgreSQL with pgvector.
type Mem0 struct {
	URL string
	// Key is the admin key.
	Key string
	// Python is the interpreter that has mem0ai, and Environment what a process needs to open the same store with the library.
	Python      string
	Environment []string
	Env         *Env
}

// StartMem0 installs what is missing (the first time: 320 MB, half a minute) and starts PostgreSQL and the gateway (about 4 s, 350 MB of memory). Other pins,
// such as "mem0ai==2.0.18", take the place of the usual ones.
func (e *Env) StartMem0(ctx context.Context, pins ...string) (*Mem0, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	bin, err := e.python(ctx, "mem0", pins...)
	if err != nil {
		return nil, err
	}
	db, err := e.startPostgres(ctx, bin)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "mem0")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	m := &Mem0{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Key: "live-test-admin-key", Python: filepath.Join(bin, "python"), Env: e}
	m.Environment = []string{
		"PYTHONPATH=" + filepath.Join(root, "gateways", "mem0"),
		"POSTGRES_HOST=127.0.0.1", "POSTGRES_PORT=" + strconv.Itoa(db.port), "POSTGRES_PASSWORD=" + db.password, "POSTGRES_HNSW=false",
		"HISTORY_DB_PATH=" + filepath.Join(home, "history.db"), "MEM0_DIR=" + filepath.Join(home, "mem0"), "MEM0_TELEMETRY=false",
		"ADMIN_API_KEY=" + m.Key, "OPENAI_API_KEY=" + e.endpoint.APIKey, "OPENAI_BASE_URL=" + e.endpoint.BaseURL,
	}
	if e.Stub == nil { // the stub takes the defaults' names
		m.Environment = append(m.Environment, "MEM0_DEFAULT_LLM_MODEL="+e.endpoint.Model, "MEM0_DEFAULT_EMBEDDER_MODEL="+e.endpoint.EmbeddingModel)
		if e.endpoint.Dimensions > 0 {
			m.Environment = append(m.Environment, "EMBEDDING_DIMENSIONS="+strconv.Itoa(e.endpoint.Dimensions))
		}
	}
	e.say("start the mem0 gateway")
	p, err := e.start(command{name: "mem0", dir: home, env: m.Environment, args: []string{filepath.Join(bin, "uvicorn"), "--factory", "mem0_gateway.app:create",
		"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--no-access-log"}})
	if err != nil {
		return nil, err
	}
	if err := e.ready(ctx, p, 60*time.Second, answers(m.URL+"/auth/setup-status")); err != nil {
		return nil, err
	}
	// The first use creates the table; parallel first writes would race for it.
	if err := answers(m.URL+"/memories?user_id=probe&top_k=1", "X-API-Key", m.Key)(ctx); err != nil {
		return nil, err
	}
	e.say("mem0 answers at %s", m.URL)
	return m, nil
}

// Backend is this server as memhost's configuration sees it.
func (m *Mem0) Backend() *Backend {
	return &Backend{Config: map[string]any{"url": m.URL, "api_key": map[string]any{"secret": "mem0"}},
		Secrets: map[string]Secret{"mem0": {Variable: "MEM0_KEY", Value: m.Key, Origin: m.URL}}, Env: m.Env}
}
