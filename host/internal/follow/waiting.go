package follow

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
)

// A person whose event fails waits, and holds back only their own events: the follower skips these as it skips those of
// a read-only scope (held.go), and retries after a pause that doubles. A failure that would affect everyone, such as an
// unreachable backend, makes the whole follower pause as well.

// maxWaitingPeople is how many people may wait. At that number the follower reads no further events until some of them have
// succeeded.
const maxWaitingPeople = 64

// failure is why a scope waits.
type failure struct {
	why *abi.Error
	// counts means that the attempt counts towards mostTries.
	counts bool
}

func (f *failure) Error() string { return f.why.Error() }

// backoff is how often a scope's next event has failed, and when to retry.
type backoff struct {
	tries int
	wait  time.Duration
	at    time.Time
	why   *abi.Error
}

// tryOf is the number of the present attempt at the scope's next event, from 1.
func (f *Follower) tryOf(scope abi.MemoryScope) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.backoffs[scope].tries + 1
}

// postpone records that a scope waits, and pauses the whole follower if the failure is not specific to the event.
func (f *Follower) postpone(scope abi.MemoryScope, failed *failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, b := time.Now(), f.backoffs[scope]
	if failed.counts {
		b.tries++
	}
	b.wait = min(max(2*b.wait, deliverPause), deliverPauseMax)
	b.at, b.why = now.Add(afterOr(failed.why, b.wait)), failed.why
	f.backoffs[scope] = b
	if meetsEverybody(failed.why) && !now.Before(f.pausedUntil) {
		f.pauseWait = min(max(2*f.pauseWait, deliverPause), deliverPauseMax)
		f.pausedUntil = now.Add(afterOr(failed.why, f.pauseWait))
		f.state, f.failure, f.retryAt = report.FollowerWaiting, failed.why, f.pausedUntil
	}
}

// noteArrival records that an event of a scope has succeeded.
func (f *Follower) noteArrival(scope abi.MemoryScope) {
	f.mu.Lock()
	delete(f.backoffs, scope)
	f.pauseWait = 0
	f.mu.Unlock()
}

// due reports whether a waiting scope should be retried now. After a restart it should.
func (f *Follower) due(scope abi.MemoryScope) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !time.Now().Before(f.backoffs[scope].at)
}

// nextDue is when the first waiting scope is retried, and why it waits.
func (f *Follower) nextDue() (at time.Time, why *abi.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.record.Held {
		b := f.backoffs[h.Scope]
		if h.Waiting && (at.IsZero() || b.at.Before(at)) {
			at, why = b.at, b.why
		}
	}
	return at, why
}

// waitForPause waits while the whole follower pauses.
func (f *Follower) waitForPause(ctx context.Context) error {
	f.mu.Lock()
	until := f.pausedUntil
	f.mu.Unlock()
	if left := time.Until(until); left > 0 {
		return pause.For(ctx, left)
	}
	return nil
}

// meetsEverybody reports whether other people's events would fail in the same way: the backend is unreachable or
// overloaded, or rejects the credentials.
func meetsEverybody(e *abi.Error) bool {
	if e.Native != nil && e.Native.Status != nil {
		return slices.Contains([]int64{http.StatusTooManyRequests, http.StatusServiceUnavailable,
			http.StatusUnauthorized, http.StatusForbidden}, *e.Native.Status)
	}
	return slices.Contains([]abi.Code{abi.CodeUnavailable, abi.CodeRateLimited, abi.CodeUnauthenticated, abi.CodeDenied,
		abi.CodeReadOnly}, e.Code)
}

// sideBySide calls do for 0 to n-1, lanes of them concurrently. The first error cancels the others, and is returned.
func (f *Follower) sideBySide(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	free := make(chan struct{}, f.lanes)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// waitingEvents counts the events of people who wait, and these people.
func (r *Record) waitingEvents() (events int64, people int) {
	for _, h := range r.Held {
		if h.Waiting {
			events, people = events+h.Events, people+1
		}
	}
	return events, people
}
