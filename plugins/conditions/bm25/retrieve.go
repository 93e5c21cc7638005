package main

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the messages that share most with the query's words, as many as fit the budget; recall also returns
// the messages around those, and the newest ones. With an embedder the ranking by words is joined with one by vectors.
//
// In: as_of leaves out later messages, but the counts for the ranking include them. Labels and filters are not used.
// Out: raw is one list of the messages as stored with id and score, best first; evidence i points at /calls/0/body/i
// and has the score, if the message has one.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	budget := s.budget(r.Budget)
	st := state.Of(c)
	held := readCollection(st)
	most := max(0, *budget.MaxItems) + 1 // one more, to see whether there are more
	if s.embedder != nil {
		most = depth
	}
	if r.AsOf != "" {
		most = held.messages
	}
	best, matching := rank(st, &held, r.Query, int(most), s.common)
	var byVector *search
	share := hitShare
	if s.embedder != nil {
		byVector = s.embedder.search(st, &held, r.Query, int(most))
		if len(best) == 0 {
			share = vectorShare
		}
		if len(byVector.ranking) > 0 {
			best = fuse(best, byVector.ranking)
		}
	}
	reader := newReader(st, s, sdk.ContextOf(s.config, c.Scope), r.AsOf)
	if s.recall {
		reader.recall(best, budget, share)
	} else {
		reader.hits(best, budget)
	}
	found := reader.found
	fitted := s.format(c, found, budget)
	found = found[:fitted.End]
	result := &abi.RetrieveResult{FormattedContext: fitted.Text, Trace: s.trace(r, fitted, budget)}
	t := result.Trace
	sdk.Put(&t.Details, "messages_stored", sdk.Number(held.existing()))
	sdk.Put(&t.Details, "messages_matching", sdk.Number(matching))
	if byVector != nil {
		sdk.Put(&t.Details, "messages_embedded", sdk.Number(byVector.done))
		t.Warnings = append(t.Warnings, byVector.warnings...)
	}
	var body wirejson.Encoder
	body.ArrStart()
	for i, m := range found {
		object.Write(&body, m.members()...)
		result.Evidence = append(result.Evidence, abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i),
			Rank:       int64(i + 1),
			NativeID:   m.id,
			NativeType: "message", Text: m.text, Score: m.scoreOrNil(), CreatedAt: m.timestamp, TimeBasis: abi.TimeEvent,
			SourceEventIDs: []string{m.eventID}})
		t.NativeIDs = append(t.NativeIDs, m.id)
		if i == 0 || m.at.Before(timeOf(t.OldestRetrievedAt)) {
			t.OldestRetrievedAt = m.timestamp
		}
		if i == 0 || m.at.After(timeOf(t.NewestRetrievedAt)) {
			t.NewestRetrievedAt = m.timestamp
		}
	}
	body.ArrEnd()
	fitted.Mark(result.Evidence, 0)
	result.Raw = abi.RawResult{Calls: []abi.RawCall{{Route: route, Body: body.Bytes()}}}
	if len(found) > 0 {
		t.ResultState, t.TimeBasis, t.TopScore = abi.ResultResults, abi.TimeEvent, found[0].scoreOrNil()
	}
	if byVector != nil && byVector.failed {
		t.ResultState = abi.ResultDegraded
	}
	return result, st.Err()
}

// scoredMessage is a message in a result.
type scoredMessage struct {
	id    string
	score float64
	message
	number int64
	at     time.Time
}

// scoreOrNil returns the score, or nil for a message that no ranking contains.
func (m *scoredMessage) scoreOrNil() *float64 {
	if m.score == 0 {
		return nil
	}
	return &m.score
}

func (m *scoredMessage) members() []object.Member {
	return append([]object.Member{object.Always("id", &m.id), object.Always("score", &m.score)}, m.message.members()...)
}

// reader reads messages until their tokens are over a budget.
type reader struct {
	*state.State
	settings *settings
	context  sdk.Context
	// asOf leaves out later messages; "" leaves out none.
	asOf  string
	until time.Time
	// found are the messages read, tokens the sum of their blocks' tokens.
	found  []*scoredMessage
	tokens int64
	taken  map[int64]bool
	// ahead are messages as stored that were read with others, together about aheadBytes at most.
	ahead      map[int64][]byte
	aheadBytes int
}

func newReader(st *state.State, s *settings, context sdk.Context, asOf string) *reader {
	return &reader{State: st, settings: s, context: context, asOf: asOf, until: timeOf(asOf), taken: map[int64]bool{},
		ahead: map[int64][]byte{}}
}

// overBudget reports whether more was read than the budget has room for.
func (r *reader) overBudget(budget abi.ContextBudget) bool {
	return int64(len(r.found)) > *budget.MaxItems || budget.MaxTokens != nil && r.tokens > *budget.MaxTokens
}

// hits reads ranked messages, best first, until they exceed the budget.
func (r *reader) hits(best []hit, budget abi.ContextBudget) {
	numbers := make([]int64, len(best))
	for i, x := range best {
		numbers[i] = x.message
	}
	for i, m := range r.messages(numbers, budget) {
		m.score = best[i].score
		r.take(m, budget)
	}
}

// messages are the messages with these numbers, in this order, until more than the budget is taken. It leaves out
// those that were taken before.
func (r *reader) messages(numbers []int64, budget abi.ContextBudget) iter.Seq2[int, *scoredMessage] {
	return func(yield func(int, *scoredMessage) bool) {
		for i, n := range numbers {
			if r.overBudget(budget) {
				return
			}
			if r.taken[n] {
				continue
			}
			r.readAhead(numbers[i:])
			if m := r.message(n); m != nil && !yield(i, m) {
				return
			}
		}
	}
}

const (
	// aheadMessages is how many numbers readAhead looks at, and how far apart they may be.
	aheadMessages = 32
	aheadBytes    = 1 << 20
)

// readAhead reads the first message together with those of the next that are near it in the log. To ask costs more than
// to read some messages that lie between.
func (r *reader) readAhead(numbers []int64) {
	if _, known := r.ahead[numbers[0]]; known || r.aheadBytes > aheadBytes {
		return
	}
	page, near := numbers[0]/aheadMessages, 0
	first, last := numbers[0], numbers[0]
	next := numbers[:min(len(numbers), aheadMessages)]
	for _, n := range next {
		if n/aheadMessages == page {
			first, last, near = min(first, n), max(last, n), near+1
		}
	}
	if near == 1 {
		return
	}
	for entry := range r.Entries(messageLog, first, last) {
		if slices.Contains(next, entry.Seq) {
			r.ahead[entry.Seq] = bytes.Clone(entry.Data) // another call makes it invalid
			r.aheadBytes += len(entry.Data)
		}
	}
}

// take adds a message. Tokens are counted only if the budget bounds them.
func (r *reader) take(m *scoredMessage, budget abi.ContextBudget) {
	r.found, r.taken[m.number] = append(r.found, m), true
	if budget.MaxTokens != nil {
		r.tokens += r.context.CountBlock(r.Call, r.settings.block(&m.message))
	}
}

// message reads a message; nil for one that is later than asOf, was forgotten or was never there.
func (r *reader) message(n int64) *scoredMessage {
	m := &scoredMessage{id: nativeID(n), number: n}
	stored, known := r.ahead[n]
	if !known {
		for entry := range r.Entries(messageLog, n, n) {
			stored = entry.Data
		}
	}
	if stored != nil && object.Decode(stored, m.message.members()...) != nil {
		r.Fail(state.Unreadable(m.id))
	}
	m.at = timeOf(m.timestamp)
	if m.eventID == "" || r.asOf != "" && m.at.After(r.until) {
		return nil
	}
	return m
}

// timeOf parses a timestamp that the host has checked.
func timeOf(text string) time.Time {
	at, _ := abi.ParseTime(text)
	return at
}

func (s *settings) trace(r *abi.RetrieveRequest, fitted sdk.Fitted, budget abi.ContextBudget) *abi.Trace {
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list", Consistency: "committed",
		ResultState:    abi.ResultEmpty,
		RetrievedCount: sdk.Ptr(int64(fitted.End)), FilterMode: abi.FilterNone,
		FiltersApplied: sdk.Filters(sdk.Labels(r),
			abi.FilterNone),
		Effective: s.effective(budget)}
	fitted.Report(t, budget)
	if r.AsOf != "" {
		t.AsOfMode = "native"
	}
	switch {
	case fitted.Cut:
		t.Warnings = append(t.Warnings,
			"message_cut: the best message alone is larger than max_tokens; only its beginning is shown")
	case fitted.Truncated && fitted.End == 0:
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the best message fits the budget")
	}
	return t
}
