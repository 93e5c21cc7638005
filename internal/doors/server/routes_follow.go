package server

import (
	"context"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Backfiller starts and plans the filling of another provider. It finds and checks configuration and module.
type Backfiller interface {
	Backfill(ctx context.Context, request wire.BackfillRequest) (*report.Backfill, error)
	BackfillPlan(ctx context.Context, request wire.BackfillRequest) (*report.BackfillPlan, error)
	// BackfillDiscard discards a backfill whose provider is not loaded.
	BackfillDiscard(ctx context.Context) (*report.Backfill, error)
}

// followRoutes are for the operator of the slot: providers besides the serving one.
func (s *Server) followRoutes() []route {
	unsupported := []abi.Code{abi.CodeUnsupported}
	start := []abi.Code{abi.CodeUnsupported, abi.CodeConflict, abi.CodeNotFound}
	request := &wire.BackfillRequest{Condition: "full_history", Config: abi.Raw(`{}`)}
	return []route{
		{method: http.MethodPost, path: wire.PathBackfill, operation: wire.OpBackfill, tag: tagFollow, codes: start,
			summary: "Fill another provider, then let it serve",
			about: "The provider is filled from the archive, or with given from the events that were brought for it, while " +
				"the present one serves, then gets what is recorded, and serves once it has everything. The same request goes on with a backfill that was stopped.",
			request: request, answer: exampleBackfill(), handler: call(s, wire.OpBackfill, s.backfill)},
		{method: http.MethodPost, path: wire.PathBackfillGive, operation: wire.OpBackfillGive, tag: tagFollow,
			codes: start, summary: "Bring events to fill another provider from",
			about: "In place of the archive: up to 1000, all of them or none, in the order in which they are to be " +
				"remembered. first drops what was brought before. They wait for a backfill with given.",
			request: &report.BackfillEvents{First: true, Events: []abi.MemoryEvent{*exampleEvent()}},
			answer:  &report.ArchiveReceipt{Added: 1},
			handler: call(s, wire.OpBackfillGive, func(ctx context.Context, q *report.BackfillEvents) (*report.ArchiveReceipt,
				error) {
				return onFollowers(ctx, s, func(f host.Followers, ctx context.Context) (*report.ArchiveReceipt, error) {
					return f.BackfillEvents(ctx, q)
				})
			})},
		{method: http.MethodPost, path: wire.PathBackfillPlan, operation: wire.OpBackfillPlan, tag: tagFollow,
			codes: start, summary: "Tell what a backfill would send",
			about: "Counts events and tokens. The module is loaded, and no backend is asked.", request: request,
			answer: &report.BackfillPlan{Provider: "full_history", ConditionKind: abi.KindControl, Events: 4213, Scopes: 3,
				Oldest: "2026-03-01T09:00:02Z", Newest: "2026-03-08T17:30:00Z", Tokens: 310_000, Tokenizer: "bytes4",
				Notes: []string{"the module works by itself: no native call, and no call to a model"}},
			handler: call(s, wire.OpBackfillPlan, s.backfillPlan)},
		{method: http.MethodGet, path: wire.PathBackfill, operation: wire.OpBackfillStatus, tag: tagFollow, local: true,
			codes: unsupported, summary: "Tell how far a backfill is", answer: exampleBackfill(),
			about: "State asks means that events are open: the provider may have them or not, or refused them.",
			handler: ask(s, wire.OpBackfillStatus, func(ctx context.Context) (*report.Backfill, error) {
				return onFollowers(ctx, s, host.Followers.BackfillStatus)
			})},
		{method: http.MethodPost, path: wire.PathBackfillServe, operation: wire.OpBackfillServe, tag: tagFollow,
			codes: start, summary: "Let a filled provider serve",
			about: "Refused events are tried once more. With accept_open it serves although events are open, held " +
				"back or dropped.",
			request: &report.BackfillServe{AcceptOpen: true}, answer: exampleBackfill(),
			handler: call(s, wire.OpBackfillServe, func(ctx context.Context, q *report.BackfillServe) (*report.Backfill, error) {
				return onFollowers(ctx, s, func(f host.Followers, ctx context.Context) (*report.Backfill, error) {
					return f.BackfillServe(ctx, q)
				})
			})},
		{method: http.MethodPost, path: wire.PathBackfillStop, operation: wire.OpBackfillStop, tag: tagFollow,
			codes: start, summary: "Stop a backfill",
			about: "What it filled is kept, and starting it again continues it. With discard the scopes that it filled are " +
				"reset, and remains says what could not be.",
			request: &report.BackfillStop{Discard: true}, answer: exampleBackfill(),
			handler: call(s, wire.OpBackfillStop, func(ctx context.Context, q *report.BackfillStop) (*report.Backfill, error) {
				return onFollowers(ctx, s, func(f host.Followers, ctx context.Context) (*report.Backfill, error) {
					b, err := f.BackfillStop(ctx, q)
					if err != nil && abi.AsError(err).Reason == "stopped" && s.options.Backfiller != nil {
						return s.options.Backfiller.BackfillDiscard(ctx)
					}
					return b, err
				})
			})},
		{method: http.MethodPost, path: wire.PathCompare, operation: wire.OpCompare, tag: tagFollow, local: true,
			codes: []abi.Code{abi.CodeUnsupported, abi.CodeRateLimited}, summary: "Ask other memories the same question",
			about: "A shadow of the slot is asked with what it has. Another memory is filled from the scope's archive with " +
				"its newest 5000 events, in a folder that is removed afterwards, and asked once: only built-in memories " +
				"that need neither a server nor a model, with their default configuration. One comparison at a time.",
			request: &wire.CompareRequest{Scope: exampleScope(), Query: "What does she drink?",
				Providers: []string{"bm25", "full_history"}},
			answer: &wire.Comparison{Events: 212, Answers: []wire.ComparedAnswer{{Provider: "bm25", FormattedContext: "...",
				Tokens: 388, LatencyMS: 2.1, FillMS: 90}}},
			handler: call(s, wire.OpCompare, s.compare)},
		{method: http.MethodGet, path: wire.PathShadows, operation: wire.OpShadows, tag: tagFollow, local: true,
			codes: unsupported, summary: "List the shadows, and how they compare",
			about: "A shadow gets every write and is asked a share of the retrievals after the agent has its answer. An " +
				"empty list means that none is configured.",
			answer: exampleShadows(),
			handler: ask(s, wire.OpShadows, func(ctx context.Context) (*report.ShadowList, error) {
				return onFollowers(ctx, s, host.Followers.Shadows)
			})},
		{method: http.MethodPost, path: wire.PathShadowAnswers, operation: wire.OpShadowAnswers, tag: tagFollow,
			local: true, codes: unsupported, summary: "Read stored answers of shadows",
			about:   "Newest first: before is the next of the page before.",
			request: &report.ShadowAnswersRequest{Limit: 50},
			answer:  &report.ShadowAnswers{Answers: []report.ShadowAnswer{exampleShadowAnswer()}},
			handler: call(s, wire.OpShadowAnswers, func(ctx context.Context, q *report.ShadowAnswersRequest) (
				*report.ShadowAnswers, error) {
				return onFollowers(ctx, s, func(f host.Followers, ctx context.Context) (*report.ShadowAnswers, error) {
					return f.ShadowAnswers(ctx, q)
				})
			})},
	}
}

// onFollowers runs a function on the slot's followers for a caller who may name any scope, because followers get the
// events of all scopes.
func onFollowers[A any](ctx context.Context, s *Server, do func(host.Followers, context.Context) (A, error)) (
	A, error) {
	var none A
	if err := s.allScopes(); err != nil {
		return none, err
	}
	f, ok := s.options.Slot.(host.Followers)
	if !ok {
		return none, abi.NewError(abi.CodeUnsupported, "nothing can follow this slot").WithReason("followers")
	}
	return do(f, ctx)
}

// allScopes rejects callers of a door that serves one scope.
func (s *Server) allScopes() error {
	if s.options.Scopes.Only == nil {
		return nil
	}
	return abi.NewError(abi.CodeDenied, "this door serves the configured scope only, and backfills and shadows are of "+
		"all scopes").WithReason("scope").WithHint("set memory.scopes to any")
}

func (s *Server) backfiller() (Backfiller, error) {
	if err := s.allScopes(); err != nil {
		return nil, err
	}
	if s.options.Backfiller == nil {
		return nil, abi.NewError(abi.CodeUnsupported, "this slot's provider cannot be exchanged").WithReason("swap")
	}
	return s.options.Backfiller, nil
}

func (s *Server) backfill(ctx context.Context, q *wire.BackfillRequest) (*report.Backfill, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	b, err := s.backfiller()
	if err != nil {
		return nil, err
	}
	return b.Backfill(ctx, *q)
}

func (s *Server) backfillPlan(ctx context.Context, q *wire.BackfillRequest) (*report.BackfillPlan, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	b, err := s.backfiller()
	if err != nil {
		return nil, err
	}
	return b.BackfillPlan(ctx, *q)
}

func (s *Server) compare(ctx context.Context, q *wire.CompareRequest) (*wire.Comparison, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := s.options.Scopes.check("scope", q.Scope); err != nil {
		return nil, err
	}
	if s.options.Compare == nil {
		return nil, abi.NewError(abi.CodeUnsupported, "this slot compares no memories").WithReason("compare")
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = defaultCompared
	}
	return s.options.Compare(ctx, q)
}

// defaultCompared is the budget of a comparison that names none, in tokens.
const defaultCompared = 1500

func exampleBackfill() *report.Backfill {
	left := int64(94_000)
	return &report.Backfill{State: report.FollowerFilling, Provider: "full_history", ConditionKind: abi.KindControl,
		Since:    "2026-03-08T18:00:00Z",
		Progress: report.FollowerProgress{Events: 4213, Done: 1200, LeftOut: 2, PerSecond: 32, RemainingMS: &left}}
}

func exampleShadows() *report.ShadowList {
	serving, shadow, overlap := 412.0, 388.0, 0.61
	return &report.ShadowList{Serving: "full_history", Shadows: []report.Shadow{{Provider: "bm25_memory",
		ConditionKind: abi.KindControl, State: report.FollowerReady, Since: "2026-03-01T09:00:00Z", SamplePercent: 20,
		RetentionMS: 1_209_600_000, Progress: report.FollowerProgress{Events: 4213, Done: 4213},
		Report: report.ShadowReport{Answers: 120, TokensMean: &shadow, ServingTokensMean: &serving, OverlapMean: &overlap,
			OverlapAnswers: 118}}}}
}

func exampleShadowAnswer() report.ShadowAnswer {
	half := 0.5
	return report.ShadowAnswer{At: "2026-03-08T17:30:00Z", Provider: "bm25_memory", Serving: "full_history",
		Query: "What does she drink?", Scope: exampleScope(), SessionID: "s9", ServingContext: "...", ServingTokens: 412,
		ServingLatencyMS: 1.2, FormattedContext: "...", Tokens: 388, LatencyMS: 2.1, Both: 2, OnlyServing: 1, OnlyShadow: 1,
		Overlap: &half}
}
