package mem0

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of an OSS server. The zero value takes any key and has an HNSW index, as a fresh server with AUTH_DISABLED.
type Options struct {
	// AdminKey is the ADMIN_API_KEY; "" allows every caller.
	AdminKey string
	// Bearer maps JWTs to roles: admin or user.
	Bearer map[string]string
	// Keys are per-user keys of an admin.
	Keys []string
	// Store is the vector store that GET /configure names, pgvector if empty; Exact is its hnsw: false.
	Store string
	Exact bool
	// Rerank lists a field rerank in the OpenAPI document.
	Rerank bool
	// Gateway makes it memhost's gateway over mem0ai, with what that has beyond mem0's own server.
	Gateway *Gateway
	// Now is the server's clock; nil is a fixed one that advances by a millisecond a reading.
	Now func() time.Time
}

// OSS is the self-hosted server. New makes one.
type OSS struct {
	options Options

	mu      sync.Mutex
	faults  Faults
	rows    []*row
	history map[string][]map[string]any
	buffer  map[string][]map[string]any // a scope's last messages
	ticks   int
	ids     int
	touched bool
	config  map[string]any
	broken  bool // a bad configuration was posted: every later one fails too
	calls   []string
}

// New makes a server.
func New(o Options) *OSS {
	s := &OSS{options: o, history: map[string][]map[string]any{}, buffer: map[string][]map[string]any{}}
	store := o.Store
	if store == "" {
		store = "pgvector"
	}
	vectors := map[string]any{"host": "127.0.0.1", "port": 5432, "dbname": "postgres", "user": "postgres",
		"password": "[redacted]", "collection_name": "memories"}
	if o.Exact {
		vectors["hnsw"] = false
	}
	s.config = map[string]any{"version": "v1.1", "vector_store": map[string]any{"provider": store, "config": vectors},
		"llm": map[string]any{"provider": "openai",
			"config": map[string]any{"api_key": "[redacted]", "temperature": 0.2, "model": "gpt-5-mini"}},
		"embedder": map[string]any{"provider": "openai",
			"config": map[string]any{"api_key": "[redacted]", "model": "text-embedding-3-small"}},
		"history_db_path": "history.db"}
	return s
}

// Set changes what the server does wrong.
func (s *OSS) Set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Calls lists the requests so far, "POST /search", without parameters.
func (s *OSS) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Forget empties the list of requests.
func (s *OSS) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// LoseData empties the server, as a restart without its volumes does.
func (s *OSS) LoseData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.history, s.buffer = nil, map[string][]map[string]any{}, map[string][]map[string]any{}
}

// Texts returns the texts of a run's rows, or of all runs for "", in the order of their arrival.
func (s *OSS) Texts(run string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var texts []string
	for _, r := range s.rows {
		if run == "" || r.run == run {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// Rows are all rows as a list shows them.
func (s *OSS) Rows() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []map[string]any
	for _, r := range s.rows {
		items = append(items, r.item(nil))
	}
	return items
}

// problem is an answer that is not a success.
type problem struct {
	status int
	body   any // a string is plain text
	header map[string]string
}

func (p *problem) Error() string { return fmt.Sprint(p.status, p.body) }

func refuse(status int, detail any) *problem {
	return &problem{status: status, body: map[string]any{"detail": detail}}
}

var words502 = map[string]string{
	"provider_auth_failed": "Provider rejected the request (authentication). Check your LLM provider API key on the " +
		"Configuration page.",
	"provider_rate_limited":    "Provider rate limit hit. Retry shortly.",
	"provider_timeout":         "Provider timed out. Retry shortly.",
	"provider_unavailable":     "Provider is unreachable or returned a server error.",
	"provider_bad_request":     "Provider rejected the request as malformed.",
	"datastore_unavailable":    "The memory database is unreachable.",
	"vector_store_unavailable": "The vector store is unreachable.",
	"unknown":                  "Upstream provider error.",
}

func upstream(code string) *problem {
	return &problem{status: 502, body: map[string]any{"detail": words502[code], "code": code, "request_id": "1a2b3c4d"},
		header: map[string]string{"X-Request-ID": "1a2b3c4d"}}
}

// ServeHTTP implements http.Handler.
func (s *OSS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	before := s.faults.Before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	answer, err := s.answer(r, body)
	status := 200
	var p *problem
	if errors.As(err, &p) {
		status, answer = p.status, p.body
		for name, value := range p.header {
			w.Header().Set(name, value)
		}
	}
	if text, ok := answer.(string); ok && err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// answer routes a request. Adds run outside the lock while the LLM works.
func (s *OSS) answer(r *http.Request, body []byte) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	one := len(parts) > 1 && parts[0] == "memories" && parts[1] != ""
	open := map[string]func() (any, error){
		"GET /auth/setup-status": func() (any, error) {
			if s.faults.Database != "" {
				return nil, &problem{status: 500, body: "Internal Server Error"}
			}
			return map[string]any{"needsSetup": s.options.AdminKey != "" || s.options.Bearer == nil}, nil
		},
		"GET /openapi.json": func() (any, error) { return s.openAPI(), nil },
	}
	if handle := open[r.Method+" "+r.URL.Path]; handle != nil {
		return handle()
	}
	routes := map[string]func() (any, error){
		"GET /configure/providers": func() (any, error) {
			return map[string]any{"llm": []string{"openai", "anthropic", "gemini"},
				"embedder": []string{"openai", "gemini"}}, nil
		},
		"GET /configure":              func() (any, error) { return s.config, nil },
		"POST /configure":             func() (any, error) { return s.configure(r, body) },
		"POST /generate-instructions": func() (any, error) { return generated(), nil },
		"POST /memories":              func() (any, error) { return s.add(body) },
		"POST /search":                func() (any, error) { return s.search(body) },
		"GET /memories":               func() (any, error) { return s.list(r) },
		"DELETE /memories":            func() (any, error) { return s.deleteScope(r) },
		"GET /entities":               func() (any, error) { return s.entities(), nil },
		"POST /reset":                 func() (any, error) { return s.reset(r) },
	}
	handle := routes[r.Method+" "+r.URL.EscapedPath()]
	if more := s.gatewayRoutes(r, body)[r.Method+" "+r.URL.EscapedPath()]; more != nil {
		handle = more
	}
	switch {
	case handle != nil:
	case one && len(parts) == 2:
		handle = map[string]func() (any, error){
			"GET": func() (any, error) { return s.get(parts[1]) }, "PUT": func() (any, error) {
				return s.update(parts[1], body)
			},
			"DELETE": func() (any, error) { return s.delete(parts[1]) },
		}[r.Method]
	case one && len(parts) == 3 && parts[2] == "history" && r.Method == http.MethodGet:
		handle = func() (any, error) { return s.historyOf(parts[1]), nil }
	case len(parts) == 3 && parts[0] == "entities" && r.Method == http.MethodDelete &&
		!strings.Contains(parts[2], "%2F"):
		handle = func() (any, error) { return s.deleteEntity(r, parts[1], parts[2]) }
	}
	if handle == nil {
		if slices.Contains([]string{"/memories", "/search", "/configure", "/reset", "/entities"}, r.URL.Path) {
			return nil, refuse(405, "Method Not Allowed")
		}
		return nil, refuse(404, "Not Found")
	}
	if _, err := s.role(r); err != nil {
		return nil, err
	}
	return handle()
}

// role returns the caller's role. A bearer token takes precedence over an X-API-Key, even if the token is wrong.
func (s *OSS) role(r *http.Request) (string, error) {
	if s.options.AdminKey == "" {
		return "admin", nil
	}
	challenge := func(detail string) *problem {
		return &problem{status: 401, body: map[string]any{"detail": detail},
			header: map[string]string{"WWW-Authenticate": "Bearer"}}
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if role := s.options.Bearer[token]; role != "" {
			return role, nil
		}
		return "", challenge("Invalid or expired token.")
	}
	switch key := r.Header.Get("X-API-Key"); {
	case key == s.options.AdminKey:
		return "admin", nil
	case key == "":
		return "", challenge("Authentication required. Provide a Bearer token or X-API-Key header.")
	case s.faults.Database != "":
		return "", &problem{status: 500, body: "Internal Server Error"}
	case slices.Contains(s.options.Keys, key):
		return "admin", nil
	}
	return "", challenge("Invalid API key.")
}

func (s *OSS) admin(r *http.Request, detail string) error {
	role, err := s.role(r)
	switch {
	case err != nil:
		return err
	case s.faults.Database != "":
		return &problem{status: 500, body: "Internal Server Error"}
	case role != "admin":
		return refuse(403, detail)
	}
	return nil
}

// database fails what needs the store.
func (s *OSS) database() error {
	switch s.faults.Database {
	case "dead":
		return upstream("datastore_unavailable")
	case "empty":
		return upstream("unknown")
	}
	return nil
}

func (s *OSS) now() time.Time {
	if s.options.Now != nil {
		return s.options.Now()
	}
	s.ticks++
	return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s.ticks) * time.Millisecond)
}

const stamp = "2006-01-02T15:04:05.000000+00:00"

// id is a UUID of version 4 by its form.
func (s *OSS) id() string {
	s.ids++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", s.ids*2654435761&0xffffffff, s.ids)
}

func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range strings.ToLower(id) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash &&
			!strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

func message(text string) map[string]any { return map[string]any{"message": text} }

func (s *OSS) entities() any {
	type key struct{ kind, id string }
	counts := map[key]int{}
	dates := map[key]string{}
	for _, r := range s.rows {
		for _, k := range []key{{"user", r.user}, {"agent", r.agent}, {"run", r.run}} {
			if k.id != "" {
				counts[k]++
				dates[k] = r.created
			}
		}
	}
	list := []map[string]any{}
	for k, n := range counts {
		list = append(list, map[string]any{"id": k.id, "type": k.kind, "total_memories": n, "created_at": dates[k],
			"updated_at": dates[k]})
	}
	slices.SortFunc(list, func(a, b map[string]any) int {
		return strings.Compare(a["type"].(string)+a["id"].(string), b["type"].(string)+b["id"].(string))
	})
	return list
}

func (s *OSS) deleteEntity(r *http.Request, kind, id string) (any, error) {
	if err := s.admin(r, "Admin role required."); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"user", "agent", "run"}, kind) {
		return nil, refuse(422, []any{map[string]any{"type": "literal_error", "loc": []string{"path", "entity_type"},
			"msg":   "Input should be 'user', 'agent' or 'run'",
			"input": kind, "ctx": map[string]any{"expected": "'user', 'agent' or 'run'"}}})
	}
	s.removeRows(func(found *row) bool { return found.hasIDs(map[string]string{kind + "_id": id}) })
	return message("Entity deleted"), nil
}

func (s *OSS) reset(r *http.Request) (any, error) {
	if err := s.admin(r, "Admin role required."); err != nil {
		return nil, err
	}
	s.rows, s.history, s.buffer = nil, map[string][]map[string]any{}, map[string][]map[string]any{}
	return message("All memories reset"), nil
}

// configure takes a patch. A bad one is reported as configured, and makes every later one fail.
func (s *OSS) configure(r *http.Request, body []byte) (any, error) {
	if err := s.admin(r, "Admin role required."); err != nil {
		return nil, err
	}
	var patch map[string]map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		var input any
		_ = json.Unmarshal(body, &input)
		return nil, refuse(422, []any{map[string]any{"type": "dict_type", "loc": []string{"body"},
			"msg": "Input should be a valid dictionary", "input": input}})
	}
	if p, ok := patch["llm"]["provider"].(string); ok &&
		!slices.Contains([]string{"openai", "anthropic", "gemini"}, p) {
		return nil, refuse(400, "LLM provider '"+p+"' is not bundled in this image.")
	}
	for section, fields := range patch {
		known, _ := s.config[section].(map[string]any)["config"].(map[string]any)
		given, _ := fields["config"].(map[string]any)
		for key, value := range given {
			s.broken = s.broken || key == "nonsense"
			known[key] = value
		}
	}
	if s.broken {
		return nil, &problem{status: 500, body: "Internal Server Error"}
	}
	return message("Configuration set successfully"), nil
}

func generated() map[string]any {
	return map[string]any{"custom_instructions": "Remember drinks and travel.",
		"test_message": "I drink oat milk on Mondays."}
}

// openAPI is as much of the document as tells the surface.
func (s *OSS) openAPI() map[string]any {
	paths := map[string]any{}
	for _, p := range []string{"/auth/setup-status", "/configure", "/configure/providers", "/entities", "/memories",
		"/memories/{memory_id}", "/memories/{memory_id}/history",
		"/reset", "/search"} {
		paths[p] = map[string]any{}
	}
	if s.options.Gateway != nil {
		paths["/capabilities"], paths["/memories/list"], paths["/messages"] = map[string]any{}, map[string]any{},
			map[string]any{}
	}
	fields := map[string]any{}
	for _, f := range []string{"query", "user_id", "run_id", "agent_id", "filters", "top_k", "threshold", "explain",
		"show_expired"} {
		fields[f] = map[string]any{}
	}
	if s.options.Rerank || s.options.Gateway != nil {
		fields["rerank"] = map[string]any{}
	}
	return map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "Mem0 REST APIs", "version": "1.0.0"},
		"paths": paths,
		"components": map[string]any{"schemas": map[string]any{"SearchRequest": map[string]any{"properties": fields,
			"type": "object", "required": []string{"query"}}}}}
}
