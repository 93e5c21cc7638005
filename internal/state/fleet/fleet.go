package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/internal/state"
)

// TableLocks holds one record for each scope that was ever written.
const TableLocks state.Table = "turns"

// Session names one session of one host. The zero value is no session.
type Session [16]byte

// Host is a host that lives.
type Host struct {
	Session Session
	// Name is the machine's, PID the process's, Version the program's. Name and Version may be empty.
	Name    string
	PID     int
	Version string
	// Began is when the session began, Left how long it lasts if it is not renewed.
	Began time.Time
	Left  time.Duration
}

// Past tells which cluster a database holds, and how far it is.
type Past struct {
	// Identity names the tables for as long as they exist. Incarnation counts, from 1, how often an operator accepted that
	// the database had lost commits. Commits is the number of the latest commit.
	Identity    string
	Incarnation int64
	Commits     int64
}

// Sessions knows which hosts live. It is safe for concurrent use.
type Sessions interface {
	// Self is the session of this host. It changes when the host had to begin a new one.
	Self() Session
	// Left is how long this host's session lasts if it is not renewed; 0 or less when it may have ended.
	Left() time.Duration
	// Hosts lists the hosts whose sessions have not ended, this one among them, in the order in which they came.
	Hosts(ctx context.Context) ([]Host, error)
	// End ends another host's session if its time is over: then left is 0, and none of its commits can happen any more.
	// Otherwise left is how long it lives at least when it is not renewed.
	End(ctx context.Context, s Session) (left time.Duration, err error)
}

// Fleet gives out locks. It is safe for concurrent use.
type Fleet struct {
	store    state.Store
	sessions Sessions
	stop     context.Context // ends with Close
	end      context.CancelFunc
	releases sync.WaitGroup
	counts   counts
	failing  atomic.Pointer[error] // Failing
}

// Counts are what a Fleet has counted since it was made.
type Counts struct {
	// Commits are batches that were applied. Refused ones met a precondition that was not met, Failed ones the store's
	// failure, so that nothing was applied. Of Uncertain ones that is not known.
	Commits, Refused, Failed, Uncertain int64
	// Waits is how often the lock of a scope was with another host, Waited how long that took in all.
	Waits  int64
	Waited time.Duration
	// TakeOvers is how often a lock was taken from a host that had ended.
	TakeOvers int64
}

type counts struct{ commits, refused, failed, uncertain, waits, waited, takeOvers atomic.Int64 }

// Counts reads the counters.
func (f *Fleet) Counts() Counts {
	c := &f.counts
	return Counts{Commits: c.commits.Load(), Refused: c.refused.Load(), Failed: c.failed.Load(),
		Uncertain: c.uncertain.Load(), Waits: c.waits.Load(), Waited: time.Duration(c.waited.Load()),
		TakeOvers: c.takeOvers.Load()}
}

// Commit is the store's Commit, counted.
func (f *Fleet) Commit(ctx context.Context, b *state.Batch) error {
	_, err := f.store.Commit(ctx, b)
	switch {
	case err == nil:
		f.counts.commits.Add(1)
		f.failing.Store(nil)
	case errors.Is(err, state.ErrUncertain):
		f.counts.uncertain.Add(1)
	case errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrQuota), errors.Is(err, state.ErrInvalid):
		f.counts.refused.Add(1)
	default:
		f.counts.failed.Add(1)
		if errors.Is(err, state.ErrUnavailable) {
			f.failing.Store(&err)
		}
	}
	return err
}

// Failing is why the last commit could not be written, such as a full disk; nil after one that could.
func (f *Fleet) Failing() error {
	if why := f.failing.Load(); why != nil {
		return *why
	}
	return nil
}

// New makes the Fleet of a store. Sessions are nil for a store that one process owns. Close ends it.
func New(store state.Store, sessions Sessions) *Fleet {
	f := &Fleet{store: store, sessions: sessions}
	f.stop, f.end = context.WithCancel(context.Background())
	return f
}

// Of makes the Fleet of a store that says itself whether hosts share it.
func Of(store state.Store) *Fleet {
	if s, ok := store.(interface{ Sessions() Sessions }); ok {
		return New(store, s.Sessions())
	}
	return New(store, nil)
}

// Close ends attempts to free locks that could not be freed. The store is still open.
func (f *Fleet) Close() {
	f.end()
	f.releases.Wait()
}

// Shared reports whether several hosts may share the store.
func (f *Fleet) Shared() bool { return f.sessions != nil }

// Hosts lists the hosts that share the store, and which of them is this one; none where one process owns it.
func (f *Fleet) Hosts(ctx context.Context) (hosts []Host, self Session, err error) {
	if f.sessions == nil {
		return nil, self, nil
	}
	hosts, err = f.sessions.Hosts(ctx)
	return hosts, f.sessions.Self(), err
}

// Others counts the other hosts that live.
func (f *Fleet) Others(ctx context.Context) (int, error) {
	hosts, self, err := f.Hosts(ctx)
	others := slices.DeleteFunc(hosts, func(h Host) bool { return h.Session == self })
	return len(others), err
}

// Ref names a record.
type Ref struct {
	Table state.Table
	Key   []byte
}

// Look reads facts that other hosts may change: their values, nil for an absent one. Where one process owns the store
// it reads nothing and returns nil: what that process knows is right.
func (f *Fleet) Look(ctx context.Context, facts ...Ref) ([][]byte, error) {
	if f.sessions == nil {
		return nil, nil
	}
	return f.records(ctx, facts)
}

// records reads records in one round trip, where the store can do that.
func (f *Fleet) records(ctx context.Context, refs []Ref) ([][]byte, error) {
	if s, ok := f.store.(interface {
		ReadRecords(context.Context, []Ref) ([][]byte, error)
	}); ok {
		return s.ReadRecords(ctx, refs)
	}
	values := make([][]byte, len(refs))
	for i, ref := range refs {
		var err error
		if values[i], err = f.store.Record(ctx, ref.Table, ref.Key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Ensure writes a record unless it is there. Operations that expect a record which all scopes share can then go side by
// side: an absent one has to be locked by each of them alone. Where one process owns the store it does nothing.
func (f *Fleet) Ensure(ctx context.Context, ref Ref, value []byte) error {
	if f.sessions == nil {
		return nil
	}
	have, err := f.store.Record(ctx, ref.Table, ref.Key)
	if err != nil || have != nil {
		return err
	}
	var b state.Batch
	b.ExpectRecord(ref.Table, ref.Key, nil)
	b.PutRecord(ref.Table, ref.Key, value)
	err = f.Commit(ctx, &b)
	if errors.Is(err, state.ErrConflict) {
		return nil // another host was first
	}
	return err
}

// Held lists the keys of the locks that other hosts have, in their order. Some of these hosts may have ended.
func (f *Fleet) Held(ctx context.Context) ([][]byte, error) {
	if f.sessions == nil {
		return nil, nil
	}
	return f.held(ctx, f.sessions.Self())
}

// held lists the keys of the locks that a host other than this one has.
func (f *Fleet) held(ctx context.Context, self Session) ([][]byte, error) {
	var held [][]byte
	for after := []byte(nil); ; {
		page, err := f.store.Records(ctx, TableLocks, nil, after, state.DefaultLimit)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			h, err := decode(r.Value)
			if err != nil {
				return nil, err
			}
			if h.holder != (Session{}) && h.holder != self {
				held = append(held, r.Key)
			}
			after = r.Key
		}
		if len(page) < state.DefaultLimit {
			return held, nil
		}
	}
}

// CountLocks counts the locks that any host has.
func (f *Fleet) CountLocks(ctx context.Context) (int64, error) {
	if f.sessions == nil {
		return 0, nil
	}
	held, err := f.held(ctx, Session{})
	return int64(len(held)), err
}

// How long Begin waits before it looks at a held lock again: at first, and at most.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Begin waits until no live host has the lock of a scope, and returns what it needs to take it. Nothing is written yet.
// Within one host, callers see to it that one operation at a time begins for a scope.
//
// In:     the scope's key, 1 byte to state.MaxName; facts are records that the operation depends on.
// Out:    Lock.Facts has their values, nil for an absent one; it is nil where one process owns the store.
// Errors: the store's; the context's when it ended while another host had the lock.
func (f *Fleet) Begin(ctx context.Context, scope []byte, facts ...Ref) (*Lock, error) {
	if f.sessions == nil {
		return &Lock{fleet: f, alone: true}, nil
	}
	began := time.Now()
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		t, err := f.read(ctx, scope, facts)
		if err != nil {
			return nil, err
		}
		if t.was.holder == (Session{}) || t.was.holder == t.self {
			return t, nil
		}
		left, err := f.sessions.End(ctx, t.was.holder)
		if err != nil {
			return nil, err
		}
		if left == 0 {
			return t, nil
		}
		if wait == firstLook {
			f.counts.waits.Add(1)
			defer func() { f.counts.waited.Add(int64(time.Since(began))) }()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("fleet: waiting for the lock of a scope, which host session %x has: %w", t.was.holder,
				context.Cause(ctx))
		case <-time.After(min(wait, left)):
		}
	}
}

// TryBegin is Begin without facts that does not wait: nil while a live host has the lock.
func (f *Fleet) TryBegin(ctx context.Context, scope []byte) (*Lock, error) {
	t, err := f.read(ctx, scope, nil)
	if err != nil || t.was.holder == (Session{}) || t.was.holder == t.self {
		return t, err
	}
	left, err := f.sessions.End(ctx, t.was.holder)
	if err != nil || left > 0 {
		return nil, err
	}
	return t, nil
}

func (f *Fleet) read(ctx context.Context, scope []byte, facts []Ref) (*Lock, error) {
	t := &Lock{fleet: f, scope: slices.Clone(scope), refs: facts, self: f.sessions.Self()}
	values, err := f.records(ctx, append(slices.Clone(facts), Ref{TableLocks, t.scope}))
	if err != nil {
		return nil, err
	}
	t.Facts, t.stored = values[:len(facts)], values[len(facts)]
	t.was, err = decode(t.stored)
	return t, err
}

// Insist does something until it succeeds or the Fleet is closed. It does not wait for that.
func (f *Fleet) Insist(do func(context.Context) error) {
	f.retry(func(ctx context.Context) bool { return do(ctx) == nil })
}

// retry tries something again and again until it says that it is done, or the Fleet is closed.
func (f *Fleet) retry(try func(context.Context) (done bool)) {
	f.releases.Go(func() {
		for !try(f.stop) {
			select {
			case <-f.stop.Done():
				return
			case <-time.After(lastLook):
			}
		}
	})
}
