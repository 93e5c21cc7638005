package main

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the messages that share most with the query's words, as many as fit the budget.
//
// In:  as_of leaves out later messages; what is counted is counted over all. Labels and filters are not used.
// Out: raw is one list of the messages as stored with id and score, best first; evidence i points at /calls/0/body/i
// and has the score.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	budget := s.budget(r.Budget)
	st := state.Of(c)
	held := readCollection(st)
	most := max(0, *budget.MaxItems) + 1 // one more, by which it shows that there is more
	if r.AsOf != "" {
		most = held.messages
	}
	best, matching := rank(st, &held, r.Query, int(most))
	found := read(st, sdk.ContextOf(s.config, c.Scope), best, r.AsOf, budget)
	fitted := s.format(c, found, budget)
	found = found[:fitted.End]
	result := &abi.RetrieveResult{FormattedContext: fitted.Text, Trace: s.trace(r, fitted, budget)}
	t := result.Trace
	sdk.Put(&t.Details, "messages_stored", sdk.Number(held.held()))
	sdk.Put(&t.Details, "messages_matching", sdk.Number(matching))
	var body wirejson.Encoder
	body.ArrStart()
	for i, m := range found {
		object.Write(&body, m.members()...)
		result.Evidence = append(result.Evidence, abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i),
			Rank:       int64(i + 1),
			NativeID:   m.id,
			NativeType: "message", Text: m.text, Score: &m.score, CreatedAt: m.timestamp, TimeBasis: abi.TimeEvent,
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
		t.ResultState, t.TimeBasis, t.TopScore = abi.ResultResults, abi.TimeEvent, &found[0].score
	}
	return result, st.Err()
}

// scored is a message that was found.
type scored struct {
	id    string
	score float64
	message
	at time.Time
}

func (m *scored) members() []object.Member {
	return append([]object.Member{object.Always("id", &m.id), object.Always("score", &m.score)}, m.message.members()...)
}

// read reads messages, best first, until more than the budget is there. Later ones than asOf are left out.
func read(s *state.State, context sdk.Context, best []hit, asOf string, budget abi.ContextBudget) []*scored {
	until, tokens := timeOf(asOf), int64(0)
	var found []*scored
	for _, x := range best {
		if int64(len(found)) > *budget.MaxItems || budget.MaxTokens != nil && tokens > *budget.MaxTokens {
			break
		}
		m := &scored{id: nativeID(x.message), score: x.score}
		for entry := range s.Entries(messageLog, x.message, x.message) {
			if object.Decode(entry.Data, m.message.members()...) != nil {
				s.Fail(state.Unreadable(m.id))
			}
		}
		m.at = timeOf(m.timestamp)
		if asOf != "" && m.at.After(until) {
			continue
		}
		found = append(found, m)
		if budget.MaxTokens != nil {
			tokens += context.CountBlock(s.Call, m.block())
		}
	}
	return found
}

// timeOf is a time of the contract, which the host has checked.
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
