package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// traced starts the span of an admitted request. A mounted handler gets the caller's trace and starts its own spans.
func (s *Server) traced(next http.Handler) http.Handler {
	tracer := s.options.Tracer
	if tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := traceparent.Accept(r.Context(), r.Header.Get(traceparent.Header))
		if !strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == wire.PathOperations {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		ctx, span := tracer.Begin(ctx, host.SpanStart{Name: r.Method, Kind: host.SpanRequest})
		r = r.WithContext(ctx)
		ended := false
		defer func() { // a handler may panic
			status := http.StatusInternalServerError
			if a, ok := w.(*answer); ok && (ended || a.status != 0) {
				status = max(a.status, http.StatusOK)
			}
			route := s.routeLabel(r)
			span.SetName(r.Method + " " + route)
			span.Text("http.request.method", r.Method)
			span.Text("http.route", route)
			span.Number("http.response.status_code", int64(status))
			span.Text("memhost.door", doorOf(r))
			span.Text("memhost.request_id", requestID(r))
			failure := ""
			if status >= http.StatusInternalServerError {
				failure = strconv.Itoa(status)
			}
			span.End(failure)
		}()
		next.ServeHTTP(w, r)
		ended = true
	})
}

// doorOf returns the door through which a request came: http, unless its header names another one.
func doorOf(r *http.Request) string {
	switch door := r.Header.Get(wire.HeaderDoor); door {
	case wire.DoorHook, wire.DoorMCP:
		return door
	}
	return "http"
}
