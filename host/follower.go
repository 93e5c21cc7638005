package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// follower is an additional provider, next to the serving one, which package follow fills. It has its own slot, and so
// its own instances, scopes and ledger. A delivery to it runs the same code as a delivery to the serving provider, so
// "once" means the same for both. Slot and follower share the read-only mode, and raising the wall also waits for a
// follower's calls.
type follower struct {
	work  *follow.Follower
	slot  *Slot // the slot that it follows
	inner *Slot // the follower's own slot
	// awaited has the ledger keys that Awaited counts; nil before its first call. Only one goroutine calls it.
	awaited map[string]bool

	mu sync.Mutex
	// health is the provider's first successful health answer, nil before; steps are those of its loading.
	health *abi.BackendHealth
	steps  []report.RunStep
}

var _ follow.Memory = (*follower)(nil)

// followerKey identifies the memory that a follower fills.
func (p *Provider) followerKey() follow.Key {
	return digestOf("follower", p.name, p.originKey, p.config.Namespace)
}

// lanesOf is how many scopes a provider receives concurrently: calls to a backend mostly wait, while a module without a
// backend needs a processor.
func lanesOf(p *Provider) int {
	if len(p.module.Manifest.Origins) == 0 {
		return 1
	}
	return min(4, p.limits.Pool)
}

// newFollower creates a follower of a slot from a provider. It fills in config.Memory, Key and Lanes. The caller holds
// swapMu, and must add and start the follower.
func (s *Slot) newFollower(ctx context.Context, p *Provider, config follow.Config) (f *follower, err error) {
	f = &follower{slot: s, inner: &Slot{host: s.host, wall: s.wall,
		following: &followerUse{origin: config.Record.Role, cause: s.host.traceparentOf(ctx)}}}
	f.inner.current.Store(&servingProvider{provider: p})
	config.Memory, config.Key, config.Lanes = f, p.followerKey(), lanesOf(p)
	if f.work, err = follow.New(ctx, s.host.follow, config); err == nil {
		err = s.host.keepProvider(ctx, p) // so that a person can be erased there after it has stopped following
	}
	return f, err
}

// provider returns the follower's provider; nil once it serves or is closed.
func (f *follower) provider() *Provider {
	if v := f.inner.current.Load(); v != nil {
		return v.provider
	}
	return nil
}

// close ends the follower and frees its provider.
func (f *follower) close(ctx context.Context) error {
	f.work.End(ctx)
	return f.inner.Close(ctx)
}

// Open implements follow.Memory: it repeats the provider's health check until it succeeds.
func (f *follower) Open(ctx context.Context) error {
	f.mu.Lock()
	opened := f.health != nil
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

// begin records that the provider is ready.
func (f *follower) begin(p *Provider, health *abi.BackendHealth, steps []report.RunStep) {
	p.consistency, p.backendName = health.ConsistencyModel, health.BackendName
	f.inner.startBackground(p)
	f.mu.Lock()
	f.health, f.steps = health, steps
	f.mu.Unlock()
}

// Has implements follow.Memory.
func (f *follower) Has(op string) bool { return f.provider().has(op) }

// Scope implements follow.Memory.
func (f *follower) Scope(event *abi.MemoryEvent) (abi.MemoryScope, error) {
	p := f.provider()
	scope := p.memoryScopeOf(event)
	_, err := p.scopeOf(scope)
	return scope, err
}

// TestSession implements follow.Memory.
func (f *follower) TestSession(session string) bool { return f.provider().testSession(session) }

// ReadOnly implements follow.Memory. The scope may be read-only at the serving provider too.
func (f *follower) ReadOnly(event *abi.MemoryEvent) (bool, error) {
	if event == nil {
		return f.slot.wall.ReadOnly(wall.Slot), nil
	}
	providers := []*Provider{f.provider()}
	if v := f.slot.current.Load(); v != nil {
		providers = append(providers, v.provider)
	}
	for _, p := range providers {
		sc, err := p.scopeOfEvent(event)
		if err != nil || f.slot.wall.ReadOnly(sc.wallKey()) {
			return err == nil, err
		}
	}
	return false, nil
}

// servingLately is how long followers give way after a caller's last operation.
const servingLately = 250 * time.Millisecond

// Busy implements follow.Memory.
func (f *follower) Busy() bool {
	return time.Since(time.Unix(0, f.slot.lastCall.Load())) < servingLately
}

// RecordEvents implements follow.Memory.
func (f *follower) RecordEvents(ctx context.Context, events *abi.EventBatch) (*abi.BatchReceipts, error) {
	return f.inner.RecordEvents(ctx, events)
}

// Reset implements follow.Memory.
func (f *follower) Reset(ctx context.Context, scope abi.MemoryScope) error {
	p := f.provider()
	sc, err := p.scopeOf(scope)
	if err != nil {
		return err
	}
	known, err := f.slot.host.scopeRecordOf(ctx, sc.key)
	if err != nil || known == nil {
		return err
	}
	receipt, err := f.inner.ResetScope(ctx, scope)
	if err != nil {
		return err
	}
	remains := receipt.Remains
	if _, left := f.slot.host.scrub(ctx); left != "" {
		remains = append(remains, left)
	}
	if receipt.Status != abi.ResetDone || len(remains) > 0 {
		p.logger.Warn("a follower's reset of a scope has left something", "provider", p.name, "status", receipt.Status,
			"remains", remains)
	}
	return nil
}

// Outstanding implements follow.Memory, from the ledger.
func (f *follower) Outstanding(ctx context.Context, listed []report.OpenEvent) (open []report.OpenEvent, unseen int64,
	err error) {
	p := f.provider()
	if p == nil {
		return nil, 0, nil
	}
	known := map[string]bool{} // by ledger key
	for i := range listed {
		entry, key, err := f.ledgerOf(ctx, p, &listed[i])
		if err != nil {
			return nil, 0, err
		}
		known[key] = true
		if entry == nil || entry.Uncertain() || entry.State != delivery.Received {
			open = append(open, listed[i])
		}
	}
	err = f.eachUnseen(ctx, func(key []byte, owner *scopeRecord, is delivery.Outstanding) {
		switch {
		case known[string(key)]:
		case is == delivery.OutstandingLost:
			open = append(open, report.OpenEvent{EventID: string(key[len(state.Space{}):]), Scope: owner.memoryScope(),
				Outcome: follow.Lost, Why: "the backend took it and does not have it: record it again"})
		default:
			unseen++
		}
	})
	return open, unseen, err
}

// Awaited implements follow.Memory.
func (f *follower) Awaited(ctx context.Context, listed []report.OpenEvent) (int64, error) {
	p := f.provider()
	if p == nil {
		return 0, nil
	}
	still := map[string]bool{}
	err := f.eachUnseen(ctx, func(key []byte, _ *scopeRecord, is delivery.Outstanding) {
		if is != delivery.OutstandingLost && (f.awaited == nil || f.awaited[string(key)]) {
			still[string(key)] = true
		}
	})
	for i := range listed {
		if err == nil {
			var key string
			_, key, err = f.ledgerOf(ctx, p, &listed[i])
			delete(still, key)
		}
	}
	if err != nil {
		return 0, err
	}
	f.awaited = still
	return int64(len(still)), nil
}

// eachUnseen visits the events of the follower's provider that are lost or not ready, by ledger key.
func (f *follower) eachUnseen(ctx context.Context, visit func(key []byte, owner *scopeRecord, is delivery.Outstanding)) error {
	p, h := f.provider(), f.slot.host
	owners := map[scopeKey]*scopeRecord{}
	return h.ledger.EachOutstanding(ctx, func(key []byte, scope delivery.Scope, is delivery.Outstanding) error {
		if is == delivery.OutstandingMarked {
			return nil
		}
		owner, found := owners[scope]
		if !found {
			var err error
			if owner, err = h.scopeRecordOf(ctx, scope); err != nil {
				return err
			}
			owners[scope] = owner
		}
		if owner != nil && p.owns(owner) && generationSpace(scope, owner.Generation) == state.Space(key) {
			visit(key, owner, is)
		}
		return nil
	})
}

// ledgerOf returns the ledger's entry of an open event and its key; nil if there is none.
func (f *follower) ledgerOf(ctx context.Context, p *Provider, open *report.OpenEvent) (*delivery.Entry, string, error) {
	sc, err := p.scopeOf(open.Scope)
	if err != nil {
		return nil, "", err
	}
	generation, err := f.slot.host.currentGeneration(ctx, sc)
	if err != nil {
		return nil, "", err
	}
	space := sc.space(generation)
	entry, err := f.slot.host.ledger.Entry(ctx, space, open.EventID)
	return entry, string(delivery.Key(space, open.EventID)), err
}

// Retrieve implements follow.Memory. While the scope is read-only it only reads.
func (f *follower) Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	if f.provider() == nil {
		return nil, abi.NewError(abi.CodeUnavailable, "the follower has ended").WithReason("closed")
	}
	return f.inner.Retrieve(ctx, r)
}

// runFollower describes the follower for the run manifest.
func (f *follower) runFollower() (report.RunFollower, bool) {
	p := f.provider()
	if p == nil {
		return report.RunFollower{}, false
	}
	record := f.work.Record()
	return report.RunFollower{Role: record.Role, Provider: p.name, ConditionKind: p.kind, Module: p.runModule(),
		ConfigHash: p.configHash(), SamplePercent: f.work.SamplePercent(), Since: record.Since}, true
}

// gateWait bounds how long a switch waits for writes in progress at the serving provider; new writes wait at the gate
// for as long.
const gateWait = 10 * time.Second

// TakeTurn implements follow.Memory: it holds back new writes, waits for those in progress, delivers the last of them
// to the follower, and switches.
func (f *follower) TakeTurn(ctx context.Context) (served bool, err error) {
	s := f.slot
	if !s.swapMu.TryLock() { // a swap, or a request that stops this follower and waits for it
		return false, nil
	}
	defer s.swapMu.Unlock()
	within, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	if !s.gate.Close(within) {
		return false, nil
	}
	defer s.gate.Open()
	if caught, err := f.work.CatchUp(within); !caught {
		return false, err
	}
	return true, f.serve(ctx)
}

// promoteBehind is how many undelivered events a follower may have for a plain swap to promote it.
const promoteBehind = 256

// promote is a plain swap to the memory of a follower: it loads next, delivers the remaining events to it, and lets it
// serve. The caller holds swapMu.
func (f *follower) promote(ctx context.Context, next *Provider, health *abi.BackendHealth, steps *stepLog) (err error) {
	defer func() {
		if err != nil {
			_ = next.close(context.WithoutCancel(ctx))
			e := *abi.AsError(err)
			e.Operation, e.Hint = "swap", joinHints(e.Hint, "the slot serves on as before")
			err = &e
		}
	}()
	hint := "`memhost swap " + next.name + " --backfill` waits until it has everything, then swaps"
	behind, err := f.work.Behind(ctx)
	if err != nil {
		return err
	}
	if behind > promoteBehind {
		return abi.NewError(abi.CodeConflict, fmt.Sprintf("%s lacks %d events", next.name, behind)).
			WithReason("behind").WithHint(hint)
	}
	f.work.End(ctx)
	old := f.inner.current.Swap(&servingProvider{provider: next})
	within, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	caught := f.slot.gate.Close(within)
	if caught {
		defer f.slot.gate.Open()
		next.consistency, next.backendName = health.ConsistencyModel, health.BackendName
		f.mu.Lock()
		f.health, f.steps = health, steps.steps
		f.mu.Unlock()
		if caught, err = f.work.CatchUp(within); caught {
			err = f.serve(ctx)
		}
	}
	if err == nil && !caught {
		err = abi.NewError(abi.CodeConflict, fmt.Sprintf("writes under way, or what %s lacks, take longer than %s",
			next.name, gateWait)).WithReason("behind").WithHint(hint)
	}
	if err != nil {
		f.inner.current.Store(old)
		f.work.Start()
		return err
	}
	old.provider.endBackground()
	f.slot.drain(old.provider)
	return nil
}

// StepBackfill is the step of a run manifest that reports how the provider was filled before it served.
const StepBackfill = "backfill"

// serve makes the follower's provider the slot's serving one. The caller holds swapMu and the gate.
func (f *follower) serve(ctx context.Context) error {
	s, p := f.slot, f.provider()
	detail, err := f.work.Finish(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	health := f.health
	steps := append(f.steps, report.RunStep{Name: StepBackfill, Verdict: verdictPass, Detail: detail})
	f.mu.Unlock()
	if err := s.host.endFollowing(ctx); err != nil {
		p.logger.Warn("what waited for a memory that serves now could not be removed", "error", err)
	}
	p.endBackground()
	f.inner.current.Store(nil)
	s.followers.remove(f)
	s.secrets = p.config.Secrets
	s.serve(ctx, p, health, &stepLog{steps: steps, tell: s.host.options.OnStep}, time.Now())
	return nil
}
