// Package honcho is a Honcho server for tests: the API of v3, with a deriver that works when it is looked at.
//
// It behaves as the recordings in testdata do, which were taken from Honcho of commit ddbb90e3 (3.0.12 and later).
// Nothing runs in the background: queue, derivation and deletion are brought up to the clock at the beginning of every
// request, so that time can be injected and no test waits.
//
// What it does instead of a model: the deriver makes one fact of every sentence that an observed peer says,
// "user-alice said: ...", and similarity is that of package embed.
package honcho

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Mood is how the server's other parts are doing. It may be changed while the server runs.
type Mood struct {
	// DeriverDown: no deriver process. Rows stay pending, deletions are accepted and not carried out.
	DeriverDown bool
	// Flush is DERIVER_FLUSH_ENABLED. Without it a session's rows wait for BatchTokens (0: 512) or MaxAge (0: 1800 s).
	Flush       bool
	BatchTokens int64
	MaxAge      time.Duration
	// RowDelay is how long after the response a queue row appears; WorkDelay how long a batch is in progress;
	// PurgeDelay how long a deletion takes.
	RowDelay, WorkDelay, PurgeDelay time.Duration
	// EnqueueFails: rows are never inserted, which Honcho only logs.
	EnqueueFails bool
	// LLMDown and EmbedDown make batches fail, which still count as completed. EmbedDown also makes searches fail. Session
	// context then answers 200 without the conclusions that the query would choose, so it is empty if search_top_k equals
	// max_conclusions.
	LLMDown, EmbedDown bool
	// DBDown: everything but /health is 500.
	DBDown bool
	// CacheTTL is how long the API shows what it has cached of existence, cards and summaries
	// (CACHE_DEFAULT_TTL_SECONDS without Redis).
	CacheTTL time.Duration
	// LockBusy: a write to a session waits for its lock and is 500.
	LockBusy bool
}

// Key is what a bearer token may do. The zero value may nothing.
type Key struct {
	Admin     bool
	Workspace string
}

// Options describe a server. The zero value is one without auth and cache, with default deriver settings.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now  func() time.Time
	Mood Mood
	// Keys are bearer tokens; nil means AUTH_USE_AUTH=false.
	Keys map[string]Key
	// WorkspaceChat: the server is newer than 3.0.12, and has that route.
	WorkspaceChat bool
	// MaxContextTokens is GET_CONTEXT_MAX_TOKENS; 0 means 100000.
	MaxContextTokens int
}

// Server is a Honcho server. It is safe for concurrent use.
type Server struct {
	options Options
	mux     *http.ServeMux

	mu         sync.Mutex
	now        time.Time // of the request at hand
	serial     int
	workspaces map[string]*workspace
	gone       map[string]cachedWorkspace // workspaces that the cache still knows
	calls      []string
}

// cachedWorkspace is a deleted workspace that is still in the API's cache.
type cachedWorkspace struct {
	at  time.Time
	was *workspace
}

var _ http.Handler = (*Server)(nil)

// New makes a server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxContextTokens == 0 {
		o.MaxContextTokens = 100_000
	}
	s := &Server{options: o, mux: http.NewServeMux(), workspaces: map[string]*workspace{}, gone: map[string]cachedWorkspace{}}
	s.routes()
	return s
}

// Set changes the mood.
func (s *Server) Set(change func(*Mood)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.options.Mood)
}

// Calls lists the requests since the last call, as "POST /v3/workspaces".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// Workspaces lists the ids of what exists, for tests that look for traces.
func (s *Server) Workspaces() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.workspaces {
		ids = append(ids, id)
	}
	return ids
}

// answer is what a handler answers; a nil body is an empty one.
type answer struct {
	status int
	body   any
}

func ok(body any) answer { return answer{200, body} }

// refuse is an error with Honcho's string detail.
func refuse(status int, format string, args ...any) answer {
	return answer{status, map[string]any{"detail": fmt.Sprintf(format, args...)}}
}

// wrong is a 422 with Honcho's list detail.
func wrong(kind, msg string, input any, ctx map[string]any, loc ...any) answer {
	item := map[string]any{"type": kind, "loc": loc, "msg": msg, "input": input}
	if ctx != nil {
		item["ctx"] = ctx
	}
	return answer{422, map[string]any{"detail": []any{item}}}
}

var unexpected = refuse(500, "An unexpected error occurred")

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.options.Now()
	s.advance()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	a := s.serve(r, body)
	w.Header().Set("Content-Type", "application/json")
	if a.status == 307 {
		w.Header().Set("Location", "http://"+r.Host+strings.TrimSuffix(r.URL.Path, "/"))
	}
	w.WriteHeader(a.status)
	if a.body != nil {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(a.body)
	}
}

func (s *Server) serve(r *http.Request, body []byte) answer {
	path := r.URL.Path
	switch {
	case path == "/health":
		return ok(map[string]any{"status": "ok"})
	case path == "/openapi.json":
		return ok(map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "Honcho API", "version": "3.0.12"},
			"paths": map[string]any{}})
	case strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f"):
		return refuse(404, "Not Found")
	case strings.HasSuffix(path, "/") && strings.HasPrefix(path, "/v3/"):
		return answer{307, nil}
	}
	if s.options.Mood.DBDown {
		return unexpected
	}
	q := &request{Server: s, http: r, query: r.URL.Query()}
	if len(body) > 0 {
		if !utf8.Valid(body) {
			return refuse(400, "There was an error parsing the body")
		}
		if err := json.Unmarshal(body, &q.value); err != nil {
			return answer{422, map[string]any{"detail": []any{map[string]any{"type": "json_invalid",
				"loc": []any{"body", len(body)}, "msg": "JSON decode error", "input": map[string]any{},
				"ctx": map[string]any{"error": err.Error()}}}}}
		}
		if q.body, _ = q.value.(map[string]any); q.body == nil {
			return wrong("model_attributes_type", "Input should be a valid dictionary or object to extract fields from",
				q.value, nil, "body")
		}
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		known := false
		for _, m := range []string{"GET", "POST", "PUT", "DELETE"} {
			other := r.Clone(r.Context())
			other.Method = m
			_, p := s.mux.Handler(other)
			known = known || p != ""
		}
		if known {
			return refuse(405, "Method Not Allowed")
		}
		return refuse(404, "Not Found")
	}
	answered := &capture{q: q}
	s.mux.ServeHTTP(answered, r)
	return answered.a
}

// capture carries the request to its handler and the answer back.
type capture struct {
	q *request
	a answer
}

func (c *capture) Header() http.Header         { return http.Header{} }
func (c *capture) Write(b []byte) (int, error) { return len(b), nil }
func (c *capture) WriteHeader(int)             {}

// request is one request while it is served.
type request struct {
	*Server
	http  *http.Request
	query map[string][]string
	value any
	body  map[string]any
}

func (q *request) text(name string) string { t, _ := q.body[name].(string); return t }
func (q *request) path(name string) string { return q.http.PathValue(name) }

// id makes an id of 21 characters, as nanoid does.
func (s *Server) id() string {
	s.serial++
	return fmt.Sprintf("id%019d", s.serial)
}

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// checkID checks an id in a body.
func checkID(id string, loc ...any) (answer, bool) {
	switch {
	case len(id) > 512:
		return wrong("string_too_long", "String should have at most 512 characters", id,
			map[string]any{"max_length": 512}, loc...), false
	case !idPattern.MatchString(id):
		return wrong("string_pattern_mismatch", "String should match pattern '^[a-zA-Z0-9_-]+$'", id,
			map[string]any{"pattern": "^[a-zA-Z0-9_-]+$"}, loc...), false
	}
	return answer{}, true
}

// level is who may use a route.
type level int

const (
	admin    level = iota // admin keys alone
	inside                // admin keys, and those of the path's workspace
	creating              // the workspace is in the body
)

// allowed answers for a key that may not.
func (q *request) allowed(l level) (answer, bool) {
	if q.options.Keys == nil {
		return answer{}, true
	}
	token, bearer := strings.CutPrefix(q.http.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		return refuse(401, "No access token provided"), false
	}
	key, known := q.options.Keys[token]
	switch {
	case !known:
		return refuse(401, "Invalid JWT"), false
	case key.Admin:
		return answer{}, true
	case l == admin:
		return refuse(401, "Resource requires admin privileges"), false
	case l == creating && key.Workspace != q.text("id"):
		return refuse(401, "Unauthorized access to resource"), false
	case l == inside && key.Workspace != q.path("w"):
		return refuse(401, "JWT not permissioned for this resource"), false
	}
	return answer{}, true
}
