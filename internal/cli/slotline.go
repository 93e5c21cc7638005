package cli

import (
	"context"
	"slices"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/client"
)

// SlotLine connects a long-lived child process to its slot: it finds the slot when it is first needed, and again when
// the connection is lost. The user of SlotLine decides how to find the slot, and what to do while none runs.
type SlotLine struct {
	// reach finds a slot, or opens one. It is called once at a time; ctx ends with the line. Required.
	reach func(ctx context.Context) (*Door, error)
	// explainGone adds what to do to the error of a slot that no longer answers. Nil leaves the error as it is.
	explainGone func(err error) error

	life context.Context // of the line
	end  context.CancelFunc

	mu      sync.Mutex
	door    *Door    // nil: none
	attempt *attempt // a search for the slot in progress
	closed  bool
}

// attempt is a search for the slot. Several callers may wait for it, each as long as it can.
type attempt struct {
	done chan struct{}
	door *Door
	err  error
}

// NewSlotLine makes a line that has not searched yet. Only the values of ctx are used: Close ends the line.
func NewSlotLine(ctx context.Context, reach func(ctx context.Context) (*Door, error),
	explainGone func(err error) error) *SlotLine {
	l := &SlotLine{reach: reach, explainGone: explainGone}
	l.life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Use makes a call through the line; it is a mcpdoor.Slot. If the slot is gone, it searches once more, because the slot
// may have been restarted, perhaps at another address. Repeating the call is safe, for events as well.
func (l *SlotLine) Use(ctx context.Context, ask func(ctx context.Context, c host.Contract) error) error {
	for first := true; ; first = false {
		d, err := l.Get(ctx)
		if err != nil {
			return err
		}
		if err = ask(ctx, d); err == nil || !l.lost(d, err) {
			return err
		}
		if first && ctx.Err() == nil {
			continue
		}
		if l.explainGone != nil {
			err = l.explainGone(err)
		}
		return err
	}
}

// reasonOpening is the error reason if the slot was not reached in the caller's time. Nothing was sent.
const reasonOpening = "opening"

// Get returns the door to the slot. A search continues after its caller's time is over, and the next caller gets its
// result.
func (l *SlotLine) Get(ctx context.Context) (*Door, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errLineClosed()
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
		return nil, abi.WrapError(abi.CodeUnavailable, "the slot is still being looked for or opened",
			context.Cause(ctx)).WithReason(reasonOpening).WithHint("call again in a moment")
	}
}

func errLineClosed() error {
	return abi.NewError(abi.CodeUnavailable, "this process is ending").WithReason("stopping")
}

func (l *SlotLine) search(at *attempt) {
	defer close(at.done)
	d, err := l.reach(l.life)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	if err == nil && l.closed {
		d.Close()
		d, err = nil, errLineClosed()
	}
	at.door, at.err, l.door = d, err, d
}

// lost reports whether an error means that the slot is gone. If so it drops the door.
func (l *SlotLine) lost(d *Door, err error) bool {
	if d.Address == "" || !slices.Contains([]string{client.ReasonNoSlot, client.ReasonNotASlot,
		client.ReasonConnection}, abi.AsError(err).Reason) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.door == d {
		l.door = nil
		d.Close()
	}
	return true
}

// Close ends the line, and releases the data folder if the line opened it. It waits for a search in progress.
func (l *SlotLine) Close() {
	l.mu.Lock()
	l.closed = true
	at := l.attempt
	l.mu.Unlock()
	l.end()
	if at != nil {
		<-at.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.door != nil {
		l.door.Close()
		l.door = nil
	}
}
