package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// answer records what a handler answered, for the log and the metrics.
type answer struct {
	http.ResponseWriter
	status int // 0 until the handler starts to answer
	bytes  int // of the body
}

var _ http.Flusher = (*answer)(nil)

// WriteHeader passes on interim answers (1xx) and the first final one.
func (a *answer) WriteHeader(status int) {
	interim := status < 200 && status != http.StatusSwitchingProtocols
	if interim || a.status == 0 {
		a.ResponseWriter.WriteHeader(status)
	}
	if !interim && a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(part []byte) (int, error) {
	a.begin()
	n, err := a.ResponseWriter.Write(part)
	a.bytes += n
	return n, err
}

// Flush sends what was written. If the connection does not support that, it is sent later.
func (a *answer) Flush() {
	a.begin()
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}

func (a *answer) begin() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
}

// Unwrap is for http.ResponseController: deadlines, full duplex, hijacking.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// headAsGet routes HEAD as GET. The connection drops the body.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}
