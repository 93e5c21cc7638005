package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
)

// ShadowOptions configure a shadow. The zero value of a field means its default.
type ShadowOptions struct {
	// SamplePercent is the share of retrievals that the shadow gets too, 0 to 100; 0 is the default.
	SamplePercent int64
	// Retention is how long its answers are kept; default 14 days.
	Retention time.Duration
	// FromNow skips the archive, so that the shadow only gets what is recorded from now on. It is ignored for a shadow
	// that the data folder already knows.
	FromNow bool
}

const opShadows = "shadows"

// Shadow makes another provider follow the slot: it gets every write, and a share of the retrievals after the agent has
// its answer. Shadow does not contact the provider's backend, which need not run yet.
//
// Errors: invalid_argument for the memory that serves or already has a follower; unsupported with reason recorded;
// those of loading a module.
func (s *Slot) Shadow(ctx context.Context, config ProviderConfig, options ShadowOptions) error {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if err := s.canFollow(); err != nil {
		return inOperation(opShadows, err)
	}
	p, err := s.host.loadProvider(ctx, config)
	if err != nil {
		return inOperation(opShadows, err)
	}
	f, err := s.shadow(ctx, p, options)
	if err != nil {
		_ = p.close(context.WithoutCancel(ctx))
		return inOperation(opShadows, err)
	}
	s.followers.add(f)
	f.work.Start()
	s.manifestChanged(ctx)
	return nil
}

// EndShadows drops the shadows that are not running, if no archive is kept: events recorded from now on are not queued
// for them. A shadow that is started again begins from scratch.
func (s *Slot) EndShadows(ctx context.Context) error {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if s.host.archive.On || s.canFollow() != nil {
		return nil
	}
	if err := s.followers.endAway(ctx); err != nil {
		return inOperation(opShadows, err)
	}
	return s.host.endFollowing(ctx)
}

// shadow creates the follower of a shadow.
func (s *Slot) shadow(ctx context.Context, p *Provider, options ShadowOptions) (*follower, error) {
	key := p.followerKey()
	switch v := s.current.Load(); {
	case options.SamplePercent < 0 || options.SamplePercent > 100:
		return nil, abi.NewError(abi.CodeInvalidArgument, "shadow: want a share of 0 to 100 percent")
	case v != nil && v.provider.followerKey() == key, s.followers.with(key) != nil:
		return nil, abi.NewError(abi.CodeInvalidArgument, p.name+" is the memory that serves, or is followed already").
			WithReason("serves").WithHint("a shadow is another memory: of another provider, or in another namespace")
	}
	record, err := s.host.follow.Record(ctx, key)
	if err != nil {
		return nil, err
	}
	if !s.host.archive.On {
		s.host.queued.Store(true)
	}
	if record == nil {
		begin := follow.Record{Role: report.RoleShadow}
		if record, err = s.newRecord(ctx, p, begin, options.FromNow || !s.host.archive.On); err != nil {
			return nil, err
		}
	}
	record.Role, record.Module, record.Stopped, record.InPage = report.RoleShadow, p.module.SHA256, "", 0
	return s.newFollower(ctx, p, follow.Config{Record: *record, SamplePercent: options.SamplePercent,
		Retention: options.Retention})
}

// Shadows implements Followers.
func (s *Slot) Shadows(ctx context.Context) (*report.ShadowList, error) {
	list := &report.ShadowList{Shadows: []report.Shadow{}}
	if v := s.current.Load(); v != nil {
		list.Serving = v.provider.name
	}
	for _, f := range s.followers.list() {
		p := f.provider()
		if p == nil || f.work.Record().Role != report.RoleShadow {
			continue
		}
		one, err := f.work.Shadow(ctx)
		if err != nil {
			return nil, inOperation(opShadows, err)
		}
		one.ConditionKind = p.kind
		list.Shadows = append(list.Shadows, *one)
	}
	return list, nil
}

// ShadowAnswers implements Followers.
func (s *Slot) ShadowAnswers(ctx context.Context, r *report.ShadowAnswersRequest) (*report.ShadowAnswers, error) {
	retention := follow.DefaultRetention
	for _, f := range s.followers.list() {
		if d := f.work.Retention(); d > 0 {
			retention = d
		}
	}
	page, err := s.host.follow.Answers(ctx, r, retention)
	if err != nil {
		return nil, inOperation(opShadows, err)
	}
	return page, nil
}

// HasShadow reports whether a provider is a shadow of the slot.
func (s *Slot) HasShadow(provider string) bool { return s.shadowOf(provider) != nil }

// AskShadow asks a shadow a question, with what it has now. The answer is not stored.
//
// Errors: not_found if the provider is not a shadow of the slot, and those of Retrieve.
func (s *Slot) AskShadow(ctx context.Context, provider string, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	f := s.shadowOf(provider)
	if f == nil {
		return nil, inOperation(opShadows, abi.NewError(abi.CodeNotFound, provider+" is not a shadow of this slot"))
	}
	return f.Retrieve(ctx, r)
}

// shadowOf returns the follower of a shadow; nil if there is none.
func (s *Slot) shadowOf(provider string) *follower {
	for _, f := range s.followers.list() {
		if p := f.provider(); p != nil && p.name == provider && f.work.Record().Role == report.RoleShadow {
			return f
		}
	}
	return nil
}

// Followers is what an operator can do with additional providers. Slot implements it, and so does a client of a slot's
// HTTP door.
type Followers interface {
	// BackfillEvents brings events to fill a provider from, instead of the archive.
	BackfillEvents(ctx context.Context, request *report.BackfillEvents) (*report.ArchiveReceipt, error)
	BackfillStatus(ctx context.Context) (*report.Backfill, error)
	BackfillServe(ctx context.Context, request *report.BackfillServe) (*report.Backfill, error)
	BackfillStop(ctx context.Context, request *report.BackfillStop) (*report.Backfill, error)
	// Shadows lists the shadows, each with its progress and a comparison of its stored answers.
	Shadows(ctx context.Context) (*report.ShadowList, error)
	// ShadowAnswers returns stored answers, newest first.
	ShadowAnswers(ctx context.Context, request *report.ShadowAnswersRequest) (*report.ShadowAnswers, error)
}

var _ Followers = (*Slot)(nil)
