package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/alone"
	"github.com/memhost/memhost/internal/doors/resend"
)

const (
	// The pause before a retry doubles from firstPause to longestPause.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// oneDelivery is how long a slot may take for one event. A backend that extracts memories with a language model is
	// slow.
	oneDelivery = 5 * time.Minute
	// maxUncertain is how often an event is sent if each receipt says that its outcome is unknown, and not when it can
	// be settled.
	maxUncertain = 8
)

// Run delivers the events in the box, and new ones, until ctx ends. Once end is closed it delivers what it can without
// waiting for a failing slot, and returns.
func (b *Box) Run(ctx context.Context, end <-chan struct{}, slot Slot) {
	pause := firstPause
	for {
		ended := closed(end) // checked before the pass, so that the pass includes what was added before the end
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

// Result is the result of one pass.
type Result struct {
	// Delivered events are out of the box: a slot accepted them, or rejected them permanently.
	Delivered int
	// Waiting events are still in it.
	Waiting int
	// Err is why the first waiting event waits, nil if none does.
	Err error
}

// Deliver sends every waiting event once, oldest first. An event that cannot be delivered now holds back the later ones
// of its scope, so that their order is kept. One that no slot will ever accept is set aside.
func (b *Box) Deliver(ctx context.Context, slot Slot) (r Result) {
	defer func() { b.report(r) }()
	names, err := b.names()
	if err != nil {
		r.Err = err
		return r
	}
	held := map[abi.MemoryScope]bool{} // because of an earlier event of the scope
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

// DeliverAlone is Deliver for processes that are started to deliver, of which only one works at a time: if another one
// is working it also sends what has been added since, and DeliverAlone returns.
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

// count counts an event; a nil error means that it is out of the box.
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

// send delivers one event and removes it from the box, or returns why it waits.
func (b *Box) send(ctx context.Context, slot Slot, name string, event *abi.MemoryEvent) error {
	within, cancel := context.WithTimeout(ctx, oneDelivery)
	defer cancel()
	receipt, err := slot.RecordEvent(within, event)
	if err != nil {
		if e := abi.AsError(err); ctx.Err() != nil || e.Retryable || resend.OfSlot(e) {
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

// again keeps an event whose outcome is unknown. When it is sent again, the slot looks it up in the backend and sends
// only what is missing. A receipt without retry_after_ms means that no retry can settle it, or that the slot does not
// report it: after maxUncertain of those the event is set aside.
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

// before returns an error if an event has to wait for the end of the read-only mode: it happened before the mode was
// set, so the mode must not exclude it.
func (b *Box) before(ctx context.Context, slot Slot, event *abi.MemoryEvent) (bool, error) {
	mode, err := slot.Mode(ctx)
	if e := abi.AsError(err); err != nil && e.Code == abi.CodeDenied && e.Reason == "scoped_token" {
		return false, nil // the slot does not say when the mode began; the receipt decides
	}
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

// report logs the start and the end of an outage, not every try.
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
