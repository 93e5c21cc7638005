package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// BackfillOptions say how to fill another provider. The zero value of a field means its default.
type BackfillOptions struct {
	// Rate is the maximum number of events per second; 0, the default, means no limit.
	Rate float64
	// Inline means that the config block is part of the request. It is stored, so that the backfill continues after a
	// restart.
	Inline bool
	// Given fills the provider from the events that BackfillEvents brought instead of from the archive.
	Given bool
	// Resume continues a backfill that was interrupted when its process ended: see UnfinishedBackfill. The provider's
	// health check runs later, and repeats until the provider answers.
	Resume bool
}

// UnfinishedBackfill is a backfill whose provider is not loaded.
type UnfinishedBackfill struct {
	Provider, Word, Source string
	// Stopped means that it waits for a call of Backfill; otherwise it was interrupted when its process ended.
	Stopped bool
	// Given means that it is filled from given events.
	Given bool
	// Block is the config block of the request; nil if the configuration has it.
	Block abi.Raw
	Rate  float64
}

// backfillStop bounds how long stopping waits for a delivery in progress.
const backfillStop = 10 * time.Second

const opBackfill = "backfill"

func refuseBackfill(code abi.Code, reason, message, hint string) error {
	return inOperation(opBackfill, abi.NewError(code, message).WithReason(reason).WithHint(hint))
}

// Backfill starts or resumes filling another provider, from the archive or from given events, while the present one
// serves. When the new provider has everything that was recorded, it starts to serve and replaces the present one. If a
// shadow already has this memory, the shadow is promoted.
//
// Errors: unsupported with reason archive_off or recorded; conflict with reason backfill if another backfill is
// running; invalid_argument for the memory that serves, or with reason nothing_given; those of Swap.
func (s *Slot) Backfill(ctx context.Context, config ProviderConfig, options BackfillOptions) (*report.Backfill, error) {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if err := s.canFollow(); err != nil {
		return nil, inOperation(opBackfill, err)
	}
	if err := s.canBegin(ctx, config, options.Given); err != nil {
		return nil, err
	}
	f, err := s.backfillOf(ctx, config, options)
	if err != nil {
		return nil, err
	}
	return f.backfill(ctx)
}

// canFollow rejects followers while recording, where only operations that callers ask for may run.
func (s *Slot) canFollow() error {
	if s.host.recorded {
		return abi.NewError(abi.CodeUnsupported, "a cassette is recorded: there is one provider and one operation at a "+
			"time").WithReason("recorded")
	}
	if s.host.fleet.Shared() {
		return abi.NewError(abi.CodeUnsupported, "several hosts share this store, and a memory that follows is one "+
			"host's").WithReason("cluster")
	}
	return nil
}

// backfillOf creates or finds the follower of a backfill, and starts it. The caller holds swapMu.
func (s *Slot) backfillOf(ctx context.Context, config ProviderConfig, options BackfillOptions) (f *follower,
	err error) {
	p, health, steps, err := s.loadFollower(ctx, config, options.Resume)
	if err != nil {
		return nil, err
	}
	defer func() {
		if f == nil || f.provider() != p {
			_ = p.close(context.WithoutCancel(ctx))
		}
	}()
	record, err := s.backfillRecord(ctx, p, config, options)
	if err != nil {
		return nil, err
	}
	f = s.followers.with(p.followerKey())
	if f != nil && record.Given && f.work.Record().Role == report.RoleShadow {
		return nil, refuseBackfill(abi.CodeConflict, "shadow", p.name+" follows as a shadow: it has what the slot records",
			"record the file (memhost record FILE), or take "+p.name+" out of memory.shadows")
	}
	if f != nil && f.work.Record().Role == report.RoleBackfill { // it was stopped, or is already filled
		if err := f.close(ctx); err != nil {
			return nil, inOperation(opBackfill, err)
		}
		s.followers.remove(f)
		f = nil
	}
	if f != nil { // a shadow
		f.work.WantTurn(false)
		return f, nil
	}
	if f, err = s.newFollower(ctx, p, follow.Config{Record: *record}); err != nil {
		return nil, inOperation(opBackfill, err)
	}
	if health != nil {
		f.begin(p, health, steps)
	}
	s.followers.add(f)
	f.work.Start()
	s.manifestChanged(ctx)
	return f, nil
}

// backfillRecord is the record with which a backfill starts or resumes.
func (s *Slot) backfillRecord(ctx context.Context, p *Provider, config ProviderConfig, options BackfillOptions) (
	*follow.Record, error) {
	key := p.followerKey()
	if v := s.current.Load(); v != nil && v.provider.followerKey() == key {
		return nil, refuseBackfill(abi.CodeInvalidArgument, "serves", p.name+" is the memory that serves",
			"a memory.namespace of its own makes another memory of the same provider")
	}
	for _, f := range s.followers.list() {
		if other := f.work.Record(); other.Role == report.RoleBackfill && f.work.Key() != key {
			return nil, refuseBackfill(abi.CodeConflict, "backfill",
				"a backfill of "+other.Provider+" is under way", "one at a time: stop or discard it first (memhost backfill stop)")
		}
	}
	record, err := s.host.follow.Record(ctx, key)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	begun := record != nil && record.Role == report.RoleBackfill
	switch {
	case begun && options.Given && !options.Resume:
		return nil, refuseBackfill(abi.CodeConflict, "backfill", "a backfill of "+p.name+" was begun before",
			"`memhost swap "+p.name+" --backfill` goes on with it, `memhost backfill discard` throws it away")
	case !begun:
		begin := follow.Record{Role: report.RoleBackfill, Given: options.Given}
		if record, err = s.newRecord(ctx, p, begin, false); err != nil {
			return nil, inOperation(opBackfill, err)
		}
	}
	if options.Resume && record.Module != p.module.SHA256 {
		err := refuseBackfill(abi.CodeConflict, "module_changed", fmt.Sprintf("the module of %s has changed since the "+
			"backfill began: it was %.12s, and is %.12s", p.name, record.Module, p.module.SHA256), "`memhost swap "+
			p.name+" --backfill` goes on with the new one, `memhost backfill discard` throws away what the old one filled")
		return nil, err
	}
	record.Module, record.Rate, record.Stopped, record.InPage = p.module.SHA256, options.Rate, "", 0
	record.Word, record.Source, record.Block = p.word, config.Source, nil
	if options.Inline {
		plain, err := schema.CanonicalJSON(config.Block)
		if err != nil || string(schema.BlankRaw(config.Block)) != string(plain) {
			return nil, refuseBackfill(abi.CodeInvalidArgument, "secret", "config: holds what looks like a credential, "+
				"and a backfill keeps its block in the data folder", "put the block into the slot's configuration, and "+
				"credentials under secrets: {secret: NAME}")
		}
		record.Block = json.RawMessage(config.Block)
	}
	return record, nil
}

// newRecord is the record of a new follower, which starts at the beginning or the end of the archive. Without an
// archive, events recorded from now on are queued for the follower.
func (s *Slot) newRecord(ctx context.Context, p *Provider, r follow.Record, atEnd bool) (*follow.Record, error) {
	if !s.host.archive.On {
		s.host.queued.Store(true)
	}
	r.Provider, r.Word, r.Source, r.Module = p.name, p.word, p.config.Source, p.module.SHA256
	return s.host.follow.Begin(ctx, r, atEnd)
}

// loadFollower loads a provider that will follow. With later, its backend is not contacted yet; otherwise the provider
// goes through the steps of a swap.
func (s *Slot) loadFollower(ctx context.Context, config ProviderConfig, later bool) (*Provider, *abi.BackendHealth,
	[]report.RunStep, error) {
	if !later {
		steps := &stepLog{tell: s.host.options.OnStep}
		p, health, err := s.prepare(ctx, config, steps)
		if err != nil {
			e := *abi.AsError(err)
			steps.fail(&e)
			e.Message = fmt.Sprintf("step %s: %s", steps.current, e.Message)
			return nil, nil, nil, inOperation(opBackfill, &e)
		}
		return p, health, steps.steps, nil
	}
	p, err := s.host.loadProvider(ctx, config)
	return p, nil, nil, err
}

// loadProvider loads and configures a provider without registering it.
func (h *Host) loadProvider(ctx context.Context, config ProviderConfig) (*Provider, error) {
	if err := config.checkIdentity(); err != nil {
		return nil, err
	}
	module, err := h.Load(ctx, config.Module)
	if err != nil {
		return nil, err
	}
	return h.configureLoaded(ctx, module, config)
}

// configureLoaded is configure for a module that was loaded for this provider alone. It releases the module if
// configuring fails.
func (h *Host) configureLoaded(ctx context.Context, module *Module, config ProviderConfig) (*Provider, error) {
	p, err := h.configure(module, config)
	if err != nil {
		_ = h.machine.Release(ctx, module.program)
		return nil, err
	}
	return p, nil
}

// UnfinishedBackfill returns the backfill that was stopped, or interrupted when its process ended; nil if there is
// none. Call Backfill with Resume to continue it, or BackfillDiscard to drop it.
func (s *Slot) UnfinishedBackfill(ctx context.Context) (*UnfinishedBackfill, error) {
	_, r, err := s.unfinished(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	return &UnfinishedBackfill{Provider: r.Provider, Word: r.Word, Source: r.Source, Stopped: r.Stopped != "",
		Block: abi.Raw(r.Block), Rate: r.Rate, Given: r.Given}, nil
}

// unfinished returns the record of a backfill whose provider is not loaded: preferably an interrupted one, else the one
// that was stopped last; nil if there is none.
func (s *Slot) unfinished(ctx context.Context) (of follow.Key, last *follow.Record, err error) {
	records, err := s.host.follow.Records(ctx)
	for key, r := range records {
		if r.Role != report.RoleBackfill || s.followers.with(key) != nil {
			continue
		}
		if last == nil || last.Stopped != "" && (r.Stopped == "" || r.Stopped > last.Stopped) {
			of, last = key, &r
		}
	}
	return of, last, err
}

// theBackfill returns the follower that will replace the serving provider; nil if there is none.
func (s *Slot) theBackfill() *follower {
	for _, f := range s.followers.list() {
		if f.work.WantsTurn() {
			return f
		}
	}
	return nil
}

// BackfillStatus reports the progress of the backfill. Once the new provider serves, or without a backfill, its state
// is none or stopped.
func (s *Slot) BackfillStatus(ctx context.Context) (*report.Backfill, error) {
	if f := s.theBackfill(); f != nil {
		return f.backfill(ctx)
	}
	key, r, err := s.unfinished(ctx)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	if r == nil {
		return &report.Backfill{State: report.FollowerNone}, nil
	}
	return s.stoppedBackfill(ctx, key, r)
}

// stoppedBackfill describes a backfill whose provider is not loaded.
func (s *Slot) stoppedBackfill(ctx context.Context, key follow.Key, r *follow.Record) (*report.Backfill, error) {
	progress, err := s.host.follow.Stopped(ctx, key, r)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	return &report.Backfill{State: report.FollowerStopped, Provider: r.Provider, Since: r.Since, EventsPerSecond: r.Rate,
		Progress: progress}, nil
}

// backfill describes the follower as a backfill.
func (f *follower) backfill(ctx context.Context) (*report.Backfill, error) {
	now, progress, err := f.work.Progress(ctx)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	record := f.work.Record()
	b := &report.Backfill{State: now, Provider: record.Provider, Since: record.Since, EventsPerSecond: record.Rate,
		Progress: progress}
	if p := f.provider(); p != nil {
		b.ConditionKind = p.kind
	}
	return b, nil
}

// BackfillServe asks again for the switch to the new provider. Refused events are tried once more. With AcceptOpen the
// provider serves even if events are unresolved, or held back by read-only scopes. The run manifest's step backfill
// names these scopes.
func (s *Slot) BackfillServe(ctx context.Context, r *report.BackfillServe) (*report.Backfill, error) {
	f := s.theBackfill()
	if f == nil {
		return nil, errNoBackfill()
	}
	f.work.WantTurn(r.AcceptOpen)
	return f.backfill(ctx)
}

func errNoBackfill() error {
	return refuseBackfill(abi.CodeNotFound, "no_backfill", "no backfill is under way", "memhost swap PROVIDER --backfill")
}

// BackfillPlan reports what Backfill would deliver, without sending anything. It loads the module but does not contact
// its backend.
//
// Errors: those of loading a module; unsupported with reason archive_off; invalid_argument with reason nothing_given.
func (s *Slot) BackfillPlan(ctx context.Context, config ProviderConfig, options BackfillOptions) (*report.BackfillPlan,
	error) {
	h := s.host
	if err := s.canFollow(); err != nil {
		return nil, inOperation(opBackfill, err)
	}
	if err := s.canBegin(ctx, config, options.Given); err != nil {
		return nil, err
	}
	p, err := h.loadProvider(ctx, config)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	defer func() { _ = p.close(context.WithoutCancel(ctx)) }()
	plan := &report.BackfillPlan{Provider: p.name, ConditionKind: p.kind, Tokenizer: p.tokens.Name(), Notes: p.costNotes()}
	key := p.followerKey()
	record, err := h.follow.Record(ctx, key)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	if record == nil {
		if record, err = h.follow.Begin(ctx, follow.Record{Given: options.Given}, false); err != nil {
			return nil, inOperation(opBackfill, err)
		}
	} else {
		plan.Notes = append(plan.Notes, fmt.Sprintf("%d events were delivered before", record.Done))
	}
	if f := s.followers.with(key); f != nil {
		*record = f.work.Record()
	}
	scopes := map[abi.MemoryScope]bool{}
	err = h.follow.Each(ctx, record, func(event *abi.MemoryEvent, erased bool) error {
		forgotten, err := h.wasForgotten(ctx, event)
		if err != nil {
			return err
		}
		if forgotten || erased || p.testSession(event.SessionID) {
			plan.LeftOut++
			return nil
		}
		plan.Events++
		scopes[p.memoryScopeOf(event)] = true
		for i := range event.Messages {
			if text := event.Messages[i].Content; text != nil {
				plan.Tokens += p.tokens.Count([]byte(*text))
			}
		}
		noteTime(plan, event.Timestamp)
		return nil
	})
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	plan.Scopes = int64(len(scopes))
	if p.writesNatively() {
		plan.NativeCalls = plan.Events
	}
	notes, err := p.modelNotes(plan.Events)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	plan.Notes = append(plan.Notes, notes...)
	return plan, nil
}

// modelNotes estimate the backend's calls to a language model for a number of events, from what the manifest declares.
func (p *Provider) modelNotes(events int64) (notes []string, err error) {
	const calls = "calls of the backend to a language model: "
	if p.module.Manifest.ModelCalls == nil || !p.writesNatively() {
		return nil, nil
	}
	list, err := modelCalls(p.module.Manifest, p.block)
	for i := range list {
		if c := &list[i]; c.Operation == abi.OpRecordEvent && c.Model == abi.ModelLanguage {
			notes = append(notes, calls+ModelCallsText(c, events))
		}
	}
	if len(notes) == 0 {
		notes = []string{calls + "0: the configuration asks for none"}
	}
	return notes, err
}

// writesNatively reports whether the module has a route that writes.
func (p *Provider) writesNatively() bool {
	return slices.ContainsFunc(p.module.Manifest.Routes, func(r abi.RouteDecl) bool { return r.Class == abi.ClassWrite })
}

// costNotes list what the module's manifest does not say about the cost of an event.
func (p *Provider) costNotes() []string {
	switch {
	case len(p.module.Manifest.Origins) == 0:
		return []string{"the module works by itself: no native call, and no call to a model"}
	case p.writesNatively():
		return []string{"native_calls counts one native write for each event, which is the least; what the backend does " +
			"with it, calls to models included, is not in it"}
	}
	var names []string
	for _, r := range p.module.Manifest.Routes {
		names = append(names, r.Name)
	}
	return []string{"the module may ask a model while events are delivered or worked off, by its routes " +
		strings.Join(names, ", ") + ": how often depends on its configuration"}
}

// noteTime updates the earliest and the latest time of the events. They are not sorted by time: they come in the order
// of recording, and imports of old events are recorded last.
func noteTime(plan *report.BackfillPlan, at string) {
	earlier := func(a, b string) bool {
		t, err := abi.ParseTime(a)
		u, wrong := abi.ParseTime(b)
		return err == nil && wrong == nil && t.Before(u)
	}
	if plan.Oldest == "" || earlier(at, plan.Oldest) {
		plan.Oldest = at
	}
	if plan.Newest == "" || earlier(plan.Newest, at) {
		plan.Newest = at
	}
}
