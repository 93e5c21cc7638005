package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// Config says which memory a Follower fills, and how.
type Config struct {
	Key    Key
	Memory Memory
	// Record comes from Store.Begin, or from an earlier process. With role shadow the memory gets retrievals, too.
	Record Record
	// Lanes is how many scopes receive deliveries concurrently. With one lane, which is for a memory that needs the
	// processor, deliveries give way to callers.
	Lanes int
	// SamplePercent is the share of retrievals that a shadow gets, 0 to 100. Retention is how long its answers are
	// kept; default DefaultRetention.
	SamplePercent int64
	Retention     time.Duration
}

// Follower fills a Memory. New creates one; Start starts its work.
type Follower struct {
	store  *Store
	memory Memory
	key    Key
	lanes  int
	// shadowQueries is set for a shadow; nil otherwise.
	asking *shadowQueries

	keeping sync.Mutex // one change of the record at a time
	mu      sync.Mutex
	record  Record
	// turn means that it should serve as soon as it has everything; with accept, even if events are still open.
	turn, accept bool
	// retryRefused means that refused events are tried once more.
	retryRefused bool
	state        report.FollowerState
	failure      *abi.Error
	retryAt      time.Time
	// inPage counts the events of the present page that have been handled.
	inPage int64
	// pageEnd is the number of the last event of the present page.
	pageEnd int64
	// lastPage is how many events the last page had.
	lastPage int
	speed    speed
	tally    tally
	// backoffs are the scopes that wait. The whole follower pauses until pausedUntil; pauseWait was its last pause
	// (waiting.go).
	backoffs    map[abi.MemoryScope]backoff
	pausedUntil time.Time
	pauseWait   time.Duration
	// nextSend is when the rate limit allows the next event, nextLook when to check again whether everything is ready.
	nextSend, nextLook time.Time

	wake chan struct{}
	// calls is the context of its deliveries. stop ends its work, abort also aborts a running delivery.
	calls       context.Context
	stop, abort context.CancelFunc
	done        chan struct{}
}

// New creates a follower and stores its record. The follower does nothing before Start.
func New(ctx context.Context, store *Store, c Config) (*Follower, error) {
	f := &Follower{store: store, memory: c.Memory, key: c.Key, record: c.Record, lanes: max(1, c.Lanes),
		turn: c.Record.Role == report.RoleBackfill, retryRefused: true, state: report.FollowerFilling,
		wake: make(chan struct{}, 1), calls: context.Background(), backoffs: map[abi.MemoryScope]backoff{}}
	if c.Record.Role == report.RoleShadow {
		f.asking = &shadowQueries{percent: c.SamplePercent, retention: cmp.Or(max(0, c.Retention), DefaultRetention),
			queue: make(chan *Question, questionsWaiting)}
	}
	return f, store.put(ctx, c.Key, &f.record)
}

// Start starts the follower's work.
func (f *Follower) Start() {
	f.calls, f.abort = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(f.calls)
	f.stop, f.done = stop, make(chan struct{})
	f.sets(report.FollowerFilling)
	f.store.runningMu.Lock()
	f.store.running[f.key] = f
	f.store.runningMu.Unlock()
	go func() {
		defer close(f.done)
		defer f.abort()
		if f.asking != nil {
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				f.askAll(ctx)
			}()
			defer func() { <-asked }()
		}
		f.run(ctx)
		stop()
	}()
}

// End stops the follower's work and waits for it to end; if ctx ends first, a running delivery is aborted. The follower
// can be started again.
func (f *Follower) End(ctx context.Context) {
	if f.stop == nil {
		return
	}
	f.stop()
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	f.abort()
	<-f.done
	f.store.runningMu.Lock()
	delete(f.store.running, f.key)
	f.store.runningMu.Unlock()
	f.stop, f.calls = nil, context.Background()
	f.mu.Lock()
	f.state, f.failure = report.FollowerStopped, nil
	f.mu.Unlock()
}

// Wake tells the follower to look for new work.
func (f *Follower) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Key identifies its memory.
func (f *Follower) Key() Key { return f.key }

// Record returns the follower's present record.
func (f *Follower) Record() Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record
}

// keep changes the follower's record and commits it. If the commit fails, the record is unchanged.
func (f *Follower) keep(ctx context.Context, change func(*Record)) error {
	f.keeping.Lock()
	defer f.keeping.Unlock()
	next := f.Record()
	change(&next)
	if err := f.store.put(ctx, f.key, &next); err != nil {
		return err
	}
	f.mu.Lock()
	f.record = next
	f.mu.Unlock()
	return nil
}

// KeepStopped records that the follower was stopped, so that a restart does not resume it.
func (f *Follower) KeepStopped(ctx context.Context) error {
	f.mu.Lock()
	inPage := f.inPage
	f.mu.Unlock()
	return f.keep(ctx, func(r *Record) { r.Stopped, r.InPage = f.store.stamp(), inPage })
}

// Drop removes everything that the store holds about the follower. Its memory keeps its content.
func (f *Follower) Drop(ctx context.Context) error { return f.store.Drop(ctx, f.key) }

// WantTurn makes the memory serve as soon as it has everything; with accept, even if events are open, held back or
// dropped. Refused events are tried once more.
func (f *Follower) WantTurn(accept bool) {
	f.mu.Lock()
	f.turn, f.accept, f.retryRefused = true, f.accept || accept, true
	f.mu.Unlock()
	f.Wake()
}

// GiveUpTurn undoes WantTurn.
func (f *Follower) GiveUpTurn() {
	f.mu.Lock()
	f.turn, f.accept = false, false
	f.mu.Unlock()
}

// WantsTurn reports whether the memory should serve once it has everything.
func (f *Follower) WantsTurn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turn
}

// Behind counts the events that the follower has not handled.
func (f *Follower) Behind(ctx context.Context) (int64, error) {
	record := f.Record()
	behind, err := f.store.countAfter(ctx, &record)
	waiting, _ := record.waitingEvents()
	return behind + waiting, err
}

// CatchUp delivers what is left, while nothing is recorded and the follower's own work waits or has ended. caught is
// false if ctx ended first.
func (f *Follower) CatchUp(ctx context.Context) (caught bool, err error) {
	for {
		readOnly, err := f.memory.ReadOnly(nil)
		if err != nil {
			return false, err
		}
		if readOnly { // nothing can be delivered, and nothing is recorded either
			behind, err := f.Behind(ctx)
			return err == nil && behind == 0, err
		}
		more, err := f.page(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !more {
			record := f.Record()
			waiting, _ := record.waitingEvents()
			return waiting == 0, nil
		}
	}
}

// Finish ends a follower whose memory serves from now on, and removes its records. detail reports what the memory got,
// and names what it did not get.
//
// Errors: conflict (open) if events are open, held back or dropped and WantTurn has not accepted that; those of the
// store.
func (f *Follower) Finish(ctx context.Context) (detail string, err error) {
	look, err := f.readOpenWork(ctx)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	record, accept := f.record, f.accept
	f.mu.Unlock()
	held, dropped := record.heldEvents(), record.gaps()
	if (len(look.open) > 0 || held > 0 || dropped > 0) && !accept {
		return "", abi.NewError(abi.CodeConflict, fmt.Sprintf("%d events are open, %d wait for their scopes, which "+
			"are read-only, and %d were dropped before it had them", len(look.open), held, dropped)).
			WithReason("open").WithHint("`memhost swap " + record.Provider + " --backfill`, then `memhost backfill serve " +
			"--accept-open` lets it serve without them")
	}
	if err := f.Drop(ctx); err != nil {
		return "", err
	}
	f.sets(report.FollowerServes)
	if len(record.Held) > 0 {
		f.store.Logger.Warn("a memory serves from now on without events that it has not got",
			"provider", record.Provider, "about", record.heldText())
	}
	detail = fmt.Sprintf("%d events since %s, %d left out, %d open", record.Done, record.Since, record.LeftOut,
		len(look.open))
	if len(record.Held) > 0 {
		detail += ", " + record.heldText()
	}
	if record.Dropped > 0 {
		detail += fmt.Sprintf(", %d dropped from the queue before it had them", record.Dropped)
	}
	return detail, nil
}

// Progress reports the follower's state and progress.
func (f *Follower) Progress(ctx context.Context) (report.FollowerState, report.FollowerProgress, error) {
	f.mu.Lock()
	record, inPage, now := f.record, f.inPage, time.Now()
	at, perSecond, failure, retryAt := f.state, f.speed.perSecond(now), f.failure, f.retryAt
	f.mu.Unlock()
	progress := report.FollowerProgress{Done: record.Done + inPage, LeftOut: record.LeftOut, Held: record.heldEvents(),
		Dropped: record.Dropped, PerSecond: perSecond, OpenEvents: []report.OpenEvent{}}
	behind, err := f.store.countAfter(ctx, &record)
	if err != nil {
		return at, progress, err
	}
	waiting, _ := record.waitingEvents()
	behind = max(0, behind-inPage) + waiting
	look, err := f.readOpenWork(ctx)
	if err != nil {
		return at, progress, err
	}
	progress.Unseen, progress.Open = look.unseen, int64(len(look.open))
	progress.OpenEvents = append(progress.OpenEvents, look.open[:min(len(look.open), maxOpenEvents)]...)
	progress.Events = progress.Done + progress.LeftOut + progress.Held + progress.Dropped + int64(len(look.listed)) +
		behind
	if perSecond > 0 && behind > 0 {
		left := int64(float64(behind) / perSecond * 1000)
		progress.RemainingMS = &left
	}
	if at == report.FollowerWaiting {
		left := max(0, time.Until(retryAt).Milliseconds())
		progress.Error, progress.RetryAfterMS = failure, &left
	}
	return at, progress, nil
}

// speed measures how many events per second were handled in the last minute.
type speed struct{ marks []speedMark }

type speedMark struct {
	at time.Time
	n  int64
}

func (s *speed) add(now time.Time, n int64) {
	s.marks = append(s.marks, speedMark{now, n})
	old := slices.IndexFunc(s.marks, func(m speedMark) bool { return now.Sub(m.at) < time.Minute })
	s.marks = slices.Delete(s.marks, 0, max(old, 0))
}

// perSecond is 0 until there is enough data.
func (s *speed) perSecond(now time.Time) float64 {
	if len(s.marks) < 2 {
		return 0
	}
	var n int64
	for _, m := range s.marks[1:] {
		n += m.n
	}
	return float64(n) / max(now.Sub(s.marks[0].at), 100*time.Millisecond).Seconds()
}
