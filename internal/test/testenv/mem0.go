package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Mem0 is a running mem0: the published library behind gateways/mem0, on PostgreSQL with pgvector.
type Mem0 struct {
	URL string
	// Key is the admin key.
	Key string
	// Config is the gateway's configuration file.
	Config string
	// Python is the interpreter that has mem0ai, and Environment what a process needs to open the same store with the
	// library.
	Python      string
	Environment []string
	// Database is the address of the store.
	Database string
	Env      *Env

	gateway *process
}

// mem0Config is a configuration of gateways/mem0, on the given PostgreSQL, with the stub or the user's endpoint for
// model, embedder and reranker.
func (e *Env) mem0Config(db *postgres, port int, key, data string) map[string]any {
	account := map[string]any{"api_key": e.endpoint.APIKey, "openai_base_url": e.endpoint.BaseURL}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(account)
		maps.Copy(out, more)
		return out
	}
	chat, embedding, dimensions := "gpt-5-mini", "text-embedding-3-small", 1536 // the stub takes any name
	if e.Stub == nil {
		chat, embedding = e.endpoint.Model, e.endpoint.EmbeddingModel
		if e.endpoint.Dimensions > 0 {
			dimensions = e.endpoint.Dimensions
		}
	}
	embedder := map[string]any{"model": embedding}
	if dimensions != 1536 {
		embedder["embedding_dims"] = dimensions
	}
	return map[string]any{
		"listen": fmt.Sprintf("127.0.0.1:%d", port), "key": key, "data": data,
		"mem0": map[string]any{
			"vector_store": map[string]any{"provider": "pgvector",
				"config": map[string]any{"host": "127.0.0.1", "port": db.port, "dbname": "postgres", "user": "postgres",
					"password": db.password, "collection_name": "memories", "hnsw": false,
					"embedding_model_dims": dimensions}},
			"llm": map[string]any{"provider": "openai",
				"config": with(map[string]any{"model": chat, "temperature": 0.2})},
			"embedder": map[string]any{"provider": "openai", "config": with(embedder)},
			"reranker": map[string]any{"provider": "llm_reranker",
				"config": map[string]any{"llm": map[string]any{"provider": "openai",
					"config": with(map[string]any{"model": chat})}}},
		},
	}
}

// StartMem0 installs what is missing (the first time: 380 MB, half a minute) and starts PostgreSQL and the gateway
// (about 4 s, 350 MB of memory). Other pins, such as "mem0ai==2.0.18", take the place of the usual ones.
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
	port, err := e.servicePort(0)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "mem0")
	m := &Mem0{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Key: "live-test-admin-key",
		Config: filepath.Join(home, "gateway.yaml"), Python: filepath.Join(bin, "python"), Env: e}
	text, err := json.MarshalIndent(e.mem0Config(db, port, m.Key, filepath.Join(home, "data")), "", "  ")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(m.Config, text, 0o600)); err != nil {
		return nil, err
	}
	m.Environment = []string{"PYTHONPATH=" + filepath.Join(root, "gateways", "mem0"), "GATEWAY_CONFIG=" + m.Config,
		"MEM0_TELEMETRY=false"}
	m.Database = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres", db.password, db.port)
	return m, m.serve(ctx)
}

// serve starts the gateway and waits until it answers.
func (m *Mem0) serve(ctx context.Context) (err error) {
	e := m.Env
	e.say("start the mem0 gateway")
	m.gateway, err = e.start(command{name: "mem0", dir: filepath.Dir(m.Config), env: m.Environment,
		args: []string{m.Python, "-m", "mem0_gateway", "--config", m.Config}})
	if err != nil {
		return err
	}
	if err := e.ready(ctx, m.gateway, 3*time.Minute, answers(m.URL+"/auth/setup-status")); err != nil {
		return err
	}
	e.say("mem0 answers at %s", m.URL)
	return nil
}

// Restart kills the gateway with -9 and starts it again. The store keeps running.
func (m *Mem0) Restart(ctx context.Context) error {
	if err := m.gateway.end(syscall.SIGKILL, 15*time.Second); err != nil {
		return err
	}
	return m.serve(ctx)
}

// Backend is this server as memhost's configuration sees it.
func (m *Mem0) Backend() *Backend {
	return &Backend{Config: map[string]any{"url": m.URL, "api_key": map[string]any{"secret": "mem0"}},
		Secrets: map[string]Secret{"mem0": {Variable: "MEM0_KEY", Value: m.Key, Origin: m.URL}}, Env: m.Env}
}
