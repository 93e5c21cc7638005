package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/client"
)

// slotLine is the way of a long-lived child process to its slot: found when it is first needed, and looked for again when it is lost.
//
// Once it has found a slot that runs it looks for no other kind: a child that took the data folder while that slot is started anew would keep the slot out of it.
type slotLine struct {
	app *app

	mu      sync.Mutex
	door    *door
	attempt *attempt // under way
	served  bool     // a slot that runs was found once
	closed  bool
}

// attempt is a search for the slot. Several callers may wait for it, each as long as it can.
type attempt struct {
	done chan struct{}
	door *door
	err  error
}

// attemptWithin is how long a search may take, loading a module for the first time included.
const attemptWithin = time.Minute

// overLine asks over the line. Where the slot is gone it is looked for once more, since it may have been started anew, perhaps at another address: asking again is
// safe, for events as well.
func overLine[A any](ctx context.Context, l *slotLine, ask func(d *door) (*A, error)) (*A, error) {
	for first := true; ; first = false {
		d, err := l.get(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := ask(d)
		if err == nil || !l.lost(d, abi.AsError(err)) || !first || ctx.Err() != nil {
			return answer, err
		}
	}
}

// get gives the door, or waits for the search for it.
func (l *slotLine) get(ctx context.Context) (*door, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, abi.NewError(abi.CodeUnavailable, "this process ends")
	}
	if d := l.door; d != nil {
		l.mu.Unlock()
		return d, nil
	}
	at := l.attempt
	if at == nil {
		at = &attempt{done: make(chan struct{})}
		l.attempt = at
		go l.search(at)
	}
	l.mu.Unlock()
	select {
	case <-at.done:
		return at.door, at.err
	case <-ctx.Done():
		return nil, abi.WrapError(abi.CodeTimeout, "the slot was not reached in time", context.Cause(ctx)).WithReason(client.ReasonDeadline)
	}
}

func (l *slotLine) search(at *attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptWithin)
	defer cancel()
	d, err := l.find(ctx)
	l.mu.Lock()
	at.door, at.err, l.attempt = d, err, nil
	if err == nil && l.closed {
		at.door, at.err = nil, abi.NewError(abi.CodeUnavailable, "this process ends")
		d.close()
	} else if err == nil {
		l.door, l.served = d, l.served || d.address != ""
	}
	l.mu.Unlock()
	close(at.done)
}

// find is connect, but for a slot that ran before.
func (l *slotLine) find(ctx context.Context) (*door, error) {
	l.mu.Lock()
	served := l.served
	l.mu.Unlock()
	if !served || l.app.serverNamed() != "" {
		return l.app.connect(ctx)
	}
	c, err := l.app.config()
	if err != nil {
		return nil, err
	}
	d, err := l.app.running(ctx, c)
	if d == nil && err == nil {
		err = abi.NewError(abi.CodeUnavailable, "the slot that served the data folder does not run").WithReason(client.ReasonNoSlot).WithHint("start it again: memhost run")
	}
	return d, err
}

// lost tells whether the error means that the door leads nowhere any more, and forgets it then.
func (l *slotLine) lost(d *door, e *abi.Error) bool {
	if d.address == "" || !slices.Contains([]string{client.ReasonNoSlot, client.ReasonNotASlot, client.ReasonConnection}, e.Reason) {
		return false
	}
	l.mu.Lock()
	if l.door == d {
		l.door = nil
	}
	l.mu.Unlock()
	d.close()
	return true
}

// close gives the data folder free, where the line has it.
func (l *slotLine) close() {
	l.mu.Lock()
	d := l.door
	l.door, l.closed = nil, true
	l.mu.Unlock()
	if d != nil {
		d.close()
	}
}
