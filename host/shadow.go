package host

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// ShadowOptions say how a shadow is asked. The zero value of a field means its default.
type ShadowOptions struct {
	// SamplePercent is the share of retrievals that it is asked, 0 to 100. None with 0, the default.
	SamplePercent int64
	// Retention is how long its answers are kept; default 14 days.
	Retention time.Duration
	// FromNow: it gets what is recorded from now on, and not what the archive has. For a shadow that is not new to the
	// data folder it has no meaning.
	FromNow bool
}

const defaultShadowRetention = 14 * 24 * time.Hour

// tableShadow holds what shadows answered, newest first: ns from the answer to the end of time(8), followerKey ->
// abi.ShadowAnswer.
const tableShadow state.Table = "shadow_answers"

const (
	// shadowQueue is how many retrievals wait for a shadow at most. One more is missed.
	shadowQueue = 64
	// shadowSweep is how many old answers are removed with a new one at most.
	shadowSweep = 64
	// shadowReportMost is how many answers a report reads, the newest ones.
	shadowReportMost = 10_000
	opShadows        = "shadows"
)

// asking is how a shadow is asked.
type asking struct {
	percent   int64
	retention time.Duration
	seen      atomic.Int64
	missed    atomic.Int64
	queue     chan shadowQuestion
	// last is the time of the last answer, so that no two have the same.
	lastMu sync.Mutex
	last   time.Time
}

// shadowQuestion is a retrieval that an agent has its answer to.
type shadowQuestion struct {
	request abi.RetrieveRequest
	serving string
	context string
	tokens  int64
	sources []string
	latency time.Duration
	at      time.Time
}

func (a *asking) percentOf() int64 {
	if a == nil {
		return 0
	}
	return a.percent
}

// next chooses percent of 100 retrievals, evenly.
func (a *asking) next() bool {
	n := a.seen.Add(1)
	return n*a.percent/100 != (n-1)*a.percent/100
}

// Shadow lets another provider follow the slot: it gets every write, and is asked a share of the retrievals after the
// agent has its answer. Its backend is not asked before Shadow returns, and need not run yet.
//
// Errors: invalid_argument for the memory that serves, or that has a follower already, unsupported with reason
// recorded, and those of loading a module.
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
	s.addFollower(f)
	f.start()
	s.manifestChanged(ctx)
	return nil
}

// shadow makes the follower of a shadow.
func (s *Slot) shadow(ctx context.Context, p *Provider, options ShadowOptions) (*follower, error) {
	key := p.followerKey()
	switch v := s.current.Load(); {
	case options.SamplePercent < 0 || options.SamplePercent > 100:
		return nil, abi.NewError(abi.CodeInvalidArgument, "shadow: want a share of 0 to 100 percent")
	case v != nil && v.provider.followerKey() == key, s.followerWith(key) != nil:
		return nil, abi.NewError(abi.CodeInvalidArgument, p.name+" is the memory that serves, or is followed already").
			WithReason("serves").WithHint("a shadow is another memory: of another provider, or in another namespace")
	}
	record, err := s.host.followRecordOf(ctx, key)
	if err != nil {
		return nil, err
	}
	if !s.host.archive.On {
		s.host.queued.Store(true)
	}
	if record == nil {
		if record, err = s.newRecord(ctx, p, abi.RoleShadow, options.FromNow || !s.host.archive.On); err != nil {
			return nil, err
		}
	}
	record.Role, record.Module, record.Stopped = abi.RoleShadow, p.module.SHA256, ""
	f := s.newFollower(p, *record)
	f.asking = &asking{percent: options.SamplePercent, retention: options.Retention,
		queue: make(chan shadowQuestion, shadowQueue)}
	if f.asking.retention <= 0 {
		f.asking.retention = defaultShadowRetention
	}
	return f, f.keep(ctx, func(*followRecord) {})
}

// askShadows passes a retrieval on that an agent has its answer to. It never waits.
func (s *Slot) askShadows(ctx context.Context, r *abi.RetrieveRequest, result *abi.RetrieveResult, took time.Duration) {
	for _, f := range s.followerList() {
		if f.asking == nil || OriginOf(ctx) != "" || !f.asking.next() {
			continue
		}
		q := shadowQuestion{request: *r, context: result.FormattedContext, sources: sourcesOf(result), latency: took,
			at: s.host.now()}
		if v := s.current.Load(); v != nil {
			q.serving = v.provider.name
		}
		if t := result.Trace; t != nil && t.TokenCount != nil {
			q.tokens = *t.TokenCount
		}
		select {
		case f.asking.queue <- q:
		default:
			f.asking.missed.Add(1)
		}
	}
}

// sourcesOf are the events on which a result's evidence rests, each once.
func sourcesOf(r *abi.RetrieveResult) []string {
	var list []string
	for i := range r.Evidence {
		list = append(list, r.Evidence[i].SourceEventIDs...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ask asks the shadow what waits, one retrieval at a time, until ctx ends.
func (f *follower) ask(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-f.asking.queue:
			if err := f.askOne(ctx, &q); err != nil && ctx.Err() == nil {
				f.host.logger.Warn("an answer of a shadow cannot be kept", "error", err)
			}
		}
	}
}

// askOne asks the shadow and keeps what it says. Raising the wall waits for it; behind the wall it only reads.
func (f *follower) askOne(ctx context.Context, q *shadowQuestion) error {
	p := f.provider()
	if p == nil {
		return nil
	}
	sc, err := p.scopeOf(q.request.Scope)
	if err != nil {
		return err
	}
	behind, err := f.host.archive.CountAfter(ctx, f.position())
	if err != nil {
		return err
	}
	if f.slot.mode.admit(sc) {
		defer f.slot.mode.done(sc)
	}
	began := time.Now()
	result, err := f.inner.Retrieve(ctx, &q.request)
	if ctx.Err() != nil {
		return nil
	}
	answer := &abi.ShadowAnswer{Provider: p.name, Serving: q.serving, Query: q.request.Query, Scope: q.request.Scope,
		SessionID: q.request.SessionID, ServingContext: q.context, ServingTokens: q.tokens,
		ServingLatencyMS: ms(q.latency), LatencyMS: ms(time.Since(began)), Behind: behind}
	if err != nil {
		answer.Error = abi.AsError(err)
	} else {
		answer.FormattedContext = result.FormattedContext
		if t := result.Trace; t != nil && t.TokenCount != nil {
			answer.Tokens = *t.TokenCount
		}
		overlap(answer, q.sources, sourcesOf(result))
	}
	return f.keepAnswer(ctx, q.at, answer)
}

// overlap compares the events on which two answers rest; where one of them names none it says nothing.
//
//	serving a b c, shadow b c d    both 2, only serving 1, only shadow 1, overlap 0.5
func overlap(answer *abi.ShadowAnswer, serving, shadow []string) {
	for _, id := range serving {
		if slices.Contains(shadow, id) {
			answer.Both++
		}
	}
	answer.OnlyServing, answer.OnlyShadow = int64(len(serving))-answer.Both, int64(len(shadow))-answer.Both
	if len(serving) == 0 || len(shadow) == 0 {
		return
	}
	share := float64(answer.Both) / float64(answer.Both+answer.OnlyServing+answer.OnlyShadow)
	answer.Overlap = &share
}

func (f *follower) position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record.Position
}

// keepAnswer stores an answer and removes those that are older than the retention. One of an event that was forgotten
// meanwhile is not kept.
func (f *follower) keepAnswer(ctx context.Context, at time.Time, answer *abi.ShadowAnswer) error {
	a := f.asking
	a.lastMu.Lock()
	if !at.After(a.last) {
		at = a.last.Add(1)
	}
	a.last = at
	a.lastMu.Unlock()
	answer.At = at.UTC().Format(time.RFC3339Nano)
	var b state.Batch
	b.PutRecord(tableShadow, append(shadowTime(at), f.key[:]...), abi.Marshal(answer))
	old, err := f.host.store.Records(ctx, tableShadow, nil, shadowTime(f.host.now().Add(-a.retention)), shadowSweep)
	if err != nil {
		return stateError(err)
	}
	for _, r := range old {
		b.DeleteRecord(tableShadow, r.Key)
	}
	f.host.shadowMu.RLock()
	defer f.host.shadowMu.RUnlock()
	if f.host.forgottenSince(answer.Scope, at) {
		return nil
	}
	return f.host.commit(ctx, &b)
}

// shadowTime is the first part of a key of tableShadow: later times come first.
func shadowTime(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(math.MaxInt64-at.UnixNano()))
}

// forgottenSince reports whether something of a person was forgotten after a time, in this process: an answer from
// before may hold it.
func (h *Host) forgottenSince(scope abi.MemoryScope, at time.Time) bool {
	last, ok := h.forgotAt[personOf(scope)]
	return ok && !at.After(last)
}

// personOf is the run and the user of a scope.
func personOf(scope abi.MemoryScope) [2]string { return [2]string{scope.RunID, scope.PersonaID} }

// forgetShadowAnswers removes all stored answers of a person: any of them may hold what is forgotten.
func (h *Host) forgetShadowAnswers(ctx context.Context, scope abi.MemoryScope) error {
	h.shadowMu.Lock()
	defer h.shadowMu.Unlock()
	if h.forgotAt == nil {
		h.forgotAt = map[[2]string]time.Time{}
	}
	h.forgotAt[personOf(scope)] = h.now()
	var b state.Batch
	err := h.eachRecord(ctx, tableShadow, nil, func(r state.KeyValue) error {
		answer := new(abi.ShadowAnswer)
		if abi.Unmarshal(r.Value, answer) != nil || personOf(answer.Scope) == personOf(scope) {
			b.DeleteRecord(tableShadow, r.Key)
		}
		return nil
	})
	if err != nil || b.Len() == 0 {
		return err
	}
	return h.commit(ctx, &b)
}

// Shadows implements Followers.
func (s *Slot) Shadows(ctx context.Context) (*abi.ShadowList, error) {
	list := &abi.ShadowList{Shadows: []abi.Shadow{}}
	if v := s.current.Load(); v != nil {
		list.Serving = v.provider.name
	}
	for _, f := range s.followerList() {
		p := f.provider()
		if f.asking == nil || p == nil {
			continue
		}
		now, progress, err := f.progress(ctx)
		if err != nil {
			return nil, inOperation(opShadows, err)
		}
		report, err := s.host.shadowReport(ctx, f.key, s.host.now().Add(-f.asking.retention))
		if err != nil {
			return nil, inOperation(opShadows, err)
		}
		f.mu.Lock()
		since := f.record.Since
		f.mu.Unlock()
		list.Shadows = append(list.Shadows, abi.Shadow{Provider: p.name, ConditionKind: p.kind, State: now, Since: since,
			SamplePercent: f.asking.percent, RetentionMS: f.asking.retention.Milliseconds(), Progress: progress,
			Missed: f.asking.missed.Load(), Report: *report})
	}
	return list, nil
}

// shadowReport compares the stored answers of a shadow that are not older than a time.
func (h *Host) shadowReport(ctx context.Context, key followerKey, since time.Time) (*abi.ShadowReport, error) {
	r := &abi.ShadowReport{Errors: map[string]int64{}}
	var tokens, servingTokens, latency, servingLatency, overlaps []float64
	_, err := h.eachAnswer(ctx, nil, since, func(whose followerKey, answer *abi.ShadowAnswer) bool {
		if whose != key {
			return true
		}
		r.Answers++
		switch {
		case answer.Error != nil:
			r.Failed++
			r.Errors[string(answer.Error.Code)]++
			return r.Answers < shadowReportMost
		case answer.FormattedContext == "":
			r.Empty++
		}
		tokens = append(tokens, float64(answer.Tokens))
		servingTokens = append(servingTokens, float64(answer.ServingTokens))
		latency, servingLatency = append(latency, answer.LatencyMS), append(servingLatency, answer.ServingLatencyMS)
		if answer.Overlap != nil {
			overlaps = append(overlaps, *answer.Overlap)
		}
		return r.Answers < shadowReportMost
	})
	r.TokensMean, r.ServingTokensMean, r.OverlapMean = mean(tokens), mean(servingTokens), mean(overlaps)
	r.LatencyP50MS, r.LatencyP95MS = percentile(latency, 50), percentile(latency, 95)
	r.ServingP50MS, r.ServingP95MS = percentile(servingLatency, 50), percentile(servingLatency, 95)
	r.OverlapAnswers = int64(len(overlaps))
	return r, err
}

// mean and percentile are nil without values. percentile sorts them.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	sum /= float64(len(values))
	return &sum
}

func percentile(values []float64, p int) *float64 {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &values[(len(values)-1)*p/100]
}

// eachAnswer visits stored answers, newest first, from behind a key on and back to a time, until visit is false: then
// it returns the key of the last one.
func (h *Host) eachAnswer(ctx context.Context, after []byte, since time.Time,
	visit func(whose followerKey, answer *abi.ShadowAnswer) bool) (last []byte, err error) {
	end := shadowTime(since)
	for {
		records, err := h.store.Records(ctx, tableShadow, nil, after, 0)
		if err != nil {
			return nil, stateError(err)
		}
		for _, r := range records {
			answer := new(abi.ShadowAnswer)
			if len(r.Key) != len(end)+len(followerKey{}) || abi.Unmarshal(r.Value, answer) != nil {
				return nil, abi.NewError(abi.CodeUnavailable, "state: the answer of a shadow is damaged").
					WithReason("state")
			}
			if string(r.Key[:len(end)]) > string(end) {
				return nil, nil
			}
			if !visit(followerKey(r.Key[len(end):]), answer) {
				return r.Key, nil
			}
			after = r.Key
		}
		if len(records) < state.DefaultLimit {
			return nil, nil
		}
	}
}

// ShadowAnswers implements Followers.
func (s *Slot) ShadowAnswers(ctx context.Context, r *abi.ShadowAnswersRequest) (*abi.ShadowAnswers, error) {
	if err := r.Validate(); err != nil {
		return nil, inOperation(opShadows, err)
	}
	after, err := hex.DecodeString(r.Before)
	if err != nil {
		return nil, inOperation(opShadows, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("before: %.40q is not the next of a page", r.Before)))
	}
	limit, retention := r.Limit, defaultShadowRetention
	if limit == 0 {
		limit = 50
	}
	for _, f := range s.followerList() {
		if f.asking != nil {
			retention = f.asking.retention
		}
	}
	page := &abi.ShadowAnswers{Answers: []abi.ShadowAnswer{}}
	last, err := s.host.eachAnswer(ctx, after, s.host.now().Add(-retention), func(_ followerKey,
		answer *abi.ShadowAnswer) bool {
		wanted := (r.Provider == "" || r.Provider == answer.Provider) &&
			(r.Scope == nil || bareScope(*r.Scope) == bareScope(answer.Scope))
		if wanted {
			page.Answers = append(page.Answers, *answer)
		}
		return int64(len(page.Answers)) < limit
	})
	page.Next = hex.EncodeToString(last)
	return page, err
}

// Followers is what the person who runs a slot can do with providers beside the serving one. A Slot implements it, and
// so does a client of a slot's HTTP door.
type Followers interface {
	BackfillStatus(ctx context.Context) (*abi.Backfill, error)
	BackfillTurn(ctx context.Context, request *abi.BackfillTurn) (*abi.Backfill, error)
	BackfillStop(ctx context.Context, request *abi.BackfillStop) (*abi.Backfill, error)
	// Shadows lists the shadows with how far they are and what a comparison of their stored answers says.
	Shadows(ctx context.Context) (*abi.ShadowList, error)
	// ShadowAnswers gives stored answers, newest first.
	ShadowAnswers(ctx context.Context, request *abi.ShadowAnswersRequest) (*abi.ShadowAnswers, error)
}

var _ Followers = (*Slot)(nil)
