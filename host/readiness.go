package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
)

// Readiness implements Contract. It polls until the answer is no longer pending or the request's time is over, which is
// reported as pending. Retryable errors are retried, too; when the time is over they are reported as pending, with the
// reason. A request without a time limit gets the error. A provider that declares outstanding work (wait_until_ready)
// may do it between polls, unless the scope is read-only.
func (s *Slot) Readiness(ctx context.Context, r *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	return perform(ctx, s, abi.OpReadiness, r, func(ctx context.Context) (*abi.BackendReadiness, error) {
		if err := r.Validate(); err != nil {
			return nil, inOperation(abi.OpReadiness, err)
		}
		if r.RetryEmpty {
			if err := s.retry(ctx, r.Scope); err != nil {
				return nil, err
			}
		}
		wait := s.host.waiting(time.Duration(r.TimeoutMS) * time.Millisecond)
		for first := true; ; first = false {
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
			if worked && first {
				continue // look at once to see what it did; a guest that always reports work is polled with a pause
			}
			wait.pause(ctx)
			if ctx.Err() != nil {
				return ready, nil
			}
		}
	})
}

// notSeen is the answer after a look that failed with a retryable error: what the ledger knows, and why the backend
// could not be asked.
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
	ctx = context.WithoutCancel(ctx) // the store answers quickly, and the caller gets what is known
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	u, err := s.host.ledger.Unseen(ctx, sc.key, o.state.Space())
	if err != nil {
		return nil, err
	}
	e := abi.AsError(why)
	ready = &abi.BackendReadiness{Status: abi.ReadinessPending, Method: "the last look failed: the ledger alone",
		EventIDs: abi.ReadinessEventIDs{Pending: u.Received(), Lost: []string{}, Failed: []string{}, Empty: []string{},
			Unknown: []string{}},
		Warnings: []string{fmt.Sprintf("readiness_failing: %s: %s", e.Code, e.Message)}}
	u.Report(ready, o.provider.has(abi.OpFindEvent))
	return ready, o.listEmpty(ctx, ready)
}

// workReady has a provider do its outstanding work. It reports whether the work was finished in time.
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
		return false, nil // pending, as the last look found; after a conflict it runs again
	}
	return err == nil && admitted && answer.Status != abi.ReadinessPending, err
}

// lookUps is how many events with an unknown outcome one look asks the backend about.
const lookUps = 32

// lookReady takes one look: the guest judges delivered events that are not visible yet, the backend is asked about
// uncertain events, and both results go into the ledger.
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
	u, err := s.host.ledger.Unseen(ctx, sc.key, o.state.Space())
	if err != nil {
		return nil, err
	}
	ready = new(abi.BackendReadiness)
	if err = o.enter(ctx, &abi.ReadinessMarkers{Markers: u.Markers()}, ready); err != nil {
		return nil, err
	}
	complete(ready)
	o.askUncertain(ctx, u)
	for some := range slices.Chunk(u.Learn(ready), maxAmended) {
		o.amend(ctx, u, some...)
	}
	u.Report(ready, o.provider.has(abi.OpFindEvent))
	return ready, o.listEmpty(ctx, ready)
}

// complete makes every nil list of an answer an empty one.
func complete(r *abi.BackendReadiness) {
	for _, list := range []*[]string{&r.EventIDs.Pending, &r.EventIDs.Lost, &r.EventIDs.Failed, &r.EventIDs.Empty,
		&r.EventIDs.Unknown, &r.Warnings} {
		if *list == nil {
			*list = []string{}
		}
	}
}

// askUncertain asks the backend about events whose outcome is unknown. An event that is certainly absent is lost; one
// of which the backend has a part, and will get no more, is reported as failed.
func (o *operation) askUncertain(ctx context.Context, u *delivery.Events) {
	if !o.provider.has(abi.OpFindEvent) {
		return
	}
	asked := 0
	for _, id := range u.IDs {
		known := u.Entries[id]
		if !known.Uncertain() {
			continue
		}
		if asked++; asked > lookUps {
			return
		}
		settled := o.untilSettled(ctx, id, known) == 0 // read the clock before the lookup, as in settle
		answer, err := o.findEvent(ctx, id, "", known)
		if err != nil {
			return // the backend cannot be asked now; the events stay as they are
		}
		switch {
		case answer.Found == answercheck.FoundPresent:
			o.amend(ctx, u, delivery.Amendment{ID: id, Entry: o.provider.found(id, known, answer)})
		case answer.Found == answercheck.FoundAbsent && settled:
			o.amend(ctx, u, u.Lost(id))
		case answer.Found == answercheck.FoundPartial && settled && known.State != delivery.Part:
			o.amend(ctx, u, u.Part(id, answer.NativeIDs))
		}
	}
}

// maxAmended is how many entries one commit changes. A synced commit takes as long for one entry as for a hundred; with
// more, a concurrent writer of the scope would have to wait.
const maxAmended = 100

// amend changes ledger entries, except those that a writer of the scope changed after they were read: a look does not
// take the scope's lock. If any of several was changed, each is retried alone.
func (o *operation) amend(ctx context.Context, u *delivery.Events, list ...delivery.Amendment) {
	var b state.Batch
	u.Amend(&b, list)
	err := o.slot.host.commit(ctx, &b)
	switch {
	case err == nil:
		u.ApplyAmended(list)
	case errors.Is(err, state.ErrConflict) && len(list) > 1:
		for _, a := range list {
			o.amend(ctx, u, a)
		}
	default:
		o.provider.logger.Debug("a write changed the ledger first", "event_id", list[0].ID, "events", len(list), "error",
			err)
	}
}
