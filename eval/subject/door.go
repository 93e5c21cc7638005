package subject

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Door is the slot as one conversation's subject can reach it: a separate address on loopback, with a token for
// recording and retrieving in one scope and session. It records what the subject does. It stays open after the
// conversation to detect late requests, which it rejects.
type Door struct {
	Address
	listener net.Listener
	http     *http.Server

	active sync.WaitGroup // running requests, before the conversation is over

	mu         sync.Mutex
	turn       int
	over       bool
	retrievals []journal.Retrieval
	breaches   []journal.Breach
	late       []journal.Breach
}

// DoorOptions configure a door.
type DoorOptions struct {
	Slot    host.Contract
	Scope   abi.MemoryScope
	Session string
	// Budget bounds each retrieval, whatever the subject asks for. Its MinTokens applies unless the subject asks for
	// more or fewer itself.
	Budget abi.ContextBudget
	// Put stores a formatted context and returns its hash.
	Put func([]byte) (string, error)
	// Foreign returns a nonce in a text that belongs to another conversation; empty if there is none.
	Foreign func(text string) string
}

// OpenDoor opens a door.
//
// Errors: unavailable if there is no free port.
func OpenDoor(o DoorOptions) (*Door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "the subject's door: "+err.Error(), err)
	}
	d := &Door{listener: listener, turn: 1}
	root := rand.Text()
	token, err := server.ScopedToken{Scope: o.Scope, Session: o.Session}.Issue(root)
	if err != nil {
		return nil, err
	}
	d.Address = Address{HTTP: "http://" + listener.Addr().String(), Token: token}
	door, err := server.New(server.Options{Slot: &watchedSlot{Contract: o.Slot, door: d, options: o}, Token: root,
		Listen: listener.Addr().String()})
	if err != nil {
		return nil, err
	}
	d.http = &http.Server{Handler: d.watch(door.Handler()), ReadHeaderTimeout: time.Minute}
	go func() { _ = d.http.Serve(listener) }()
	return d, nil
}

// watch records rejected requests, and rejects all requests once the conversation is over.
func (d *Door) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := fmt.Sprintf("%s %.200s", r.Method, r.URL.Path)
		d.mu.Lock()
		over := d.over
		if over {
			d.late = append(d.late, journal.Breach{Kind: "late_delivery", Detail: what + " after the conversation"})
		} else {
			d.active.Add(1)
		}
		d.mu.Unlock()
		if over {
			http.Error(w, "the session is over", http.StatusForbidden)
			return
		}
		defer d.active.Done()
		s := &status{ResponseWriter: w}
		next.ServeHTTP(s, r)
		if s.code == http.StatusForbidden || s.code == http.StatusUnauthorized {
			d.breach(refusedKind(r), what+" was refused")
		}
	})
}

// refusedKind is the kind of breach of a request that the door rejected.
func refusedKind(r *http.Request) string {
	switch path := r.URL.Path; {
	case path == wire.PathMode && r.Method != http.MethodGet:
		return "mode"
	case r.Method == http.MethodPost && slices.Contains([]string{wire.PathEvents, wire.PathEventsBatch, wire.PathRetrieve}, path):
		return "other_scope"
	}
	return "forbidden_call"
}

// status records the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// maxBreaches is how many breaches of one conversation are recorded.
const maxBreaches = 20

func (d *Door) breach(kind, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.breaches) < maxBreaches {
		d.breaches = append(d.breaches, journal.Breach{Kind: kind, Detail: detail})
	}
}

// Turn sets the number of the exchange, from 1, to which further requests belong.
func (d *Door) Turn(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn = n
}

// Over ends the conversation: from now on every request is rejected. It waits for running requests, and returns what
// the subject did.
func (d *Door) Over() ([]journal.Retrieval, []journal.Breach) {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.active.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.retrievals, d.breaches
}

// Close closes the door, and returns the breaches after the conversation.
func (d *Door) Close() []journal.Breach {
	_ = d.http.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late[:min(len(d.late), maxBreaches)]
}

// watchedSlot wraps the slot behind a door.
type watchedSlot struct {
	host.Contract
	door    *Door
	options DoorOptions
}

// Retrieve implements host.Contract.
func (w *watchedSlot) Retrieve(ctx context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	r := journal.Retrieval{Query: q.Query, Context: q.Context, Attribute: q.Attribute}
	if asked := q.Budget.MaxTokens; asked != nil {
		r.MaxTokens = *asked
	}
	bounded := *q
	bounded.Budget = w.options.within(q.Budget)
	result, err := w.Contract.Retrieve(ctx, &bounded)
	if err != nil {
		r.Error = abi.AsError(err)
	} else {
		r.Evidence, r.Trace = result.Evidence, result.Trace
		if r.ContextSHA256, err = w.options.Put([]byte(result.FormattedContext)); err != nil {
			return nil, err
		}
	}
	w.door.mu.Lock()
	r.Turn = w.door.turn
	w.door.retrievals = append(w.door.retrievals, r)
	w.door.mu.Unlock()
	if r.Error != nil {
		return nil, r.Error
	}
	return result, nil
}

// within returns the budget that a retrieval gets.
func (o *DoorOptions) within(asked abi.ContextBudget) abi.ContextBudget {
	if most := o.Budget.MaxTokens; most != nil && (asked.MaxTokens == nil || *asked.MaxTokens > *most) {
		asked.MaxTokens = most
	}
	if asked.MinTokens == nil {
		asked.MinTokens = o.Budget.MinTokens
	}
	if least, most := asked.MinTokens, asked.MaxTokens; least != nil && most != nil && *least > *most {
		asked.MinTokens = most
	}
	return asked
}

// RecordEvent implements host.Contract.
func (w *watchedSlot) RecordEvent(ctx context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	w.checkEvent(e)
	receipt, err := w.Contract.RecordEvent(ctx, e)
	w.judge(e.EventID, receipt, err)
	return receipt, err
}

// RecordEvents implements host.Contract.
func (w *watchedSlot) RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	for i := range batch.Events {
		w.checkEvent(&batch.Events[i])
	}
	receipts, err := w.Contract.RecordEvents(ctx, batch)
	if err != nil {
		w.judge("a batch", nil, err)
		return nil, err
	}
	for _, r := range receipts.Receipts {
		if r.Error != nil {
			w.judge(r.EventID, nil, r.Error)
			continue
		}
		w.judge(r.Receipt.EventID, r.Receipt, nil)
	}
	return receipts, nil
}

// judge records an event that got a receipt other than skipped_read_only.
func (w *watchedSlot) judge(id string, receipt *abi.WriteReceipt, err error) {
	switch {
	case err != nil && abi.AsError(err).Code == abi.CodeInvalidArgument: // it was not an event
	case err != nil:
		w.door.breach("recorded", fmt.Sprintf("event %.100q failed behind the wall: %s", id, abi.AsError(err).Code))
	case receipt.Status != abi.StatusSkippedReadOnly:
		w.door.breach("recorded", fmt.Sprintf("event %.100q was answered %s", id, receipt.Status))
	}
}

// checkEvent records an event that belongs to another conversation, which means that the subject kept a queue.
func (w *watchedSlot) checkEvent(e *abi.MemoryEvent) {
	for _, m := range e.Messages {
		if m.Content == nil || w.options.Foreign == nil {
			continue
		}
		if nonce := w.options.Foreign(*m.Content); nonce != "" {
			w.door.breach("late_delivery", fmt.Sprintf("event %.100q holds %s, of another conversation", e.EventID, nonce))
		}
	}
}
