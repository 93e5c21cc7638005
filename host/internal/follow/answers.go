package follow

import (
	"cmp"
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
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/state"
)

// A shadow gets a share of the retrievals, and its answers are stored, newest first:
//
//	tableAnswers   ns from the answer to the end of time(8), Key -> report.ShadowAnswer

// DefaultRetention is how long the answers of shadows are kept.
const DefaultRetention = 14 * 24 * time.Hour

const (
	// questionsWaiting is the most retrievals that wait for a shadow. Further ones are dropped.
	questionsWaiting = 64
	// answersSwept is the most old answers that are removed when a new one is stored.
	answersSwept = 64
	// answersReported is how many answers a report reads, newest first.
	answersReported = 10_000
	// answersOfPage is the default number of answers in a page.
	answersOfPage = 50
)

// shadowQueries is the state of a shadow's retrievals.
type shadowQueries struct {
	percent   int64
	retention time.Duration
	seen      atomic.Int64
	missed    atomic.Int64
	queue     chan *Question
	// last is the time of the last answer, which makes the times unique.
	lastMu sync.Mutex
	last   time.Time
}

// Question is a retrieval whose answer the agent already has. NewQuestion creates one.
type Question struct {
	// Cause is the traceparent header of the retrieval's span; "" if there is none.
	Cause   string
	request abi.RetrieveRequest
	serving string
	context string
	tokens  int64
	sources []string
	took    time.Duration
	at      time.Time
}

// NewQuestion keeps what a shadow's answer is compared with. serving is the provider that answered the agent.
func NewQuestion(r *abi.RetrieveRequest, result *abi.RetrieveResult, serving string, took time.Duration,
	at time.Time) *Question {
	return &Question{request: *r, serving: serving, context: result.FormattedContext, tokens: tokensOf(result),
		sources: sourcesOf(result), took: took, at: at}
}

// tokensOf is how many tokens a result has; 0 if they were not counted.
func tokensOf(r *abi.RetrieveResult) int64 {
	if r.Trace == nil || r.Trace.TokenCount == nil {
		return 0
	}
	return *r.Trace.TokenCount
}

// sourcesOf returns the events that a result's evidence names, each once.
func sourcesOf(r *abi.RetrieveResult) []string {
	var list []string
	for i := range r.Evidence {
		list = append(list, r.Evidence[i].SourceEventIDs...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Sampled reports whether the shadow gets the next retrieval. Its share is spread evenly.
func (f *Follower) Sampled() bool {
	if f.asking == nil {
		return false
	}
	n := f.asking.seen.Add(1)
	return n*f.asking.percent/100 != (n-1)*f.asking.percent/100
}

// Ask queues a question for a shadow. It never waits.
func (f *Follower) Ask(q *Question) {
	select {
	case f.asking.queue <- q:
	default:
		f.asking.missed.Add(1)
	}
}

// askAll sends the queued questions to the shadow, one at a time, until ctx ends.
func (f *Follower) askAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-f.asking.queue:
			if err := f.askOne(ctx, q); err != nil && ctx.Err() == nil {
				f.store.Logger.Warn("an answer of a shadow cannot be kept", "error", err)
			}
		}
	}
}

// askOne asks the shadow and stores its answer.
func (f *Follower) askOne(ctx context.Context, q *Question) error {
	behind, err := f.Behind(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	result, err := f.memory.Retrieve(traceparent.WithCauses(ctx, q.Cause), &q.request)
	f.mu.Lock()
	served := f.state == report.FollowerServes
	f.mu.Unlock()
	if ctx.Err() != nil || served {
		return nil
	}
	answer := &report.ShadowAnswer{Provider: f.Record().Provider, Serving: q.serving, Query: q.request.Query,
		Scope: q.request.Scope, SessionID: q.request.SessionID, ServingContext: q.context, ServingTokens: q.tokens,
		ServingLatencyMS: ms(q.took), LatencyMS: ms(time.Since(began)), Behind: behind}
	if err != nil {
		answer.Error = abi.AsError(err)
	} else {
		answer.FormattedContext, answer.Tokens = result.FormattedContext, tokensOf(result)
		overlap(answer, q.sources, sourcesOf(result))
	}
	return f.keepAnswer(ctx, q.at, answer)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// overlap compares the events that two answers are based on. If one of them names none, it sets nothing.
//
//	serving a b c, shadow b c d    both 2, only serving 1, only shadow 1, overlap 0.5
func overlap(answer *report.ShadowAnswer, serving, shadow []string) {
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

// keepAnswer stores an answer and removes those that are older than the retention. It discards an answer about a person
// of whom something was forgotten in the meantime.
func (f *Follower) keepAnswer(ctx context.Context, asked time.Time, answer *report.ShadowAnswer) error {
	a, s, at := f.asking, f.store, asked
	a.lastMu.Lock()
	if !at.After(a.last) {
		at = a.last.Add(1)
	}
	a.last = at
	a.lastMu.Unlock()
	answer.At = at.UTC().Format(time.RFC3339Nano)
	var b state.Batch
	b.PutRecord(tableAnswers, append(answerTime(at), f.key[:]...), abi.Marshal(answer))
	old, err := s.State.Records(ctx, tableAnswers, nil, answerTime(s.Now().Add(-a.retention)), answersSwept)
	if err != nil {
		return state.ContractError(err)
	}
	for _, kv := range old {
		b.DeleteRecord(tableAnswers, kv.Key)
	}
	s.answersMu.RLock()
	defer s.answersMu.RUnlock()
	if last, forgot := s.forgotAt[personOf(answer.Scope)]; forgot && !asked.After(last) {
		return nil
	}
	return s.Commit(ctx, &b)
}

// answerTime is the first part of a key of tableAnswers: later times sort first.
func answerTime(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(math.MaxInt64-at.UnixNano()))
}

// person is the run and the user of a scope.
type person [2]string

func personOf(scope abi.MemoryScope) person { return person{scope.RunID, scope.PersonaID} }

// ForgetAnswers removes all stored answers about a person, because any of them may contain what is forgotten.
func (s *Store) ForgetAnswers(ctx context.Context, scope abi.MemoryScope) error {
	s.answersMu.Lock()
	defer s.answersMu.Unlock()
	s.forgotAt[personOf(scope)] = s.Now()
	var b state.Batch
	err := s.each(ctx, tableAnswers, nil, func(kv state.KeyValue) error {
		answer := new(report.ShadowAnswer)
		if abi.Unmarshal(kv.Value, answer) != nil || personOf(answer.Scope) == personOf(scope) {
			b.DeleteRecord(tableAnswers, kv.Key)
		}
		return nil
	})
	if err != nil || b.Len() == 0 {
		return err
	}
	return s.Commit(ctx, &b)
}

// Shadow describes a shadow and compares its stored answers. The caller must add the kind of its provider.
func (f *Follower) Shadow(ctx context.Context) (*report.Shadow, error) {
	now, progress, err := f.Progress(ctx)
	if err != nil {
		return nil, err
	}
	compared, err := f.store.compare(ctx, f.key, f.store.Now().Add(-f.asking.retention))
	if err != nil {
		return nil, err
	}
	record := f.Record()
	return &report.Shadow{Provider: record.Provider, State: now, Since: record.Since, SamplePercent: f.asking.percent,
		RetentionMS: f.asking.retention.Milliseconds(), Progress: progress, Missed: f.asking.missed.Load(),
		Report: *compared}, nil
}

// Retention is how long a shadow's answers are kept; 0 if this is not a shadow.
func (f *Follower) Retention() time.Duration {
	if f.asking == nil {
		return 0
	}
	return f.asking.retention
}

// SamplePercent is the share of retrievals that a shadow gets; 0 if this is not a shadow.
func (f *Follower) SamplePercent() int64 {
	if f.asking == nil {
		return 0
	}
	return f.asking.percent
}

// compare compares a shadow's stored answers since a time.
func (s *Store) compare(ctx context.Context, key Key, since time.Time) (*report.ShadowReport, error) {
	r := &report.ShadowReport{Errors: map[string]int64{}}
	var tokens, servingTokens, latency, servingLatency, overlaps []float64
	_, err := s.eachAnswer(ctx, nil, since, func(whose Key, answer *report.ShadowAnswer) bool {
		if whose != key {
			return true
		}
		r.Answers++
		switch {
		case answer.Error != nil:
			r.Failed++
			r.Errors[string(answer.Error.Code)]++
			return r.Answers < answersReported
		case answer.FormattedContext == "":
			r.Empty++
		}
		tokens = append(tokens, float64(answer.Tokens))
		servingTokens = append(servingTokens, float64(answer.ServingTokens))
		latency, servingLatency = append(latency, answer.LatencyMS), append(servingLatency, answer.ServingLatencyMS)
		if answer.Overlap != nil {
			overlaps = append(overlaps, *answer.Overlap)
		}
		return r.Answers < answersReported
	})
	r.TokensMean, r.ServingTokensMean, r.OverlapMean = mean(tokens), mean(servingTokens), mean(overlaps)
	r.LatencyP50MS, r.LatencyP95MS = percentile(latency, 50), percentile(latency, 95)
	r.ServingP50MS, r.ServingP95MS = percentile(servingLatency, 50), percentile(servingLatency, 95)
	r.OverlapAnswers = int64(len(overlaps))
	return r, err
}

// mean and percentile return nil without values. percentile sorts them.
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

// Answers returns a page of stored answers, newest first. retention is how long answers are kept.
func (s *Store) Answers(ctx context.Context, r *report.ShadowAnswersRequest, retention time.Duration) (*report.ShadowAnswers,
	error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	after, err := hex.DecodeString(r.Before)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("before: %.40q is not the next of a page", r.Before))
	}
	limit := cmp.Or(r.Limit, answersOfPage)
	page := &report.ShadowAnswers{Answers: []report.ShadowAnswer{}}
	last, err := s.eachAnswer(ctx, after, s.Now().Add(-retention), func(_ Key, answer *report.ShadowAnswer) bool {
		wanted := (r.Provider == "" || r.Provider == answer.Provider) &&
			(r.Scope == nil || withoutNamespace(*r.Scope) == withoutNamespace(answer.Scope))
		if wanted {
			page.Answers = append(page.Answers, *answer)
		}
		return int64(len(page.Answers)) < limit
	})
	page.Next = hex.EncodeToString(last)
	return page, err
}

func withoutNamespace(s abi.MemoryScope) abi.MemoryScope {
	s.BackendNamespace = ""
	return s
}

// eachAnswer visits stored answers, newest first, from after a key back to a time, until visit returns false. It then
// returns the key of the last visited one.
func (s *Store) eachAnswer(ctx context.Context, after []byte, since time.Time,
	visit func(whose Key, answer *report.ShadowAnswer) bool) (last []byte, err error) {
	end := answerTime(since)
	for {
		records, err := s.State.Records(ctx, tableAnswers, nil, after, 0)
		if err != nil {
			return nil, state.ContractError(err)
		}
		for _, kv := range records {
			answer := new(report.ShadowAnswer)
			if len(kv.Key) != len(end)+len(Key{}) || abi.Unmarshal(kv.Value, answer) != nil {
				return nil, abi.NewError(abi.CodeUnavailable, "state: the answer of a shadow is damaged").
					WithReason("state")
			}
			if string(kv.Key[:len(end)]) > string(end) {
				return nil, nil
			}
			if !visit(Key(kv.Key[len(end):]), answer) {
				return kv.Key, nil
			}
			after = kv.Key
		}
		if len(records) < state.DefaultLimit {
			return nil, nil
		}
	}
}
