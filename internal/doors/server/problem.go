package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// refuse answers with the problem document of e.
func refuse(w http.ResponseWriter, e *abi.Error, status int) {
	h := w.Header()
	if e.RetryAfterMS != nil {
		h.Set("Retry-After", wire.RetryAfter(*e.RetryAfterMS))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="memhost"`)
	}
	write(w, wire.MediaProblem, status, wire.EncodeProblem(e, status))
}

func write(w http.ResponseWriter, contentType string, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has gone
}

// fail answers a call whose operation returned an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, op string, err error) {
	var stated *statusError
	if errors.As(err, &stated) {
		refuse(w, inOperation(op, stated.problem), stated.status)
		return
	}
	var e *abi.Error
	if !errors.As(err, &e) {
		// The slot promises *abi.Error. Any other error is internal and not shown to callers.
		if r.Context().Err() == nil || !errors.Is(err, context.Canceled) {
			s.log.Error("an operation failed without an error of the contract", "operation", op, "error", err,
				"request_id", requestID(r))
		}
		e = internalError(r)
	}
	e = inOperation(op, e)
	refuse(w, e, wire.Status(e))
}

// statusError is an error of the door with a more specific HTTP status than that of its code.
type statusError struct {
	problem *abi.Error
	status  int
}

func (e *statusError) Error() string { return e.problem.Error() }
func (e *statusError) Unwrap() error { return e.problem }

// inOperation adds the operation to an error without one. It copies the error, which may be shared.
func inOperation(op string, e *abi.Error) *abi.Error {
	if e.Operation != "" || op == "" {
		return e
	}
	named := *e
	named.Operation = op
	return &named
}

// internalError only says where to look.
func internalError(r *http.Request) *abi.Error {
	return abi.NewError(abi.CodeInternal, "something went wrong inside the slot").WithHint("the slot's log has the " +
		"details under request_id " + requestID(r))
}
