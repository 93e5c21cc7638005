package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Importer records an exported conversation in two steps; package importing implements it.
type Importer interface {
	// Check receives a file of wire.MediaJSON or wire.MediaZip, and describes its content.
	Check(ctx context.Context, media string, body io.Reader) (*wire.ImportCheck, error)
	// Confirm starts recording the checked file; ended is called when that is over, or was refused.
	Confirm(ctx context.Context, q *wire.ImportConfirm, record func(context.Context, *abi.MemoryEvent) (*abi.WriteReceipt,
		error), ended func()) (*wire.ImportProgress, error)
	// Progress returns the progress of the latest import.
	Progress() *wire.ImportProgress
}

func (s *Server) importRoutes() []route {
	unsupported := []abi.Code{abi.CodeUnsupported}
	progress := &wire.ImportProgress{State: wire.ImportRecording, Events: 4213, Recorded: 1200, Known: 13,
		Problems: []string{}}
	return []route{
		{method: http.MethodPost, path: wire.PathImport, operation: wire.OpImportCheck, tag: tagMemory, local: true,
			codes: append(unsupported, abi.CodeRateLimited), summary: "Say what an exported conversation holds",
			about: "The body is the file itself, at most 256 MiB: what a chat service exported, what a coding agent " +
				"logged, events, or messages as a model gets them. Nothing is recorded. One file is here at a time; it is " +
				"removed after fifteen minutes without a confirmation.",
			takes: []string{wire.MediaJSON, wire.MediaZip},
			answer: &wire.ImportCheck{Confirmation: "KX4ARQWJ3LNZLZH5LCGUU7S46X", Source: "chatgpt", Title: "ChatGPT's export",
				Conversations: 120, Events: 4213, Messages: 8426, First: "2025-02-03T09:00:02Z", Last: "2026-03-01T17:30:00Z",
				LeftOut: []string{"31 tool calls"}, Problems: []string{}, Scopes: []abi.MemoryScope{}, NeedsScope: true},
			handler: http.HandlerFunc(s.importCheck)},
		{method: http.MethodPost, path: wire.PathImportConfirm, operation: wire.OpImportConfirm, tag: tagMemory,
			codes: append(unsupported, abi.CodeRateLimited, abi.CodeNotFound), summary: "Record the file that was checked",
			about: "A confirmation works once. The answer comes at once, and GET /v1/import says how far the recording is. " +
				"Events that the slot has are counted and recorded no second time.",
			request: &wire.ImportConfirm{Confirmation: "KX4ARQWJ3LNZLZH5LCGUU7S46X",
				Scope: &abi.MemoryScope{RunID: "default", PersonaID: "ann"}},
			answer:  progress,
			handler: call(s, wire.OpImportConfirm, s.importConfirm)},
		{method: http.MethodGet, path: wire.PathImport, operation: wire.OpImportProgress, tag: tagMemory, local: true,
			codes: unsupported, summary: "Tell how far an import has come",
			about:  "The latest since the slot started.",
			answer: progress,
			handler: ask(s, wire.OpImportProgress, func(context.Context) (*wire.ImportProgress, error) {
				if s.options.Importer == nil {
					return nil, noImporter()
				}
				return s.options.Importer.Progress(), nil
			})},
	}
}

func noImporter() *abi.Error {
	return abi.NewError(abi.CodeUnsupported, "this slot takes no files").WithReason("import_off").
		WithHint("memhost record FILE reads the same files")
}

func (s *Server) importCheck(w http.ResponseWriter, r *http.Request) {
	check, err := s.checkImport(w, r)
	s.answer(w, r, wire.OpImportCheck, check, err)
}

func (s *Server) checkImport(w http.ResponseWriter, r *http.Request) (*wire.ImportCheck, error) {
	tooLarge := abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the file is larger than %d MiB", wire.MaxImport>>20)).
		WithHint("memhost record FILE has no limit")
	media, err := checkContentType(r.Header, wire.MediaJSON, wire.MediaZip)
	switch {
	case err != nil:
		return nil, err
	case s.options.Importer == nil:
		return nil, noImporter()
	case r.ContentLength > wire.MaxImport:
		return nil, tooLarge
	}
	body := &steadyBody{from: http.MaxBytesReader(w, r.Body, wire.MaxImport), connection: http.NewResponseController(w),
		within: s.options.BodyTimeout}
	check, err := s.options.Importer.Check(r.Context(), media, body)
	if err == nil {
		return check, nil
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close") // what arrives later is not the next request
		return nil, &statusError{abi.WrapError(abi.CodeTimeout, fmt.Sprintf("no part of the file arrived within %s",
			s.options.BodyTimeout), err), http.StatusRequestTimeout}
	}
	var e *abi.Error
	if !errors.As(err, &e) {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "the file broke off: "+err.Error(), err)
	}
	return nil, e
}

// steadyBody limits the time for each part of the client's body.
type steadyBody struct {
	from       io.Reader
	connection *http.ResponseController
	within     time.Duration
}

// Read implements io.Reader.
func (b *steadyBody) Read(p []byte) (int, error) {
	_ = b.connection.SetReadDeadline(time.Now().Add(b.within))
	n, err := b.from.Read(p)
	if err == io.EOF {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (s *Server) importConfirm(ctx context.Context, q *wire.ImportConfirm) (*wire.ImportProgress, error) {
	if s.options.Importer == nil {
		return nil, noImporter()
	}
	if q.Scope != nil {
		if err := s.options.Scopes.check("scope", *q.Scope); err != nil {
			return nil, err
		}
	}
	ctx, release := detached(ctx)
	return s.options.Importer.Confirm(ctx, q, func(ctx context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		if err := s.options.Scopes.checkEvent(e); err != nil {
			return nil, err
		}
		return s.options.Slot.RecordEvent(ctx, e)
	}, release)
}
