package cli

import (
	"context"
	"slices"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/client"
)

// slotLine connects a long-lived child process to its slot: it finds the slot when it is first needed, and again when
// the connection is lost. The user of slotLine decides how to find it, and what to do while none runs.
type slotLine struct {
	// reach finds a slot, or opens one. One call at a time; ctx ends with the line. Required.
	reach func(ctx context.Context) (*door, error)
	// gone adds what to do about a slot that was found and no longer answers. Nil leaves the error as it is.
	gone func(err error) error

	life context.Context // of the line
	end  context.CancelFunc

	mu      sync.Mutex
	door    *door    // nil: none
	attempt *attempt // to reach the slot, under way
	closed  bool
}

// attempt is a search for the slot. Several callers may wait for it, each as long as it can.
type attempt struct {
	done chan struct{}
	door *door
	err  error
}

// newSlotLine makes a line that looks for nothing yet. ctx carries values only: close ends the line.
func newSlotLine(ctx context.Context, reach func(ctx context.Context) (*door, error),
	gone func(err error) error) *slotLine {
	l := &slotLine{reach: reach, gone: gone}
	l.life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// use makes a call through the line; it is a mcpdoor.Slot. When the slot is gone it is looked for once more, since it
// may have been restarted, perhaps at another address. Asking again is safe, for events as well.
func (l *slotLine) use(ctx context.Context, ask func(ctx context.Context, c host.Contract) error) error {
	for first := true; ; first = false {
		d, err := l.get(ctx)
		if err != nil {
			return err
		}
		if err = ask(ctx, d); err == nil || !l.lost(d, err) {
			return err
		}
		if first && ctx.Err() == nil {
			continue
		}
		if l.gone != nil {
			err = l.gone(err)
		}
		return err
	}
}

// reasonOpening is the error reason when the slot was not reached within the caller's time: nothing was sent.
const reasonOpening = "opening"

// get returns the door to the slot. A search goes on when its caller's time is over, and the next caller gets its
// result.
func (l *slotLine) get(ctx context.Context) (*door, error) {
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

func (l *slotLine) search(at *attempt) {
	defer close(at.done)
	d, err := l.reach(l.life)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	if err == nil && l.closed {
		d.close()
		d, err = nil, errLineClosed()
	}
	at.door, at.err, l.door = d, err, d
}

// lost reports whether an error means that the slot is gone; if so it forgets the door.
func (l *slotLine) lost(d *door, err error) bool {
	if d.address == "" || !slices.Contains([]string{client.ReasonNoSlot, client.ReasonNotASlot,
		client.ReasonConnection}, abi.AsError(err).Reason) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.door == d {
		l.door = nil
		d.close()
	}
	return true
}

// close ends the line, and releases the data folder if the line has it. It waits for a search under way.
func (l *slotLine) close() {
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
		l.door.close()
		l.door = nil
	}
}
