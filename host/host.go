package host

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/host/internal/tape"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/state/move"
	"github.com/memhost/memhost/internal/text/tokens"
)

// Host owns what all providers share: the runtime of their modules, the data folder, the clock.
type Host struct {
	options Options
	limits  Limits
	logger  hclog.Logger
	clock   clock
	machine *guest.Machine
	store   state.Store
	fleet   *fleet.Fleet // what the hosts that share the store agree on
	send    sender
	// storeWarnings are the store's warnings, which appear in each manifest and health answer.
	storeWarnings []string
	// archiveWarning says what was wrong with the archive when the host was created. It appears in each health answer;
	// empty if nothing.
	archiveWarning string
	// stateWrites is the number of bytes that running operations have written and not committed.
	stateWrites atomic.Int64
	recording

	countersMu sync.Mutex
	counters   map[string]tokens.Counter

	// eraseWithin equals the constant, except in tests.
	eraseWithin time.Duration

	ledger    *delivery.Ledger
	archive   *archive.Archive
	given     *archive.Archive // events from which to fill another memory (given.go)
	follow    *follow.Store
	recent    *opstate.Recent // what was read of a shared store; nil without other hosts
	forgetful atomic.Bool     // something was forgotten (forget.go)
	queued    atomic.Bool     // a follower receives recorded events although no archive is kept
	away      atomic.Bool     // shadows of an earlier process are not running, and no archive is kept for them

	// name is this host's name in traces if several share the store, else empty; began is when the host was created.
	name                        string
	began                       time.Time
	lateWrites, uncertainEvents atomic.Int64
	receipts                    receiptLog

	backingUp sync.Mutex // held while a backup is being made

	calling writelock.Local // like scopeState.calling, for operations without a scope

	scopesMu sync.Mutex
	scopes   map[scopeName]*scopeState
}

// The folders of the data folder that hold archives.
const (
	archiveFolder = "archive"
	givenFolder   = "given"
)

// New opens a Host on a data folder, which it owns until Close.
//
// Errors: invalid_argument for a folder that cannot be used with these options; unavailable if another process owns it
// or it cannot be written.
func New(ctx context.Context, o Options) (*Host, error) { return newHost(ctx, o, nil) }

// newHost is New, optionally with a tape to replay.
func newHost(ctx context.Context, o Options, playing *tape.Tape) (h *Host, err error) {
	if o.DataDir == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.Options.DataDir: required")
	}
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(o.DataDir, "cache")
	}
	if o.Durability == "" {
		o.Durability = string(state.DurabilityPower)
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = func(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) }
	}
	h = &Host{options: o, limits: o.Limits.withDefaults(), logger: o.Logger, clock: realClock{o.Now, o.Pause}, send: sendPlain,
		counters: map[string]tokens.Counter{}, calling: make(writelock.Local, 1), scopes: map[scopeName]*scopeState{},
		eraseWithin: eraseWithin}
	if o.Intercept != nil {
		h.send = intercepted(o.Intercept, sendPlain)
	}
	if o.OpenStore == nil {
		o.OpenStore = func(_ context.Context, dir string) (state.Store, error) {
			options := state.Options{Durability: state.Durability(o.Durability), OnUpgrade: func(from int, backup string) {
				o.Logger.Warn("the data folder was upgraded: an older memhost refuses it now", "folder", dir, "from", from, "to",
					state.Schema, "kept_until_the_first_clean_stop", backup)
			}}
			if o.KeepFormat {
				options.Upgrade = state.UpgradeRefused
			}
			return state.Open(dir, options)
		}
	}
	store, err := o.OpenStore(ctx, o.DataDir)
	if err != nil {
		return nil, stateError(err)
	}
	defer func() {
		if err != nil {
			_ = store.Close()
		}
	}()
	if err = move.Check(ctx, store); err != nil {
		return nil, stateError(err)
	}
	h.store, h.fleet, h.began = store, fleet.Of(store), time.Now()
	if d, ok := store.(interface {
		Durability() (settings, warning string)
	}); ok {
		settings, warning := d.Durability()
		h.options.Durability = settings
		h.storeWarnings = append(h.storeWarnings, warning)
	}
	if c, ok := store.(interface{ ClockWarning() string }); ok {
		h.storeWarnings = append(h.storeWarnings, c.ClockWarning())
	}
	h.storeWarnings = slices.DeleteFunc(h.storeWarnings, func(w string) bool { return w == "" })
	if h.fleet.Shared() {
		h.name, h.receipts.dir, h.recent = ThisHost(), o.DataDir, new(opstate.Recent)
	}
	if o.Archive && (o.Cassette != nil || playing != nil) {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.Options.Archive: not together with a cassette, which "+
			"holds every event itself").WithHint("for a run that is recorded, turn it off: --set memory.archive=false")
	}
	if h.fleet.Shared() && (o.Cassette != nil || playing != nil) {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.Options.Cassette: not together with a store that hosts "+
			"share: what others do is not in the recording")
	}
	if err = h.readForgetful(ctx); err != nil {
		return nil, err
	}
	h.archive, err = archive.Open(ctx, archive.Options{On: o.Archive, Retention: o.ArchiveRetention,
		Dir: filepath.Join(o.DataDir, archiveFolder), Store: h.store, Now: o.Now, Warn: h.logger.Warn, Forgotten: h.wasForgotten})
	if err != nil {
		return nil, err
	}
	opened := h // h is nil if an error is returned
	defer func() {
		if err != nil {
			opened.archive.Close()
		}
	}()
	if missing, err := h.archive.Missing(ctx); err == nil && missing != "" {
		h.archiveWarning = "archive_missing: " + missing + "; put back the folder, or what a backup has of it"
		h.logger.Warn(h.archiveWarning)
	}
	h.given, err = archive.Open(ctx, archive.Options{On: true, Given: true, Dir: filepath.Join(o.DataDir, givenFolder),
		Store: h.store, Now: o.Now, Warn: h.logger.Warn, Forgotten: h.wasForgotten})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			opened.given.Close()
		}
	}()
	h.follow = follow.NewStore(follow.Options{State: h.store, Commit: h.commit, Archive: h.archive, Given: h.given,
		Logger: h.logger, Now: h.now, QueueBytes: h.limits.QueueBytes})
	if err = h.resumeFollowing(ctx); err != nil {
		return nil, err
	}
	h.archive.Start(h.follow.LetGo)
	h.given.Start(nil)
	if err = h.useTape(playing); err != nil {
		return nil, err
	}
	h.ledger = delivery.New(h.store, o.LedgerRetention, h.now)
	limits := guest.Limits{ModuleBytes: h.limits.ModuleBytes, MemoryBytes: h.limits.MemoryBytes}
	if h.machine, err = guest.NewMachine(ctx, o.CacheDir, limits, h.logger); err != nil {
		_ = h.closeTape()
		return nil, err
	}
	return h, nil
}

// Close releases the data folder. Slots of this host must have been closed before.
func (h *Host) Close(ctx context.Context) error {
	h.archive.Close()
	h.given.Close()
	h.fleet.Close()
	if err := errors.Join(h.machine.Close(ctx), h.store.Close(), h.closeTape(), h.receipts.close()); err != nil {
		return abi.AsError(err)
	}
	return nil
}

// Archive is what an operator can do with a slot's archive. Host.Archive returns it, and a client of a slot's HTTP door
// implements it too.
type Archive interface {
	// ArchiveStats reports what the archive holds.
	ArchiveStats(ctx context.Context) (*report.ArchiveStats, error)
	// ArchivePage returns archived events in the order in which they were accepted.
	ArchivePage(ctx context.Context, request *report.ArchiveRequest) (*report.ArchivePage, error)
	// ArchiveAdd adds events that the archive does not have. Memory is not changed. Forgotten events are skipped and
	// counted neither as added nor as present. If the archive, or the batch itself, has an event with other content
	// under the same scope and id, nothing of the batch is added, and the error is conflict with reason event_content.
	ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (*report.ArchiveReceipt, error)
	// ArchiveCheck reads the whole archive and reports damage.
	ArchiveCheck(ctx context.Context) (*report.ArchiveCheck, error)
}

// Archive returns the archive of the data folder. If none is kept, its methods say so.
func (h *Host) Archive() Archive { return h.archive }

// commit writes a batch. The guest has already changed the backend, so the caller cannot cancel the commit.
func (h *Host) commit(ctx context.Context, b *state.Batch) error {
	ctx, span := h.part(ctx, "commit")
	err := stateError(h.fleet.Commit(context.WithoutCancel(ctx), b))
	span.End(string(abi.CodeOf(err)))
	return err
}

// stateError converts a store's error to the contract's. Nil stays nil.
func stateError(err error) error { return state.ContractError(err) }

func (h *Host) eachRecord(ctx context.Context, table state.Table, prefix []byte,
	visit func(state.KeyValue) error) error {
	return state.EachRecord(ctx, h.store, table, prefix, visit)
}

// clock is the host's time: real, or read from a cassette.
type clock interface {
	Now() time.Time
	// Pause waits for d, or until ctx ends.
	Pause(ctx context.Context, d time.Duration)
	// Measured returns a measured duration as it appears in traces.
	Measured(d time.Duration) time.Duration
}

// realClock is the clock of the options.
type realClock struct {
	now   func() time.Time
	pause func(context.Context, time.Duration)
}

func (c realClock) Now() time.Time { return c.now() }

func (c realClock) Pause(ctx context.Context, d time.Duration) { c.pause(ctx, d) }

func (realClock) Measured(d time.Duration) time.Duration { return d }

// now reads the host's clock; stamp formats it as the contract does.
func (h *Host) now() time.Time { return h.clock.Now() }

func (h *Host) stamp() string { return h.now().UTC().Format(time.RFC3339Nano) }

// The first pause between two looks at a backend, and the longest one, up to which pauses double.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// waiting measures how long the host polls, by its own clock. The pauses count even if that clock stops or goes back.
type waiting struct {
	clock  clock
	began  time.Time
	limit  time.Duration
	waited time.Duration
	next   time.Duration // the next pause
}

func (h *Host) waiting(limit time.Duration) *waiting {
	return &waiting{clock: h.clock, began: h.now(), limit: limit, next: firstPause}
}

func (w *waiting) left() time.Duration { return w.limit - max(w.clock.Now().Sub(w.began), w.waited) }

// pause waits until the next look, at most until the time is over.
func (w *waiting) pause(ctx context.Context) {
	d := max(0, min(w.next, w.left()))
	w.clock.Pause(ctx, d)
	w.waited += d
	w.next = min(2*w.next, longestPause)
}
