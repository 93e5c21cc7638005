package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Server is the HTTP door of one slot. Make one with New. It is safe for concurrent use.
type Server struct {
	options Options
	guard   guard
	log     hclog.Logger
	handler http.Handler
	table   []route
	paths   []string
	// document is made when it is first requested: most slots never need it, and it takes longer than the rest of New.
	document func() (*document, error)
	// stopping is set once Serve stops: the door still answers, but is no longer ready.
	stopping atomic.Bool
	// ending is closed then, to end streams, which would not end by themselves.
	ending chan struct{}
	// calls counts requests in progress.
	calls atomic.Int64
	// bodies has a place for each request with a body above a bound of bodyBounds.
	bodies []chan struct{}
	memory memory
}

// New makes the door of a slot.
//
// Errors: invalid_argument for a missing slot, an invalid address, a token that cannot be sent in a header, and, with
// ReasonTokenRequired, an address off loopback without a token.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, log: o.Logger.Named("http"), ending: make(chan struct{}),
		memory: memory{most: o.CallMemory}}
	for _, bound := range bodyBounds {
		s.bodies = append(s.bodies, make(chan struct{}, bound.atATime))
	}
	if s.guard, err = newGuard(o.Token); err != nil {
		return nil, err
	}
	if s.guard.public, err = parsePublic(o.PublicURL); err != nil {
		return nil, err
	}
	s.guard.page = o.Page
	loopback, err := isLoopbackListen(o.Listen)
	if err != nil {
		return nil, err
	}
	if err := needsToken(loopback, o.Listen, s.guard.length); err != nil {
		return nil, err
	}
	s.table = s.routes()
	s.document = sync.OnceValues(func() (*document, error) { return describe(s.table, o.Version) })
	s.handler = s.underPath(s.router())
	if err := o.Metrics.slot(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Handler returns the door as a handler, for a server of the caller's own. It makes all checks; Serve only adds the
// handling of a listener.
func (s *Server) Handler() http.Handler { return s.handler }

// OpenAPI returns the document at /openapi.json, without the provider's declarations. The caller must not change it.
//
// Errors: internal, if a type of the contract cannot be described, which the tests would find.
func (s *Server) OpenAPI() ([]byte, error) {
	d, err := s.document()
	if err != nil {
		return nil, err
	}
	return d.json, nil
}

// router builds the chain that a request passes through: observe, admit, its route.
func (s *Server) router() http.Handler {
	m := chi.NewMux()
	m.Use(s.observe, s.admit, s.traced, headAsGet)
	for _, r := range s.table {
		m.Method(r.method, r.path, r.handler)
		s.paths = append(s.paths, r.path)
	}
	m.Get("/", s.front)
	m.Get(wire.PathOpenAPI, s.openAPI)
	m.Get(wire.PathDocs, s.docs)
	m.Method(http.MethodGet, wire.PathMetrics, s.options.Metrics.handler())
	s.paths = append(s.paths, "/", wire.PathOpenAPI, wire.PathDocs, wire.PathMetrics)
	if s.options.Page != nil {
		m.Handle(wire.PathPage+"*", s.options.Page)
		s.paths = append(s.paths, wire.PathPage)
	}
	for path, h := range s.options.Mounts {
		h = s.mounted(h)
		m.Handle(path, h)
		m.Handle(strings.TrimSuffix(path, "/")+"/*", h)
		s.paths = append(s.paths, path)
	}
	slices.Sort(s.paths)
	s.paths = slices.Compact(s.paths)
	m.NotFound(s.notFound)
	m.MethodNotAllowed(s.methodNotAllowed)
	return m
}

// front handles the door's bare address: it redirects a browser to the page, or to the list of the routes without a
// page, and answers others with a few lines of text.
func (s *Server) front(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		to := wire.PathDocs
		if s.options.Page != nil {
			to = wire.PathPage
		}
		// Relative, so that it also works below a proxy's path; http.Redirect would make it absolute.
		w.Header().Set("Location", strings.TrimPrefix(to, "/"))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	text := strings.TrimSpace("memhost "+s.options.Version) + ": one memory slot for an agent.\n\n" +
		"GET  " + wire.PathDocs + "          every route, with examples, for a browser\n" +
		"GET  " + wire.PathOpenAPI + "  the same for programs\n" +
		"POST " + wire.PathEvents + "     record a turn\n" +
		"POST " + wire.PathRetrieve + "   ask for context\n" +
		"GET  " + wire.PathManifest + "   what serves\n" +
		"GET  " + wire.PathReady + "        whether it serves\n" +
		"GET  " + wire.PathMetrics + "       figures for Prometheus\n"
	write(w, "text/plain; charset=utf-8", http.StatusOK, []byte(text))
}

// docs serves the description as a page.
func (s *Server) docs(w http.ResponseWriter, r *http.Request) {
	d, err := s.document()
	if err != nil {
		s.fail(w, r, "", err)
		return
	}
	w.Header().Set("Content-Security-Policy", d.policy)
	write(w, "text/html; charset=utf-8", http.StatusOK, d.page)
}

// observe numbers, counts and logs a request, and answers for a handler that panics.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s.calls.Add(1)
		defer s.calls.Add(-1)
		connection := http.NewResponseController(w)
		_ = connection.SetWriteDeadline(time.Time{}) // set by the previous request
		id := r.Header.Get("X-Request-Id")
		if !isRequestID(id) {
			id = rand.Text()
		}
		r = r.WithContext(host.WithDoor(context.WithValue(r.Context(), requestIDKey{}, id), doorOf(r)))
		if r.Header.Get(wire.HeaderOrigin) == host.OriginPage {
			r = r.WithContext(host.WithDoor(host.WithOrigin(r.Context(), host.OriginPage), host.OriginPage))
		}
		s.hurry(connection, r)
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		a := &answer{ResponseWriter: w}
		defer func() {
			cut := false
			if p := recover(); p != nil {
				cut = !s.recovered(a, r, p)
			}
			status := a.status
			if status == 0 {
				status = http.StatusOK // the handler wrote nothing
			}
			s.options.Metrics.requests.WithLabelValues(s.routeLabel(r), strconv.Itoa(status)).Inc()
			s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", status, "bytes", a.bytes,
				"cut", cut, "took_ms", time.Since(began).Milliseconds(), "request_id", id)
			if cut {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(a, r)
	})
}

// recovered answers for a handler that panicked. If the handler had started to answer, or the connection must be
// dropped, it cannot and returns false, so that the client does not mistake a part for the whole answer.
func (s *Server) recovered(a *answer, r *http.Request, p any) bool {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return false
	}
	s.log.Error("a handler panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "request_id", requestID(r), "stack",
		string(debug.Stack()))
	if a.status != 0 {
		return false
	}
	refuse(a, internalError(r), http.StatusInternalServerError)
	return true
}

// admit passes on only the requests that the guard accepts.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, e := s.guard.check(r)
		if e != nil {
			s.log.Debug("refused", "reason", e.Reason, "message", e.Message, "request_id", requestID(r))
			refuse(w, e, wire.Status(e))
			return
		}
		if token != nil {
			r = r.WithContext(withScopedToken(r.Context(), token))
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	e := abi.NewError(abi.CodeNotFound, fmt.Sprintf("there is nothing at %.200q",
		r.URL.Path)).WithReason("route").WithHint("GET " + wire.PathDocs + " lists what there is")
	if r.URL.Path == "/mcp" { // otherwise it would be among the mounts
		e.Hint = "MCP over HTTP is off: `memhost run --mcp=http` serves it"
	} else if near := s.nearestPath(r.URL.Path); near != "" {
		e.Hint = "did you mean " + near + "? " + e.Hint
	}
	refuse(w, e, http.StatusNotFound)
}

// nearestPath returns the path that an unknown path was probably meant to be: one that is spelled similarly, or one
// that ends in the same word, as /v1/scopes/reset does for /v1/reset.
func (s *Server) nearestPath(path string) string {
	if near := abi.Nearest(path, s.paths); near != "" && near != "/" {
		return near
	}
	word := path[strings.LastIndexByte(path, '/')+1:]
	const shortest = 4 // letters
	if len(word) < shortest {
		return ""
	}
	for _, known := range s.paths {
		if strings.HasSuffix(known, word) {
			return known
		}
	}
	return ""
}

func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, route := range s.table {
		if route.path == r.URL.Path {
			allowed = append(allowed, route.method)
		}
	}
	if len(allowed) == 0 {
		if !slices.Contains(s.paths, r.URL.Path) {
			s.notFound(w, r) // a method that HTTP does not know, on an unknown path
			return
		}
		allowed = []string{http.MethodGet}
	}
	methods := strings.Join(allowed, ", ")
	w.Header().Set("Allow", methods)
	refuse(w, abi.NewError(abi.CodeInvalidArgument,
		fmt.Sprintf("%s takes %s, not %s", r.URL.Path, methods, r.Method)).WithReason("method"),
		http.StatusMethodNotAllowed)
}

// routeLabel is the route of a request for metrics; unknown paths share one.
func (s *Server) routeLabel(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" {
		return pattern
	}
	if slices.Contains(s.paths, r.URL.Path) {
		return r.URL.Path // rejected before it was routed
	}
	return other
}

type requestIDKey struct{}

// requestID is the id of a request that passes through the door.
func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// isRequestID reports whether a caller's own id may be used in log and answer.
func isRequestID(id string) bool {
	return id != "" && len(id) <= 64 && isOf(id, "-_.")
}
