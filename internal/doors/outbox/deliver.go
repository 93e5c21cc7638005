package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/alone"
	"github.com/memhost/memhost/internal/doors/client"
)

const (
	// The pause before another try doubles from firstPause to longestPause.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// oneDelivery is how long a slot may take over one event. A backend that extracts memories with a language model is
	// slow.
	oneDelivery = 5 * time.Minute
	// maxUncertain is how often an event is sent whose receipt says each time that its outcome is not known, and not
	// when it can be.
	maxUncertain = 8
)

// Run delivers what is in the box and what comes in, until ctx ends. When end is closed it delivers what it still can
// without waiting for a slot that fails, and returns.
func (b *Box) Run(ctx context.Context, end <-chan struct{}, slot Slot) {
	pause := firstPause
	for {
		ended := closed(end) // before the pass: what was added before the end is part of it
		done := b.Deliver(ctx, slot)
		if ctx.Err() != nil || ended && (done.Waiting == 0 || done.Delivered == 0) {
			return
		}
		if ended {
			continue
		}
		var again <-chan time.Time
		if done.Delivered > 0 || done.Waiting == 0 {
			pause = firstPause
		}
		if done.Waiting > 0 {
			again = b.after(pause)
			pause = min(2*pause, longestPause)
		}
		select {
		case <-b.wake:
		case <-again:
		case <-end:
		case <-ctx.Done():
			return
		}
	}
}

func closed(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// Result tells what one pass came to.
type Result struct {
	// Delivered events are out of the box: a slot took them, or refused them for good.
	Delivered int
	// Waiting events are still in it.
	Waiting int
	// Err is why the first of those waits, nil where none does.
	Err error
}

// Deliver sends every event that waits, oldest first, once. An event that cannot be delivered for now holds back the
// later ones of its scope, so that their order is kept; one that no slot will take as it is is put aside.
func (b *Box) Deliver(ctx context.Context, slot Slot) (r Result) {
	defer func() { b.report(r) }()
	names, err := b.names()
	if err != nil {
		r.Err = err
		return r
	}
	held := map[abi.MemoryScope]bool{} // by an earlier event of the scope
	for i, name := range names {
		event, err := b.read(name)
		var damaged *abi.Error
		switch {
		case errors.Is(err, errGone):
			continue
		case errors.As(err, &damaged) && damaged.Code == abi.CodeInvalidArgument:
			r.count(b.putAside(name, err))
			continue
		case err != nil:
			r.count(err)
			continue
		}
		scope := abi.MemoryScope{RunID: event.RunID, PersonaID: event.UserID, AgentID: event.AgentID}
		if held[scope] {
			r.Waiting++
			continue
		}
		err = b.send(ctx, slot, name, event)
		r.count(err)
		if err != nil {
			held[scope] = true
			if code := abi.CodeOf(err); ctx.Err() != nil || code == abi.CodeUnavailable ||
				code == abi.CodeUnauthenticated {
				r.Waiting += len(names) - i - 1
				return r
			}
		}
	}
	return r
}

// DeliverAlone is Deliver by one process at a time, for those that are started for it: where another one has begun,
// that one also sends what has come in meanwhile, and DeliverAlone returns.
func (b *Box) DeliverAlone(ctx context.Context, slot Slot) {
	for more := true; more && ctx.Err() == nil; {
		done, ok := alone.Try(b.dir)
		if !ok {
			return
		}
		before, err := b.names()
		b.Deliver(ctx, slot)
		done()
		after, _ := b.names()
		more = err == nil && slices.ContainsFunc(after, func(name string) bool {
			_, known := slices.BinarySearch(before, name)
			return !known
		})
	}
}

// count counts an event: nil means that it is out of the box.
func (r *Result) count(err error) {
	if err == nil {
		r.Delivered++
		return
	}
	r.Waiting++
	if r.Err == nil {
		r.Err = err
	}
}

// send delivers one event and takes it out of the box, or says why it waits.
func (b *Box) send(ctx context.Context, slot Slot, name string, event *abi.MemoryEvent) error {
	within, cancel := context.WithTimeout(ctx, oneDelivery)
	defer cancel()
	receipt, err := slot.RecordEvent(within, event)
	if err != nil {
		if e := abi.AsError(err); ctx.Err() != nil || e.Retryable || client.OfSlot(e) {
			return err
		}
		return b.putAside(name, err)
	}
	switch receipt.Status {
	case abi.StatusUncertain, abi.StatusPartial:
		return b.again(name, event, receipt)
	case abi.StatusSkippedReadOnly:
		if before, err := b.before(within, slot, event); before || err != nil {
			return err
		}
		b.log.Info("the slot is read-only: the turn was not recorded, and will not be", "event_id", event.EventID)
	}
	return b.remove(name)
}

// again keeps an event whose outcome is not known. The slot looks it up in the backend when it comes again, and sends
// only what is missing. A receipt without retry_after_ms says that no retry can settle it, or it is of a slot that does
// not tell: after maxUncertain of those the event is put aside.
func (b *Box) again(name string, event *abi.MemoryEvent, receipt *abi.WriteReceipt) error {
	e := abi.NewError(abi.CodeTimeout, "the slot does not know whether event "+event.EventID+" has arrived: "+
		string(receipt.Status)).WithReason("uncertain")
	if e.RetryAfterMS = receipt.RetryAfterMS; e.RetryAfterMS != nil {
		return e
	}
	b.mu.Lock()
	b.tries[name]++
	tries := b.tries[name]
	b.mu.Unlock()
	if tries < maxUncertain {
		return e
	}
	return b.putAside(name, e)
}

// before tells by an error that an event waits for the end of the read-only mode: it happened before the mode was set,
// so it is not what the mode keeps out.
func (b *Box) before(ctx context.Context, slot Slot, event *abi.MemoryEvent) (bool, error) {
	mode, err := slot.Mode(ctx)
	if err != nil {
		return false, err
	}
	if !mode.ReadOnly || mode.Scope != nil {
		return false, nil
	}
	since, err := abi.ParseTime(mode.Since)
	if err != nil {
		return false, nil
	}
	if said, err := abi.ParseTime(event.Timestamp); err != nil || !said.Before(since) {
		return false, nil
	}
	return true, abi.NewError(abi.CodeReadOnly, "the slot is read-only since "+mode.Since+"; the event is older and "+
		"waits").WithHint("memhost mode write ends it")
}

// report logs the beginning and the end of an outage, not every try.
func (b *Box) report(r Result) {
	b.mu.Lock()
	before := b.outage
	b.outage = r.Waiting > 0
	b.mu.Unlock()
	switch {
	case r.Waiting > 0 && !before:
		b.log.Warn("events wait on disk for the slot", "events", r.Waiting, "why", r.Err, "folder", b.dir)
	case r.Waiting == 0 && before:
		b.log.Warn("the events that waited are delivered", "events", r.Delivered)
	case r.Err != nil && r.Waiting == 0:
		b.log.Error("the outbox cannot be read", "error", r.Err)
	}
}
