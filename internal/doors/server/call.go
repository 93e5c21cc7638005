package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/text/unambiguous"
	"github.com/memhost/memhost/internal/text/whose"
)

// decodable is a pointer to a request.
type decodable[Q any] interface {
	*Q
	abi.Decodable
}

// call is the handler of a route whose request is a Q: decode, do, encode.
func call[Q any, P decodable[Q], A abi.Encodable](s *Server, op string,
	do func(ctx context.Context, q *Q) (A, error)) http.Handler {
	return callDecoded(s, op, func(body []byte) (*Q, error) {
		q := new(Q)
		return q, decode(body, P(q))
	}, do)
}

// decode decodes a request. It rejects text that two parsers could read differently.
func decode[P abi.Decodable](body []byte, q P) error {
	if len(body) == 0 {
		return abi.NewError(abi.CodeInvalidArgument, "not JSON: the body is empty").WithHint("send a JSON object")
	}
	if err := abi.UnmarshalStrict(body, q); err != nil {
		return err
	}
	return unambiguous.Check(body)
}

// hintHeader suggests in an answer what a request should use instead.
const hintHeader = "Memhost-Hint"

// misdirected adds the right route to the error of a body that is valid for another route.
func misdirected(path string, body []byte, err error) error {
	var is struct {
		Events   *json.RawMessage `json:"events"`
		EventID  *json.RawMessage `json:"event_id"`
		Messages *json.RawMessage `json:"messages"`
	}
	list := bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
	_ = json.Unmarshal(body, &is) // anything but an object can only be misdirected as a list
	e := *abi.AsError(err)
	switch {
	case path == wire.PathEventsBatch && list:
		e.Hint = `write {"events": [...]} around the list`
	case path == wire.PathEventsBatch && (is.Messages != nil || is.EventID != nil) && is.Events == nil:
		e.Message = "this is one event, and this route takes several: " + e.Message
		e.Hint = `send it to ` + wire.PathEvents + `, or as {"events": [{...}]}`
	case path == wire.PathEvents && (list || is.Events != nil):
		e.Message = "these are several events, and this route takes one: " + e.Message
		e.Hint = `send them to ` + wire.PathEventsBatch + ` as {"events": [...]}`
	default:
		return err
	}
	return &e
}

// callDecoded is call with a custom decoder.
func callDecoded[Q any, A abi.Encodable](s *Server, op string, decode func(body []byte) (*Q, error),
	do func(ctx context.Context, q *Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, release, err := s.body(w, r)
		defer release()
		if err != nil {
			s.fail(w, r, op, err)
			return
		}
		q, err := decode(body)
		if err != nil {
			if renamed, hint := whose.Rename(body); hint != "" && unambiguous.Check(body) == nil {
				w.Header().Set(hintHeader, hint)
				q, err = decode(renamed)
			}
		}
		if err != nil {
			s.fail(w, r, op, misdirected(r.URL.Path, body, err))
			return
		}
		answer, err := do(r.Context(), q)
		s.answer(w, r, op, answer, err)
	})
}

// scoped is call for a request that names its scope in the given field. The policy must allow the scope.
func scoped[Q any, P decodable[Q], A abi.Encodable](s *Server, op string, scope func(q *Q) abi.MemoryScope,
	do func(slot host.Contract, ctx context.Context, q *Q) (A, error)) http.Handler {
	return call[Q, P](s, op, func(ctx context.Context, q *Q) (answer A, err error) {
		if err := s.options.Scopes.check("scope", scope(q)); err != nil {
			return answer, err
		}
		return do(s.options.Slot, ctx, q)
	})
}

// bareScope is call for a request that is a scope.
func bareScope[A abi.Encodable](s *Server, op string,
	do func(slot host.Contract, ctx context.Context, scope abi.MemoryScope) (A, error)) http.Handler {
	return call(s, op, func(ctx context.Context, q *abi.MemoryScope) (answer A, err error) {
		if err := s.options.Scopes.check("", *q); err != nil {
			return answer, err
		}
		return do(s.options.Slot, ctx, *q)
	})
}

// ask is the handler of a route without a body.
func ask[A abi.Encodable](s *Server, op string, do func(ctx context.Context) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := do(r.Context())
		s.answer(w, r, op, answer, err)
	})
}

// askSlot is ask for an operation of the slot.
func askSlot[A abi.Encodable](s *Server, op string,
	do func(slot host.Contract, ctx context.Context) (A, error)) http.Handler {
	return ask(s, op, func(ctx context.Context) (A, error) { return do(s.options.Slot, ctx) })
}

// answer sends the result of a call.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, op string, a abi.Encodable, err error) {
	// A client that does not read its answer must not occupy the slot. The deadline is lifted when the connection's
	// next request starts.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	if err != nil {
		s.fail(w, r, op, err)
		return
	}
	write(w, wire.MediaJSON, http.StatusOK, abi.Marshal(a))
}
