package follow

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// PageEvents is how many events a follower reads at a time.
const PageEvents = 256

const (
	// batchEvents is the most events of a scope in one delivery.
	batchEvents = 16
	// turnRest is how many events may be undelivered when the switch to this memory starts.
	turnRest = 32
	// deliverPause is the first pause after a failed delivery; it doubles up to deliverPauseMax.
	deliverPause, deliverPauseMax = time.Second, time.Minute
	// mostTries is how often an event that the memory refuses, or whose outcome stays unknown, is tried before it is
	// left open.
	mostTries = 4
	// idlePause is how often a follower that has caught up checks its open events.
	idlePause = 30 * time.Second
	// readyPause is the shortest time between two checks whether a memory is ready, readyPauseMax the longest.
	readyPause, readyPauseMax = 500 * time.Millisecond, 10 * time.Second
)

// archivedEvent is an event and its number in the archive.
type archivedEvent struct {
	number int64
	event  *abi.MemoryEvent
}

// delivery is the events for one scope, in order.
type delivery struct {
	scope  abi.MemoryScope
	events []archivedEvent
}

// run delivers events until ctx ends, or until the memory serves.
func (f *Follower) run(ctx context.Context) {
	for wait := deliverPause; ctx.Err() == nil; {
		more, err := f.work(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.waits(err, wait)
			f.pause(ctx, wait)
			wait = min(2*wait, deliverPauseMax)
			continue
		}
		wait = deliverPause
		if more && !f.nearlyCaughtUp() {
			continue
		}
		served, idle := f.caughtUp(ctx)
		if served {
			return
		}
		f.pause(ctx, idle)
	}
}

// nearlyCaughtUp reports whether a follower that should serve had so little left that the rest can be delivered during
// the switch. While callers write continuously, there is always something left.
func (f *Follower) nearlyCaughtUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turn && f.lastPage <= turnRest
}

// pause pauses until the follower is woken, or limit is over.
func (f *Follower) pause(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// work opens the memory and delivers one page. more is false if nothing was left.
func (f *Follower) work(ctx context.Context) (more bool, err error) {
	if err := f.memory.Open(ctx); err != nil {
		return false, err
	}
	return f.page(ctx)
}

// page reads the next events from the archive and delivers them. First it repeats the resets that were made before the
// page was read; later resets cover all of its events.
func (f *Follower) page(ctx context.Context) (more bool, err error) {
	if err := f.release(ctx); err != nil {
		return false, err
	}
	record := f.Record()
	if _, people := record.waitingEvents(); people >= maxWaitingPeople {
		if _, why := f.nextDue(); why != nil {
			return false, why
		}
	}
	entries, _, err := f.store.read(ctx, &record, record.Position, PageEvents)
	if err != nil {
		return false, err
	}
	erasures, err := f.store.Archive.Erasures(ctx)
	if err != nil {
		return false, err
	}
	erased, err := f.erase(ctx, erasures, record.Erased)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 && erased == record.Erased {
		return false, nil
	}
	f.mu.Lock()
	f.lastPage, f.inPage = len(entries), 0
	if len(entries) > 0 {
		f.pageEnd = entries[len(entries)-1].Seq
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.pageEnd = 0
		f.mu.Unlock()
	}()
	scopes, leftOut, err := f.sortOut(entries, erasures)
	if err != nil {
		return false, err
	}
	result, err := f.deliverScopes(ctx, scopes)
	if err != nil {
		return false, err
	}
	err = f.keep(ctx, func(r *Record) {
		r.Erased = erased
		r.Done += result.done
		r.LeftOut += leftOut + result.leftOut
		r.hold(result.held)
		if len(entries) > 0 {
			r.Position = entries[len(entries)-1].Seq
		}
	})
	f.mu.Lock()
	f.inPage = 0
	f.mu.Unlock()
	if err == nil {
		err = f.store.trim(ctx)
	}
	return true, err
}

// erase repeats at the follower those resets of scopes that were made since the last call, and returns the number of
// the last reset.
func (f *Follower) erase(ctx context.Context, erasures []archive.Erasure, after int64) (int64, error) {
	for _, e := range erasures {
		if e.Number <= after {
			continue
		}
		if err := f.memory.Reset(f.calls, e.Scope()); err != nil {
			return after, err
		}
		after = e.Number
	}
	return after, nil
}

// sortOut parses a page and groups its events by scope, in order. leftOut counts events that the follower should not
// get.
func (f *Follower) sortOut(entries []archive.Entry, erasures []archive.Erasure) (scopes []delivery, leftOut int64,
	err error) {
	f.mu.Lock()
	record, shadows := f.record, !f.turn
	f.mu.Unlock()
	at := map[abi.MemoryScope]int{}
	for i := range entries {
		event, err := entries[i].Decode()
		if err != nil {
			return nil, 0, err
		}
		imported := entries[i].Provider == "" && entries[i].Seq > record.FillTo && shadows
		if imported || f.memory.TestSession(event.SessionID) || record.wasErased(erasures, entries[i].Seq, event) {
			leftOut++ // an import is not a write: a shadow gets what memory gets
			continue
		}
		scope, err := f.memory.Scope(event)
		if err != nil {
			return nil, 0, err
		}
		n, known := at[scope]
		if !known {
			n = len(scopes)
			at[scope], scopes = n, append(scopes, delivery{scope: scope})
		}
		scopes[n].events = append(scopes[n].events, archivedEvent{entries[i].Seq, event})
	}
	return scopes, leftOut, nil
}

// deliveryCounts counts the outcomes of deliveries. held lists the scopes whose events are held back.
type deliveryCounts struct {
	done, leftOut, open int64
	held                []heldScope
}

// deliverScopes delivers to scopes, lanes of them at a time. It stops at the first error.
func (f *Follower) deliverScopes(ctx context.Context, scopes []delivery) (sum deliveryCounts, err error) {
	var mu sync.Mutex
	err = f.sideBySide(ctx, len(scopes), func(ctx context.Context, i int) error {
		result, err := f.deliverUnlessHeld(ctx, scopes[i])
		mu.Lock()
		defer mu.Unlock()
		sum.done += result.done
		sum.leftOut += result.leftOut
		sum.held = append(sum.held, result.held...)
		return err
	})
	if err != nil {
		return deliveryCounts{}, err
	}
	return sum, nil
}

// deliverScope delivers to a scope, in order. It returns when each event was delivered, left out, recorded as open, or
// held back (because the scope is read-only or the event must be retried later), or when ctx ends.
func (f *Follower) deliverScope(ctx context.Context, d delivery) (sum deliveryCounts, err error) {
	size := 1
	if f.memory.Has(abi.OpRecordEvents) {
		size = batchEvents
	}
	for len(d.events) > 0 {
		batch := d.events[:min(size, len(d.events))]
		answers, err := f.send(ctx, batch)
		for i := 0; err == nil && i < len(batch); i++ {
			result, waited, failed := f.settle(ctx, d.scope, batch[i], &answers[i])
			if failed != nil {
				err, d.events = failed, d.events[i:]
				break
			}
			switch result {
			case outcomeDone:
				sum.done++
			case outcomeLeftOut:
				sum.leftOut++
			case outcomeOpen:
				sum.open++
			}
			if waited { // the other answers are outdated: what stopped this event stopped them too
				batch = batch[:i+1]
			}
		}
		if errors.Is(err, errHeld) {
			sum.held = heldScopes(d, false)
			return sum, nil
		}
		var failed *failure
		if errors.As(err, &failed) {
			f.postpone(d.scope, failed)
			sum.held = heldScopes(d, true)
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		f.mu.Lock()
		f.inPage += int64(len(batch))
		f.speed.add(time.Now(), int64(len(batch)))
		f.mu.Unlock()
		d.events = d.events[len(batch):]
	}
	return sum, nil
}

// outcome is the result of delivering an event.
type outcome int

const (
	outcomeDone outcome = iota
	outcomeLeftOut
	outcomeOpen
	outcomeAgain
	outcomeReadOnly
	// outcomeUnreached: the backend could not be asked whether the event has arrived.
	outcomeUnreached
)

// send delivers events of one scope. It respects the rate limit, waits for the wall, and pauses while callers are being
// served. Every event gets an answer.
//
// Errors: errHeld if the scope is read-only but the slot is not.
func (f *Follower) send(ctx context.Context, batch []archivedEvent) ([]abi.ReceiptOrError, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := f.waitForPause(ctx); err != nil {
		return nil, err
	}
	if err := f.waitForWall(ctx, batch[0].event); err != nil {
		return nil, err
	}
	if err := f.keepRate(ctx, len(batch)); err != nil {
		return nil, err
	}
	f.sets(report.FollowerFilling)
	list := new(abi.EventBatch)
	for _, e := range batch {
		list.Events = append(list.Events, *e.event)
	}
	began := time.Now()
	calls := traceparent.WithCauses(f.calls, f.store.causesOf(batch)...)
	receipts, err := f.memory.RecordEvents(calls, list) // a delivery that has started runs to its end
	if err != nil {
		return nil, err
	}
	f.giveWay(ctx, time.Since(began))
	return receipts.Receipts, ctx.Err()
}

// settle finds out what became of an event of a scope. waited means that it was sent again because the wall was raised
// in between.
//
// Errors: *failure if it has to be retried later.
func (f *Follower) settle(ctx context.Context, scope abi.MemoryScope, e archivedEvent, answer *abi.ReceiptOrError) (
	_ outcome, waited bool, err error) {
	for {
		result, why := f.judge(answer, f.tryOf(scope))
		f.tally.add(result)
		switch result {
		case outcomeDone, outcomeLeftOut:
			f.noteArrival(scope)
			return result, waited, nil
		case outcomeOpen:
			f.noteArrival(scope)
			return result, waited, f.noteOpen(ctx, e, answer)
		case outcomeReadOnly: // send waits for the wall
		default:
			return result, waited, &failure{why: why, counts: result != outcomeUnreached}
		}
		answers, err := f.send(ctx, []archivedEvent{e})
		if err != nil {
			return result, waited, err
		}
		answer, waited = &answers[0], true
	}
}

// unreachableError is why the backend could not be asked about an event whose outcome is unknown. It is nil if the
// backend was asked: a backend that does not know yet, or refuses temporarily, says when to ask again.
func unreachableError(r *abi.WriteReceipt) *abi.Error {
	if r.Trace == nil || r.Trace.Details["error"] == nil {
		return nil
	}
	why := new(abi.Error)
	if abi.Unmarshal(r.Trace.Details["error"], why) != nil || why.RetryAfterMS != nil || !answercheck.FailsForNow(why) {
		return nil
	}
	why.RetryAfterMS = r.RetryAfterMS
	return why
}

// afterOr is the time to wait that an error names, at most deliverPauseMax, or other if it names none.
func afterOr(e *abi.Error, other time.Duration) time.Duration {
	if e == nil || e.RetryAfterMS == nil {
		return other
	}
	return min(time.Duration(*e.RetryAfterMS)*time.Millisecond, deliverPauseMax)
}

// judge decides what an answer means for the event. With outcomeAgain, why is the reason to wait.
func (f *Follower) judge(answer *abi.ReceiptOrError, try int) (_ outcome, why *abi.Error) {
	if r := answer.Receipt; r != nil {
		switch {
		case r.Status == abi.StatusSkippedReadOnly:
			return outcomeReadOnly, nil
		case !answercheck.Undecided(r.Status):
			return outcomeDone, nil
		case !f.memory.Has(abi.OpFindEvent):
			return outcomeOpen, nil
		}
		if e := unreachableError(r); e != nil {
			return outcomeUnreached, e
		}
		if try >= mostTries {
			return outcomeOpen, nil
		}
		e := abi.NewError(abi.CodeUnavailable, "the outcome of event "+r.EventID+" is not known yet")
		e.RetryAfterMS = r.RetryAfterMS
		return outcomeAgain, e
	}
	e := answer.Error
	later := answercheck.FailsForNow(e) || e.Native != nil && e.Native.Status != nil &&
		slices.Contains([]int64{http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly}, *e.Native.Status)
	switch {
	case e.Code == abi.CodeConflict && e.Reason == "forgotten":
		return outcomeLeftOut, nil
	case e.Code == abi.CodeUnauthenticated || e.Code == abi.CodeDenied || e.Code == abi.CodeReadOnly || later:
		return outcomeAgain, e // not the event's fault
	case e.Retryable && try < mostTries:
		return outcomeAgain, e
	}
	return outcomeOpen, nil
}

// sets and waits update the reported state of the follower.
func (f *Follower) sets(now report.FollowerState) {
	f.mu.Lock()
	f.state = now
	f.mu.Unlock()
}

func (f *Follower) waits(why error, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.failure, f.retryAt = report.FollowerWaiting, abi.AsError(why), time.Now().Add(wait)
}

// caughtUp handles a follower that has nothing left to deliver: it checks whether everything is ready, asks about open
// events, and switches to a backfill that should serve. idle is how long the follower may then rest.
func (f *Follower) caughtUp(ctx context.Context) (served bool, idle time.Duration) {
	f.mu.Lock()
	early := time.Until(f.nextLook)
	f.mu.Unlock()
	if early > 0 {
		f.sets(report.FollowerNotReady)
		return false, early
	}
	began := time.Now()
	look, err := f.readOpenWork(ctx)
	if err == nil && len(look.again) > 0 {
		if err = f.again(ctx, look.again); err == nil {
			look, err = f.readOpenWork(ctx)
		}
	}
	f.mu.Lock()
	f.retryRefused = false
	f.mu.Unlock()
	if err != nil {
		f.waits(err, deliverPause)
		return false, deliverPause
	}
	f.mu.Lock()
	turn, accept, held, dropped := f.turn, f.accept, f.record.heldEvents(), f.record.gaps()
	_, waiting := f.record.waitingEvents()
	f.mu.Unlock()
	if waiting > 0 {
		at, why := f.nextDue()
		wait := min(max(time.Until(at), time.Millisecond), deliverPauseMax)
		if why != nil {
			f.waits(why, wait)
		}
		return false, wait
	}
	notReady := look.unseen
	if turn && notReady > 0 {
		if notReady, err = f.memory.Awaited(ctx, look.listed); err != nil {
			f.waits(err, deliverPause)
			return false, deliverPause
		}
	}
	switch {
	case notReady > 0:
		f.sets(report.FollowerNotReady)
		return false, f.looksLater(time.Since(began))
	case held > 0 && !accept:
		f.sets(report.FollowerReadOnly)
		return false, 500 * time.Millisecond
	case (len(look.open) > 0 || dropped > 0) && !accept:
		f.sets(report.FollowerAsks)
		return false, idlePause
	}
	f.sets(report.FollowerReady)
	if !turn {
		return false, idlePause
	}
	served, err = f.memory.TakeTurn(ctx)
	if err != nil {
		f.waits(err, deliverPause)
	}
	return served, deliverPause
}

// looksLater postpones the next look by twenty times what the last one took. A look reads the name of every event that
// is not ready, of which there may be a hundred thousand; newly recorded events wake the follower anyway.
func (f *Follower) looksLater(took time.Duration) time.Duration {
	wait := min(max(20*took, readyPause), readyPauseMax)
	f.mu.Lock()
	f.nextLook = time.Now().Add(wait)
	f.mu.Unlock()
	return wait
}
