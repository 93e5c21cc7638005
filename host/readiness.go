package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/state"
)

// Pauses between two looks: the first, and the longest, to which they grow.
const (
	readinessPause    = 50 * time.Millisecond
	readinessPauseMax = 2 * time.Second
)

// Readiness implements Contract. It looks until the answer is no longer pending or the request's time is over; time
// over is reported as pending. A look that fails with a retryable error is repeated, too; when the time is over it is
// reported as pending, with the reason. A request without time gets the error. A provider with outstanding work of its
// own (wait_until_ready) may do it in the meantime, unless the scope is read-only.
func (s *Slot) Readiness(ctx context.Context, r *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	return perform(ctx, s, abi.OpReadiness, r, func(ctx context.Context) (*abi.BackendReadiness, error) {
		if err := r.Validate(); err != nil {
			return nil, inOperation(abi.OpReadiness, err)
		}
		if r.RetryEmpty {
			if err := s.retryEmpty(ctx, r.Scope); err != nil {
				return nil, err
			}
		}
		wait := s.host.waiting(time.Duration(r.TimeoutMS) * time.Millisecond)
		for pause := readinessPause; ; pause = min(2*pause, readinessPauseMax) {
			ready, err := s.lookReady(ctx, r)
			left := wait.left()
			if err != nil && r.TimeoutMS > 0 && answercheck.FailsForNow(err) {
				ready, err = s.notSeen(ctx, r, err)
			}
			if err != nil || ready.Status != abi.ReadinessPending || left <= 0 {
				return ready, err
			}
			worked, err := s.workReady(ctx, r, left)
			if err != nil {
				return nil, err
			}
			if worked && pause == readinessPause {
				continue // what it did may be seen at once; a guest that always says so is not asked without a pause
			}
			wait.pause(ctx, min(pause, left))
			if ctx.Err() != nil {
				return ready, nil
			}
		}
	})
}

// notSeen is the answer after a look that failed for now: what the ledger knows, and why the backend could not be
// asked.
func (s *Slot) notSeen(ctx context.Context, r *abi.ReadinessRequest, why error) (ready *abi.BackendReadiness,
	err error) {
	ctx, o, err := s.begin(ctx, abi.OpReadiness)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(r.Scope)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // the store answers at once, and the caller gets what is known
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	u, err := o.readUnseen(ctx)
	if err != nil {
		return nil, err
	}
	e := abi.AsError(why)
	ready = &abi.BackendReadiness{Status: abi.ReadinessPending, Method: "the last look failed: the ledger alone",
		EventIDs: abi.ReadinessEventIDs{Pending: u.received(), Lost: []string{}, Failed: []string{}, Empty: []string{},
			Unknown: []string{}},
		Warnings: []string{fmt.Sprintf("readiness_failing: %s: %s", e.Code, e.Message)}}
	u.report(ready, o.provider.has(abi.OpFindEvent))
	return ready, o.listEmpty(ctx, ready)
}

// received are the events of which only the provider can say whether they have arrived.
func (u *unseen) received() []string {
	list := []string{}
	for _, id := range u.ids {
		if e := u.entries[id]; e.state == deliveryReceived && !e.uncertain() {
			list = append(list, id)
		}
	}
	return list
}

// workReady lets a provider with outstanding work do it. It reports whether the work was finished before the time was
// over.
func (s *Slot) workReady(ctx context.Context, r *abi.ReadinessRequest, left time.Duration) (worked bool, err error) {
	ctx, o, err := s.begin(ctx, abi.OpWaitUntilReady)
	if err != nil {
		return false, err
	}
	defer o.end(&err)
	if !o.provider.has(abi.OpWaitUntilReady) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, left+s.host.slack)
	defer cancel()
	answer := new(abi.BackendReadiness)
	admitted, err := o.change(ctx, r.Scope, &abi.WaitRequest{DeadlineMS: left.Milliseconds()}, answer)
	if code := abi.CodeOf(err); err != nil && (code == abi.CodeTimeout || code == abi.CodeConflict) {
		return false, nil // pending, as the last look says; after a conflict it runs again
	}
	return err == nil && admitted && answer.Status != abi.ReadinessPending, err
}

// unseenMost is how many events one look passes to the guest; further ones wait for the next look.
const unseenMost = 5000

// lookUps is how many events of unknown outcome one look asks the backend about.
const lookUps = 32

// lookReady takes one look: the guest judges what was delivered and not seen yet, the backend is asked about what is
// uncertain, and the ledger learns from both.
func (s *Slot) lookReady(ctx context.Context, r *abi.ReadinessRequest) (ready *abi.BackendReadiness, err error) {
	ctx, o, err := s.begin(ctx, abi.OpReadiness)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(r.Scope)
	if err != nil {
		return nil, err
	}
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	u, err := o.readUnseen(ctx)
	if err != nil {
		return nil, err
	}
	ready = new(abi.BackendReadiness)
	if err = o.enter(ctx, &abi.ReadinessMarkers{Markers: u.markers()}, ready); err != nil {
		return nil, err
	}
	complete(ready)
	o.askUncertain(ctx, u)
	o.learn(ctx, u, ready)
	u.report(ready, o.provider.has(abi.OpFindEvent))
	return ready, o.listEmpty(ctx, ready)
}

// complete gives every list of an answer a value.
func complete(r *abi.BackendReadiness) {
	for _, list := range []*[]string{&r.EventIDs.Pending, &r.EventIDs.Lost, &r.EventIDs.Failed, &r.EventIDs.Empty,
		&r.EventIDs.Unknown, &r.Warnings} {
		if *list == nil {
			*list = []string{}
		}
	}
}

// unseen are the events of a generation that are not known to have arrived, oldest first by id.
type unseen struct {
	ids     []string
	entries map[string]*ledgerEntry
	// more: there are further ones.
	more bool
}

func (o *operation) readUnseen(ctx context.Context) (*unseen, error) {
	u := &unseen{entries: map[string]*ledgerEntry{}}
	space := o.state.Space()
	records, err := o.slot.host.store.Records(ctx, tableUnseen, space[:], nil, unseenMost+1)
	if err != nil {
		return nil, stateError(err)
	}
	if len(records) > unseenMost {
		records, u.more = records[:unseenMost], true
	}
	for _, r := range records {
		id := string(r.Key[len(space):])
		entry, err := o.slot.host.ledgerRecord(ctx, space, id)
		if err != nil {
			return nil, err
		}
		if entry == nil {
			continue
		}
		u.ids, u.entries[id] = append(u.ids, id), entry
	}
	return u, nil
}

// markers are those of the events that the guest can still judge.
func (u *unseen) markers() []string {
	list := []string{}
	for _, id := range u.ids {
		if e := u.entries[id]; e.state == deliveryReceived {
			list = append(list, e.receipt.Markers...)
		}
	}
	return list
}

// askUncertain asks the backend about events whose outcome is unknown. Absence that is certain is a loss.
func (o *operation) askUncertain(ctx context.Context, u *unseen) {
	if !o.provider.has(abi.OpFindEvent) {
		return
	}
	asked := 0
	for _, id := range u.ids {
		known := u.entries[id]
		if !known.uncertain() {
			continue
		}
		if asked++; asked > lookUps {
			return
		}
		settled := o.untilSettled(ctx, id, known) == 0 // before the look, as in settle
		answer, err := o.findEvent(ctx, id, "", known)
		if err != nil {
			return // the backend is not there to be asked; the events stay as they are
		}
		switch {
		case answer.Found == answercheck.FoundPresent:
			o.amend(ctx, u, amendment{id, o.provider.found(id, known, answer)})
		case answer.Found == answercheck.FoundAbsent && settled:
			lost := *known
			lost.state = deliveryLost
			if lost.receipt == nil {
				lost.receipt = &abi.WriteReceipt{EventID: id, Status: abi.StatusUncertain, NativeIDs: []string{},
					NativeIDsKind: abi.NativeIDsNone, Markers: []string{}, Warnings: []string{}}
			}
			o.amend(ctx, u, amendment{id, &lost})
		}
	}
}

// learn stores what the guest said. Events that it calls lost or failed may be sent again. Of empty ones nothing was
// kept (empty.go). Those that it does not name have arrived, if the status is ready or degraded.
func (o *operation) learn(ctx context.Context, u *unseen, ready *abi.BackendReadiness) {
	named := map[string]bool{}
	for _, list := range [][]string{ready.EventIDs.Pending, ready.EventIDs.Lost, ready.EventIDs.Failed,
		ready.EventIDs.Unknown} {
		for _, id := range list {
			named[id] = true
		}
	}
	var changed []amendment
	for _, id := range u.ids {
		known := u.entries[id]
		if known.state != deliveryReceived {
			continue
		}
		next := *known
		switch {
		case slices.Contains(ready.EventIDs.Lost, id):
			next.state = deliveryLost
		case slices.Contains(ready.EventIDs.Failed, id):
			next.state = deliveryFailed
		case known.uncertain() || named[id]:
			continue
		case slices.Contains(ready.EventIDs.Empty, id):
			none := int64(0)
			next.receipt = seenReceipt(known.receipt)
			next.receipt.StoredCount = &none
			next.receipt.Status = abi.StatusNotRetained
			next.receipt.Warnings = append(next.receipt.Warnings, warnEmptied)
			next.state = deliveryEmpty
		case ready.Status == abi.ReadinessReady || ready.Status == abi.ReadinessDegraded:
			next.receipt = seenReceipt(known.receipt)
		default:
			continue
		}
		changed = append(changed, amendment{id, &next})
	}
	for some := range slices.Chunk(changed, amendMost) {
		o.amend(ctx, u, some...)
	}
}

const warnEmptied = "nothing_extracted: the backend worked the event off and made no memory of it"

// seenReceipt is a receipt whose event has arrived.
func seenReceipt(r *abi.WriteReceipt) *abi.WriteReceipt {
	seen := *r
	seen.Markers, seen.Warnings = []string{}, slices.Clone(r.Warnings)
	if seen.Status != abi.StatusNotRetained {
		seen.Status = abi.StatusCommitted
	}
	return &seen
}

// amendment is a new record of the ledger for an event.
type amendment struct {
	id   string
	next *ledgerEntry
}

// amendMost is how many records are changed at a time: a commit that is synced takes as long for one. More of them
// would let a writer of the scope wait.
const amendMost = 100

// amend changes records of the ledger, unless a writer of the scope changed them meanwhile: a look does not take the
// scope's lock. If one of several was changed, each is tried alone.
func (o *operation) amend(ctx context.Context, u *unseen, list ...amendment) {
	var b state.Batch
	space := o.state.Space()
	for _, a := range list {
		b.ExpectRecord(tableLedger, ledgerKey(space, a.id), u.entries[a.id].stored)
		putLedger(&b, o.scope, space, a.id, a.next)
	}
	err := o.slot.host.commit(ctx, &b)
	switch {
	case err == nil:
		for _, a := range list {
			a.next.stored = a.next.encode()
			u.entries[a.id] = a.next
		}
	case errors.Is(err, state.ErrConflict) && len(list) > 1:
		for _, a := range list {
			o.amend(ctx, u, a)
		}
	default:
		o.provider.logger.Debug("the ledger was changed by a write meanwhile", "event_id", list[0].id, "events",
			len(list), "error", err)
	}
}

// report completes a guest's answer with what the ledger knows: what was lost or failed stays so until it is recorded
// again, and nothing is ready while an outcome is unknown: pending where the backend can still be asked, unknown where
// it cannot.
func (u *unseen) report(ready *abi.BackendReadiness, canAsk bool) {
	add := func(list *[]string, id string) {
		if !slices.Contains(*list, id) {
			*list = append(*list, id)
		}
	}
	failed, unknown := false, false
	for _, id := range u.ids {
		switch e := u.entries[id]; {
		case e.state == deliveryLost:
			add(&ready.EventIDs.Lost, id)
			failed = true
		case e.state == deliveryFailed, e.state == deliveryAgain:
			add(&ready.EventIDs.Failed, id)
			failed = true
		case e.uncertain():
			add(&ready.EventIDs.Unknown, id)
			unknown = true
		}
	}
	if u.more {
		ready.Warnings = append(ready.Warnings, warnUnseenMore)
	}
	if ready.Status != abi.ReadinessReady {
		return
	}
	switch {
	case failed:
		ready.Status = abi.ReadinessFailed
	case unknown && !canAsk:
		ready.Status = abi.ReadinessUnknown
	case unknown || u.more:
		ready.Status = abi.ReadinessPending
	}
}

const warnUnseenMore = "readiness_partial: more events wait than one look judges; look again"
