package host

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/base/pause"
)

const (
	// followPage is how many events a follower takes at a time, followBatch how many of a scope one delivery has.
	followPage, followBatch = 256, 16
	// turnRest is how many events may be left when a turn begins.
	turnRest = 32
	// deliverPause is the first pause after a failed delivery; it doubles up to deliverPauseMax.
	deliverPause, deliverPauseMax = time.Second, time.Minute
	// followTries is how often an event that the provider refuses, or knows nothing certain of, is tried before it is
	// left open.
	followTries = 4
	// followIdle is how often a follower that has everything looks at what is open.
	followIdle = 30 * time.Second
	// servingLately is how long after a caller's last operation a follower gives way.
	servingLately = 250 * time.Millisecond
)

// archivedEvent is an event with its number in the archive.
type archivedEvent struct {
	number int64
	event  *abi.MemoryEvent
}

// run works until ctx ends, or until the follower serves.
func (f *follower) run(ctx context.Context) {
	for wait := deliverPause; ctx.Err() == nil; {
		more, err := f.work(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.waits(err, wait)
			f.rest(ctx, wait)
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
		f.rest(ctx, idle)
	}
}

// nearlyCaughtUp reports whether a follower that is to serve had so little left that the turn can deliver the rest:
// where callers write without a pause there is always something left.
func (f *follower) nearlyCaughtUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turn && f.lastPage <= turnRest
}

// rest pauses until the follower is woken.
func (f *follower) rest(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// work makes the provider ready and delivers one page. more is false when nothing was left.
func (f *follower) work(ctx context.Context) (more bool, err error) {
	if err := f.open(ctx); err != nil {
		return false, err
	}
	return f.page(ctx)
}

// open asks the provider whether it can work, once.
func (f *follower) open(ctx context.Context) error {
	f.mu.Lock()
	opened := f.opened
	f.mu.Unlock()
	if opened {
		return nil
	}
	p := f.provider()
	if err := p.pool.Warm(ctx); err != nil {
		return err
	}
	health, err := f.inner.healthToServe(ctx, p)
	if err != nil {
		return err
	}
	f.begin(p, health, nil)
	return nil
}

// begin notes that the provider can work.
func (f *follower) begin(p *Provider, health *abi.BackendHealth, steps []abi.RunStep) {
	p.consistency, p.backendName = health.ConsistencyModel, health.BackendName
	f.inner.startBackground(p)
	f.mu.Lock()
	f.opened, f.health, f.steps = true, health, steps
	f.mu.Unlock()
}

// page takes the next events from the archive and delivers them. A reset of a scope that was made before they were read
// is made at the follower first: those made later are of all of them.
func (f *follower) page(ctx context.Context) (more bool, err error) {
	if err := f.release(ctx); err != nil {
		return false, err
	}
	f.mu.Lock()
	record := f.record
	f.mu.Unlock()
	entries, _, err := f.host.archive.Read(ctx, record.Position, followPage)
	if err != nil {
		return false, err
	}
	erasures, err := f.host.archive.Erasures(ctx)
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
	f.lastPage = len(entries)
	if len(entries) > 0 {
		f.pageEnd = entries[len(entries)-1].Seq
	}
	f.mu.Unlock()
	scopes, leftOut, err := f.sortOut(entries, erasures)
	if err != nil {
		return false, err
	}
	result, err := f.deliverScopes(ctx, scopes)
	if err != nil {
		return false, err
	}
	err = f.keep(ctx, func(r *followRecord) {
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
		err = f.slot.trimQueue(ctx)
	}
	return true, err
}

// erase resets the scopes at the follower that were reset since its last look, and returns the number of the last
// reset.
func (f *follower) erase(ctx context.Context, erasures []archive.Erasure, after int64) (int64, error) {
	for _, e := range erasures {
		if e.Number <= after {
			continue
		}
		sc, err := f.provider().scopeOf(e.Scope())
		if err != nil {
			return after, err
		}
		known, err := f.host.scopeRecordOf(ctx, sc.key)
		if err != nil {
			return after, err
		}
		if known != nil {
			receipt, err := f.inner.ResetScope(f.calls, e.Scope())
			if err != nil {
				return after, err
			}
			if receipt.Status != abi.ResetDone {
				f.host.logger.Warn("a follower's reset of a scope has left something", "provider", f.provider().name,
					"status", receipt.Status, "remains", receipt.Remains)
			}
		}
		after = e.Number
	}
	return after, nil
}

// sortOut parses a page and groups its events by scope, in order. leftOut counts those that the follower does not get.
func (f *follower) sortOut(entries []archive.Entry, erasures []archive.Erasure) (scopes [][]archivedEvent, leftOut int64,
	err error) {
	p := f.provider()
	f.mu.Lock()
	shadows, fillTo := !f.turn, f.record.FillTo
	f.mu.Unlock()
	at := map[scopeKey]int{}
	for i := range entries {
		event, err := entries[i].Decode()
		if err != nil {
			return nil, 0, err
		}
		imported := entries[i].Provider == "" && entries[i].Seq > fillTo && shadows
		if imported || p.testSession(event.SessionID) || archive.WasErased(erasures, entries[i].Seq, event) {
			leftOut++ // an import is no write: a shadow holds what memory holds
			continue
		}
		sc, err := p.scopeOfEvent(event)
		if err != nil {
			return nil, 0, err
		}
		n, known := at[sc.key]
		if !known {
			n = len(scopes)
			at[sc.key], scopes = n, append(scopes, nil)
		}
		scopes[n] = append(scopes[n], archivedEvent{entries[i].Seq, event})
	}
	return scopes, leftOut, nil
}

// delivered counts the outcomes of deliveries. held are the scopes of which something is held back.
type delivered struct {
	done, leftOut, open int64
	held                []heldScope
}

// deliverScopes delivers lists of events, each in order and lanes of them at a time. The first error ends all.
func (f *follower) deliverScopes(ctx context.Context, scopes [][]archivedEvent) (sum delivered, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all sync.WaitGroup
	free := make(chan struct{}, f.lanes)
	for _, events := range scopes {
		free <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { <-free }()
			one, err := f.deliverUnlessHeld(ctx, events)
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.done += one.done
			sum.leftOut += one.leftOut
			sum.held = append(sum.held, one.held...)
		}()
	}
	all.Wait()
	if ctx.Err() != nil {
		return delivered{}, context.Cause(ctx)
	}
	return sum, nil
}

// deliverScope delivers the events of a scope in order. It returns when each was delivered, left out, noted as open or
// held back because the scope is read-only, or when ctx ends.
func (f *follower) deliverScope(ctx context.Context, events []archivedEvent) (sum delivered, err error) {
	most := 1
	if f.provider().has(abi.OpRecordEvents) {
		most = followBatch
	}
	for len(events) > 0 {
		batch := events[:min(most, len(events))]
		answers, err := f.send(ctx, batch)
		for i := 0; err == nil && i < len(batch); i++ {
			var outcome followOutcome
			if outcome, err = f.settle(ctx, batch[i], &answers[i]); err != nil {
				events = events[i:]
				break
			}
			switch outcome {
			case outcomeDone:
				sum.done++
			case outcomeLeftOut:
				sum.leftOut++
			case outcomeOpen:
				sum.open++
			}
		}
		if errors.Is(err, errHeld) {
			sum.held = f.heldFrom(events)
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		f.mu.Lock()
		f.inPage += int64(len(batch))
		f.speed.add(time.Now(), int64(len(batch)))
		f.mu.Unlock()
		events = events[len(batch):]
	}
	return sum, nil
}

// followOutcome is what became of a delivery.
type followOutcome int

const (
	outcomeDone followOutcome = iota
	outcomeLeftOut
	outcomeOpen
	outcomeAgain
	outcomeReadOnly
)

// send delivers events of one scope, not faster than the limit, behind no wall, and with pauses while callers are
// served. Every event has an answer.
//
// Errors: errHeld where the scope is read-only and the slot is not.
func (f *follower) send(ctx context.Context, batch []archivedEvent) ([]abi.ReceiptOrError, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := f.waitForWall(ctx, batch[0].event); err != nil {
		return nil, err
	}
	if err := f.keepRate(ctx, len(batch)); err != nil {
		return nil, err
	}
	f.sets(abi.FollowerFilling)
	list := new(abi.EventBatch)
	for _, e := range batch {
		list.Events = append(list.Events, *e.event)
	}
	began := time.Now()
	receipts, err := f.inner.RecordEvents(f.calls, list) // a delivery that began goes on to its end
	if err != nil {
		return nil, err
	}
	f.giveWay(ctx, time.Since(began))
	return receipts.Receipts, ctx.Err()
}

// settle follows an event's answer until it is known what became of it.
func (f *follower) settle(ctx context.Context, e archivedEvent, answer *abi.ReceiptOrError) (followOutcome, error) {
	for try, wait := 1, deliverPause; ; try++ {
		outcome, why := f.judge(e.event, answer, try)
		switch outcome {
		case outcomeDone, outcomeLeftOut:
			return outcome, nil
		case outcomeOpen:
			return outcome, f.noteOpen(ctx, e, answer)
		case outcomeReadOnly: // the wall was raised in between; send waits for it
			try--
		default:
			f.waits(why, afterOr(why, wait))
			if err := pause.For(ctx, afterOr(why, wait)); err != nil {
				return outcome, err
			}
			wait = min(2*wait, deliverPauseMax)
		}
		answers, err := f.send(ctx, []archivedEvent{e})
		if err != nil {
			return outcome, err
		}
		answer = &answers[0]
	}
}

// afterOr is the time that an error says to wait, at most deliverPauseMax, or another where it says none.
func afterOr(e *abi.Error, other time.Duration) time.Duration {
	if e == nil || e.RetryAfterMS == nil {
		return other
	}
	return min(time.Duration(*e.RetryAfterMS)*time.Millisecond, deliverPauseMax)
}

// judge says what an answer means for the event. With outcomeAgain why says what is waited for.
func (f *follower) judge(event *abi.MemoryEvent, answer *abi.ReceiptOrError, try int) (_ followOutcome,
	why *abi.Error) {
	p := f.provider()
	if r := answer.Receipt; r != nil {
		switch {
		case r.Status == abi.StatusSkippedReadOnly && p.testSession(event.SessionID):
			return outcomeLeftOut, nil
		case r.Status == abi.StatusSkippedReadOnly:
			return outcomeReadOnly, nil
		case !undecidedStatus(r.Status):
			return outcomeDone, nil
		case !p.has(abi.OpFindEvent) || try >= followTries:
			return outcomeOpen, nil
		}
		e := abi.NewError(abi.CodeUnavailable, "the outcome of event "+event.EventID+" is not known yet")
		e.RetryAfterMS = r.RetryAfterMS
		return outcomeAgain, e
	}
	e := answer.Error
	later := failsForNow(e) || e.Native != nil && e.Native.Status != nil &&
		slices.Contains([]int64{http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly}, *e.Native.Status)
	switch {
	case e.Code == abi.CodeConflict && e.Reason == "forgotten":
		return outcomeLeftOut, nil
	case e.Code == abi.CodeUnauthenticated || e.Code == abi.CodeDenied || e.Code == abi.CodeReadOnly || later:
		return outcomeAgain, e // not the event's fault
	case e.Retryable && try < followTries:
		return outcomeAgain, e
	}
	return outcomeOpen, nil
}

// sets and waits say what the follower does.
func (f *follower) sets(now abi.FollowerState) {
	f.mu.Lock()
	f.state = now
	f.mu.Unlock()
}

func (f *follower) waits(why error, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.failure, f.retryAt = abi.FollowerWaiting, abi.AsError(why), time.Now().Add(wait)
}

// caughtUp is what a follower does when it has everything: it says whether that is ready and asks about what is open,
// and a backfill takes its turn. idle is how long it may then rest.
func (f *follower) caughtUp(ctx context.Context) (served bool, idle time.Duration) {
	look, err := f.look(ctx)
	if err == nil && len(look.again) > 0 {
		if err = f.again(ctx, look); err == nil {
			look, err = f.look(ctx)
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
	turn, accept := f.turn, f.accept
	f.mu.Unlock()
	switch {
	case look.unseen > 0:
		f.sets(abi.FollowerNotReady)
		return false, 500 * time.Millisecond
	case f.heldEvents() > 0 && !accept:
		f.sets(abi.FollowerReadOnly)
		return false, 500 * time.Millisecond
	case len(look.open) > 0 && !accept:
		f.sets(abi.FollowerAsks)
		return false, followIdle
	}
	f.sets(abi.FollowerReady)
	if !turn {
		return false, followIdle
	}
	served, err = f.takeTurn(ctx)
	if err != nil {
		f.waits(err, deliverPause)
	}
	return served, deliverPause
}
