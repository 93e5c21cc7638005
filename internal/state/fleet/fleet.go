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

// TableLocks has one record for each scope that was ever written.
const TableLocks state.Table = "turns"

// Session identifies one session of one host. The zero value means no session.
type Session [16]byte

// Host is a live host.
type Host struct {
	Session Session
	// Name is the machine's name, PID the process id, Version the program's version. Name and Version may be empty.
	Name    string
	PID     int
	Version string
	// Began is when the session started; Left is how long it lasts unless it is renewed.
	Began time.Time
	Left  time.Duration
}

// ClusterState identifies the cluster of a database, and its progress.
type ClusterState struct {
	// Identity identifies the tables for as long as they exist. Incarnation counts, from 1, how often an operator
	// accepted that the database had lost commits. Commits is the number of the latest commit.
	Identity    string
	Incarnation int64
	Commits     int64
}

// Sessions knows which hosts are alive. It is safe for concurrent use.
type Sessions interface {
	// Self is the session of this host. It changes when the host has to start a new one.
	Self() Session
	// Left is how long this host's session lasts unless it is renewed; 0 or less if it may have ended.
	Left() time.Duration
	// Hosts lists the hosts whose sessions have not ended, including this one, in the order in which they started.
	Hosts(ctx context.Context) ([]Host, error)
	// End ends another host's session if its time is over. Then left is 0, and none of its commits can happen any more.
	// Otherwise left is the minimum time that it remains alive without renewal.
	End(ctx context.Context, s Session) (left time.Duration, err error)
}

// Fleet hands out locks. It is safe for concurrent use.
type Fleet struct {
	store    state.Store
	sessions Sessions
	stop     context.Context // done after Close
	end      context.CancelFunc
	releases sync.WaitGroup
	counts   counts
	failing  atomic.Pointer[error] // Failing
}

// Counts are what a Fleet has counted since it was created.
type Counts struct {
	// Commits are batches that were applied. Refused ones did not meet a precondition, Failed ones met a failure of the
	// store, so that neither was applied. Whether Uncertain ones were is not known.
	Commits, Refused, Failed, Uncertain int64
	// Waits is how often another host held the lock of a scope, Waited how long these waits took in total.
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

// Commit is the store's Commit, with counting.
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

// Failing is why the last commit could not be written, for example a full disk; nil if it succeeded.
func (f *Fleet) Failing() error {
	if why := f.failing.Load(); why != nil {
		return *why
	}
	return nil
}

// New creates the Fleet of a store. sessions is nil for a store that one process owns. Call Close at the end.
func New(store state.Store, sessions Sessions) *Fleet {
	f := &Fleet{store: store, sessions: sessions}
	f.stop, f.end = context.WithCancel(context.Background())
	return f
}

// Of creates the Fleet of a store that itself knows whether hosts share it.
func Of(store state.Store) *Fleet {
	if s, ok := store.(interface{ Sessions() Sessions }); ok {
		return New(store, s.Sessions())
	}
	return New(store, nil)
}

// Close ends attempts to release locks that could not be released. It does not close the store.
func (f *Fleet) Close() {
	f.end()
	f.releases.Wait()
}

// Shared reports whether several hosts may share the store.
func (f *Fleet) Shared() bool { return f.sessions != nil }

// Hosts lists the hosts that share the store, and returns which of them is this one; empty if one process owns it.
func (f *Fleet) Hosts(ctx context.Context) (hosts []Host, self Session, err error) {
	if f.sessions == nil {
		return nil, self, nil
	}
	hosts, err = f.sessions.Hosts(ctx)
	return hosts, f.sessions.Self(), err
}

// Others counts the other live hosts.
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

// List names the records of a table whose keys begin with a prefix.
type List struct {
	Table  state.Table
	Prefix []byte
}

// Together is a [state.Store] that reads several records in one round trip.
type Together interface {
	// ReadTogether reads records, whose values are nil for absent ones, and then the first state.DefaultLimit records
	// of a list, which may be nil. None is read before an earlier one, but a commit may happen between two of them.
	ReadTogether(ctx context.Context, refs []Ref, list *List) (values [][]byte, listed []state.KeyValue, err error)
}

// Read reads facts that other hosts may change, and returns their values, nil for an absent one. If one process owns
// the store it reads nothing and returns nil, because that process already knows the facts.
func (f *Fleet) Read(ctx context.Context, facts ...Ref) ([][]byte, error) {
	values, _, err := f.ReadAhead(ctx, facts, nil)
	return values, err
}

// ReadAhead is Look for more than facts: records that an operation needs soon, and the first state.DefaultLimit records
// of a list, which may be nil. They come in the same round trip.
func (f *Fleet) ReadAhead(ctx context.Context, refs []Ref, list *List) (values [][]byte, listed []state.KeyValue,
	err error) {
	if f.sessions == nil {
		return nil, nil, nil
	}
	return f.readTogether(ctx, refs, list)
}

// readTogether reads records in their order, and then a list: in one round trip if the store supports that.
func (f *Fleet) readTogether(ctx context.Context, refs []Ref, list *List) (values [][]byte, listed []state.KeyValue,
	err error) {
	if s, ok := f.store.(Together); ok {
		return s.ReadTogether(ctx, refs, list)
	}
	values = make([][]byte, len(refs))
	for i, ref := range refs {
		if values[i], err = f.store.Record(ctx, ref.Table, ref.Key); err != nil {
			return nil, nil, err
		}
	}
	if list != nil {
		listed, err = f.store.Records(ctx, list.Table, list.Prefix, nil, state.DefaultLimit)
	}
	return values, listed, err
}

// Ensure writes a record unless it exists. It lets operations that expect a record which all scopes share run
// concurrently: an absent record would have to be locked by one of them at a time. It does nothing if one process owns
// the store.
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

// Held lists the keys of the locks that other hosts hold, in order. Some of these hosts may have ended.
func (f *Fleet) Held(ctx context.Context) ([][]byte, error) {
	if f.sessions == nil {
		return nil, nil
	}
	return f.held(ctx, f.sessions.Self())
}

// held lists the keys of the locks that a host other than this one holds.
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

// CountLocks counts the locks that any host holds.
func (f *Fleet) CountLocks(ctx context.Context) (int64, error) {
	if f.sessions == nil {
		return 0, nil
	}
	held, err := f.held(ctx, Session{})
	return int64(len(held)), err
}

// How long Begin waits before it checks a held lock again: at first, and at most.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Begin waits until no live host has the lock of a scope, and returns a Lock, which can then be taken. It writes
// nothing. The caller ensures that, within this host, only one operation at a time begins for a scope.
//
// In: scope is the scope's key, 1 byte to state.MaxName; facts are records that the operation depends on.
// Out: Lock.Facts has their values, nil for an absent one; it is nil if one process owns the store.
// Errors: those of the store; the context's if it ended while another host had the lock.
func (f *Fleet) Begin(ctx context.Context, scope []byte, facts ...Ref) (*Lock, error) {
	return f.BeginAhead(ctx, scope, facts, nil)
}

// BeginAhead is Begin for an operation that needs more records soon: Lock.Ahead has their values. What only holders of
// the scope's lock write is as Lock.Ahead has it until the operation's first commit, or that commit is refused.
func (f *Fleet) BeginAhead(ctx context.Context, scope []byte, facts, ahead []Ref) (*Lock, error) {
	if f.sessions == nil {
		return &Lock{fleet: f, alone: true}, nil
	}
	began := time.Now()
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		t, err := f.read(ctx, scope, facts, ahead)
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

// TryBegin is Begin without facts and without waiting: it returns nil while a live host has the lock.
func (f *Fleet) TryBegin(ctx context.Context, scope []byte) (*Lock, error) {
	t, err := f.read(ctx, scope, nil, nil)
	if err != nil || t.was.holder == (Session{}) || t.was.holder == t.self {
		return t, err
	}
	left, err := f.sessions.End(ctx, t.was.holder)
	if err != nil || left > 0 {
		return nil, err
	}
	return t, nil
}

// read reads the lock first: another host that writes what is read after it has changed the lock by then, so that the
// lock cannot be taken.
func (f *Fleet) read(ctx context.Context, scope []byte, facts, ahead []Ref) (*Lock, error) {
	t := &Lock{fleet: f, scope: slices.Clone(scope), refs: facts, self: f.sessions.Self()}
	values, _, err := f.readTogether(ctx, slices.Concat([]Ref{{TableLocks, t.scope}}, facts, ahead), nil)
	if err != nil {
		return nil, err
	}
	t.stored, t.Facts, t.Ahead = values[0], values[1:len(facts)+1], values[len(facts)+1:]
	t.was, err = decode(t.stored)
	return t, err
}

// Insist retries do in the background until it succeeds or the Fleet is closed.
func (f *Fleet) Insist(do func(context.Context) error) {
	f.retry(func(ctx context.Context) bool { return do(ctx) == nil })
}

// retry repeats try in the background until it reports done, or the Fleet is closed.
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
