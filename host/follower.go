package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// A follower is a provider beside the serving one: every recorded event is delivered to it too, later, and no agent
// sees what it answers. There are two kinds, which differ only in how they end:
//
//	backfill   is filled from the archive, catches up, and then serves in the other's place (backfill.go)
//	shadow     stays, and is asked a share of the retrievals (shadow.go)
//
// A follower has a slot of its own. So it has instances, scopes and a ledger of its own, and a delivery to it goes
// through the same code as one to the serving provider: "once" means the same for both. Slot and follower share the
// read-only mode, and raising the wall waits for a follower's calls, too.
//
// Its queue is the archive. Accepted events are numbered there with the transaction that keeps their receipt; the
// follower keeps the number up to which it has dealt with all of them, and so archived events come before live ones by
// themselves. Where no archive is kept the same table serves as a queue, which is emptied once every follower has an
// event.
//
// It takes pages of events, delivers the scopes of a page side by side and each scope's events in order, and keeps its
// position after each page. When the process ends within a page, the next one delivers that page again, and the ledger
// knows what has arrived.
//
// The serving provider never waits for a follower: events reach it by the store, retrievals by a queue that drops.
// While callers are served a follower makes pauses (giveWay).

// Tables of followers.
const (
	tableFollow     state.Table = "follow"      // followerKey -> followRecord, JSON
	tableFollowOpen state.Table = "follow_open" // followerKey, number of the archived event(8) -> abi.OpenEvent, JSON
)

// followerKey identifies the memory that a follower fills: provider, origin and namespace.
type followerKey [16]byte

func (p *Provider) followerKey() followerKey {
	return digestOf("follower", p.name, p.originKey, p.config.Namespace)
}

// followRecord is what the store keeps of a follower.
type followRecord struct {
	Role     string `json:"role"`
	Provider string `json:"provider"`
	Word     string `json:"word"`
	Source   string `json:"source"`
	// Block is the config block, where the request had one; else the configuration has it.
	Block  json.RawMessage `json:"block,omitempty"`
	Module string          `json:"module"` // sha256
	Since  string          `json:"since"`
	Rate   float64         `json:"rate,omitempty"`
	// Stopped is when it was stopped.
	Stopped string `json:"stopped,omitempty"`
	// From is the number after which it began, FillTo the last one at that time.
	From   int64 `json:"from,omitempty"`
	FillTo int64 `json:"fill_to"`
	// Position is the number up to which every event has been dealt with, Erased the number of the last reset of a scope
	// that was.
	Position int64 `json:"position"`
	Erased   int64 `json:"erased"`
	// Done events were delivered, LeftOut were not to be.
	Done    int64 `json:"done"`
	LeftOut int64 `json:"left_out"`
	// Held are scopes whose events wait because they are read-only. The list is replaced, never changed.
	Held []heldScope `json:"held,omitempty"`
	// Dropped events were removed from the queue before it had them (followqueue.go).
	Dropped int64 `json:"dropped,omitempty"`
}

// follower is a provider that follows a slot.
type follower struct {
	host  *Host
	slot  *Slot // that it follows
	inner *Slot // its own
	key   followerKey
	// lanes is how many scopes it delivers side by side.
	lanes int
	// asking is a shadow's; nil for any other.
	asking *asking

	keeping sync.Mutex // one change of the record at a time
	mu      sync.Mutex
	record  followRecord
	// turn: it is to serve as soon as it has everything, or in spite of open events where accept is set too.
	turn, accept bool
	// retryRefused: what was refused is tried once more.
	retryRefused bool
	// opened: the provider has said that it can work; health is its answer, and steps are those of its loading.
	opened  bool
	health  *abi.BackendHealth
	steps   []abi.RunStep
	state   abi.FollowerState
	failure *abi.Error
	retryAt time.Time
	// inPage counts the events of the present page that have been dealt with.
	inPage int64
	// pageEnd is the number of the last event of the present page.
	pageEnd int64
	// lastPage is how many events the last page had.
	lastPage int
	speed    speed
	// nextSend is when the limit on events a second lets the next one go.
	nextSend time.Time

	wake chan struct{}
	// calls is the context of its deliveries. stop ends its work, abort ends a delivery under way too.
	calls       context.Context
	stop, abort context.CancelFunc
	done        chan struct{}
}

// speed is how many events a second were dealt with in the last minute.
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

// perSecond is 0 until there is something to say.
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

// lanesOf is how many scopes a provider is sent side by side: a backend waits for others most of the time, a module
// that works by itself needs a processor.
func lanesOf(p *Provider) int {
	if len(p.module.Manifest.Origins) == 0 {
		return 1
	}
	return min(4, p.limits.Pool)
}

// newFollower joins a provider with the slot that it follows. It does nothing before start.
func (s *Slot) newFollower(p *Provider, record followRecord) *follower {
	f := &follower{host: s.host, slot: s, key: p.followerKey(), record: record, lanes: lanesOf(p),
		turn: record.Role == abi.RoleBackfill, retryRefused: true, state: abi.FollowerFilling, wake: make(chan struct{}, 1)}
	f.inner = &Slot{host: s.host, mode: s.mode, noArchive: true, following: &followerUse{origin: record.Role}}
	f.inner.current.Store(&serving{provider: p})
	return f
}

// provider is the follower's; nil once it serves or is closed.
func (f *follower) provider() *Provider {
	if v := f.inner.current.Load(); v != nil {
		return v.provider
	}
	return nil
}

// start lets the follower work.
func (f *follower) start() {
	f.calls, f.abort = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(f.calls)
	f.stop, f.done = stop, make(chan struct{})
	go func() {
		defer close(f.done)
		defer f.abort()
		if f.asking != nil {
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				f.ask(ctx)
			}()
			defer func() { <-asked }()
		}
		f.run(ctx)
		stop()
	}()
}

// end stops its work and waits until that has ended; when ctx ends, a delivery under way is aborted. It can be started
// again.
func (f *follower) end(ctx context.Context) {
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
	f.stop = nil
}

// close ends it and frees its provider.
func (f *follower) close(ctx context.Context) error {
	f.end(ctx)
	return f.inner.Close(ctx)
}

// key of the follower's record and open events.
func (f *follower) openKey(number int64) []byte {
	return binary.BigEndian.AppendUint64(f.key[:], uint64(number))
}

// followerList lists the slot's followers.
func (s *Slot) followerList() []*follower {
	if list := s.followers.Load(); list != nil {
		return *list
	}
	return nil
}

// addFollower adds a follower to the list, removeFollower takes it off. The caller holds swapMu.
func (s *Slot) addFollower(f *follower) {
	list := append(slices.Clone(s.followerList()), f)
	s.followers.Store(&list)
}

func (s *Slot) removeFollower(f *follower) {
	list := slices.DeleteFunc(slices.Clone(s.followerList()), func(one *follower) bool { return one == f })
	s.followers.Store(&list)
}

// followerWith finds the follower of a memory; nil if there is none.
func (s *Slot) followerWith(key followerKey) *follower {
	for _, f := range s.followerList() {
		if f.key == key {
			return f
		}
	}
	return nil
}

// wakeFollowers tells the followers that there is something for them.
func (s *Slot) wakeFollowers() {
	for _, f := range s.followerList() {
		f.awake()
	}
}

func (f *follower) awake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// followedScopes are a scope's states at the followers.
func (s *Slot) followedScopes(scope abi.MemoryScope) (list []*scopeState, err error) {
	for _, f := range s.followerList() {
		p := f.provider()
		if p == nil {
			continue
		}
		sc, err := p.scopeOf(scope)
		if err != nil {
			return nil, err
		}
		list = append(list, sc)
	}
	return list, nil
}

// closeFollowers ends all followers. What they have to do goes on when the slot is opened again.
func (s *Slot) closeFollowers(ctx context.Context) (err error) {
	for _, f := range s.followerList() {
		err = errors.Join(err, f.close(ctx))
	}
	s.followers.Store(nil)
	return err
}

// followRecordOf reads the record of a follower; nil if there is none.
func (h *Host) followRecordOf(ctx context.Context, key followerKey) (*followRecord, error) {
	stored, err := h.store.Record(ctx, tableFollow, key[:])
	if err != nil || stored == nil {
		return nil, stateError(err)
	}
	return decodeFollowRecord(stored)
}

func decodeFollowRecord(stored []byte) (*followRecord, error) {
	r := new(followRecord)
	if json.Unmarshal(stored, r) != nil || r.Provider == "" {
		return nil, abi.NewError(abi.CodeUnavailable, "state: the record of a follower is damaged").WithReason("state")
	}
	return r, nil
}

// followRecords lists the records of all followers.
func (h *Host) followRecords(ctx context.Context) (list map[followerKey]followRecord, err error) {
	list = map[followerKey]followRecord{}
	err = h.eachRecord(ctx, tableFollow, nil, func(r state.KeyValue) error {
		record, err := decodeFollowRecord(r.Value)
		if err == nil && len(r.Key) == len(followerKey{}) {
			list[followerKey(r.Key)] = *record
		}
		return err
	})
	return list, err
}

// putFollowRecord puts a follower's record into a batch.
func putFollowRecord(b *state.Batch, key followerKey, r *followRecord) error {
	value, err := json.Marshal(r)
	if err == nil {
		b.PutRecord(tableFollow, key[:], value)
	}
	return err
}

// keep changes the follower's record and commits it. Where the commit fails the record is as before.
func (f *follower) keep(ctx context.Context, change func(*followRecord)) error {
	f.keeping.Lock()
	defer f.keeping.Unlock()
	f.mu.Lock()
	next := f.record
	f.mu.Unlock()
	change(&next)
	var b state.Batch
	if err := putFollowRecord(&b, f.key, &next); err != nil {
		return err
	}
	if err := f.host.commit(ctx, &b); err != nil {
		return err
	}
	f.mu.Lock()
	f.record = next
	f.mu.Unlock()
	return nil
}

// dropFollower removes everything that the store keeps of a follower. What its provider holds stays.
func (h *Host) dropFollower(ctx context.Context, key followerKey) error {
	var b state.Batch
	b.DeleteRecord(tableFollow, key[:])
	err := h.eachRecord(ctx, tableFollowOpen, key[:], func(r state.KeyValue) error {
		b.DeleteRecord(tableFollowOpen, r.Key)
		return nil
	})
	if err != nil {
		return err
	}
	return h.commit(ctx, &b)
}

// runFollower describes the follower for the run manifest.
func (f *follower) runFollower() (abi.RunFollower, bool) {
	p := f.provider()
	if p == nil {
		return abi.RunFollower{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return abi.RunFollower{Role: f.record.Role, Provider: p.name, ConditionKind: p.kind, Module: p.runModule(),
		ConfigHash: p.configHash(), SamplePercent: f.asking.percentOf(), Since: f.record.Since}, true
}

// progress says how far it has come.
func (f *follower) progress(ctx context.Context) (abi.FollowerState, abi.FollowerProgress, error) {
	f.mu.Lock()
	record, inPage, now := f.record, f.inPage, time.Now()
	at, perSecond, failure, retryAt := f.state, f.speed.perSecond(now), f.failure, f.retryAt
	f.mu.Unlock()
	progress := abi.FollowerProgress{Done: record.Done + inPage, LeftOut: record.LeftOut, Held: record.heldEvents(),
		Dropped: record.Dropped, PerSecond: perSecond, OpenEvents: []abi.OpenEvent{}}
	behind, err := f.host.archive.CountAfter(ctx, record.Position)
	if err != nil {
		return at, progress, err
	}
	behind = max(0, behind-inPage)
	look, err := f.look(ctx)
	if err != nil {
		return at, progress, err
	}
	progress.Unseen, progress.Open = look.unseen, int64(len(look.open))
	progress.OpenEvents = look.open[:min(len(look.open), openEventsMost)]
	progress.Events = progress.Done + progress.LeftOut + progress.Held + progress.Dropped + look.listed + behind
	if perSecond > 0 && behind > 0 {
		left := int64(float64(behind) / perSecond * 1000)
		progress.RemainingMS = &left
	}
	if at == abi.FollowerWaiting || at == abi.FollowerStopped {
		progress.Error = failure
	}
	if at == abi.FollowerWaiting {
		left := max(0, time.Until(retryAt).Milliseconds())
		progress.RetryAfterMS = &left
	}
	return at, progress, nil
}

// openEventsMost is how many open events an answer lists.
const openEventsMost = 100

// eachOpen visits the listed open events of a follower with their numbers in the archive.
func (h *Host) eachOpen(ctx context.Context, key followerKey,
	visit func(number int64, open *abi.OpenEvent) error) error {
	return h.eachRecord(ctx, tableFollowOpen, key[:], func(r state.KeyValue) error {
		open := new(abi.OpenEvent)
		if abi.Unmarshal(r.Value, open) != nil || len(r.Key) != len(key)+8 {
			return abi.NewError(abi.CodeUnavailable, "state: the record of an open event is damaged").WithReason("state")
		}
		return visit(int64(binary.BigEndian.Uint64(r.Key[len(key):])), open)
	})
}

// scopesOf lists the scopes that a provider has.
func (h *Host) scopesOf(ctx context.Context, p *Provider) (list []abi.MemoryScope, err error) {
	err = h.eachRecord(ctx, tableScopes, nil, func(stored state.KeyValue) error {
		var r scopeRecord
		if json.Unmarshal(stored.Value, &r) == nil && p.owns(&r) {
			list = append(list, r.memoryScope())
		}
		return nil
	})
	return list, err
}
