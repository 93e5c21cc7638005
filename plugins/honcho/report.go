package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// report describes in the trace what was requested, what was returned and how the budget took effect.
func (q *retrieval) report(fitted sdk.Fitted) {
	r, t, items := q.request, q.result.Trace, q.result.Evidence
	var routes []string
	for _, call := range q.result.Raw.Calls {
		routes = append(routes, call.Route)
	}
	t.NativeOperation = strings.Join(routes, " ")
	if len(routes) == 0 {
		t.NativeOperation = "peers_list" // read: chat of a scope that does not exist
	}
	t.ResultState, t.RetrievedCount = abi.ResultEmpty, sdk.Ptr(int64(len(items)))
	if len(items) > 0 {
		t.ResultState = abi.ResultResults
		t.Warnings = append(t.Warnings, "no_scores: Honcho gives neither scores nor distances, nor a version of its "+
			"representation")
	}
	fitted.Report(t, r.Budget)
	if r.Budget.MaxTokens != nil && q.tokens != nil {
		sdk.Put(&t.BudgetApplied, "max_tokens", abi.BudgetUse{How: "advisory", Sent: q.tokens})
	}
	q.reportItems(t)
	switch {
	case fitted.Cut:
		t.Warnings = append(t.Warnings, "item_cut: the first item alone is larger than max_tokens; only its "+
			"beginning is shown")
	case len(items) > 0 && fitted.Text == "":
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first item fits the budget")
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: Honcho answers as of now; conclusions and messages of a "+
			"range of time are in provenance")
	}
	q.reportFilters(t)
	q.reportTimes(t)
	t.Effective = q.effective().Map()
	for _, e := range items {
		if e.NativeID != "" {
			t.NativeIDs = append(t.NativeIDs, e.NativeID)
		}
	}
	t.Details = wire.Object{"workspace", q.workspace, "session", q.session,
		"fixed_workspace", wire.If(q.shared(), true)}.Map()
}

// reportItems reports how many conclusions were requested, or messages with read: search, and how many were returned.
// Other items are not counted.
func (q *retrieval) reportItems(t *abi.Trace) {
	switch {
	case q.read == readChat: // one answer, whose length Honcho's model decides
		sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "fixed"})
		return
	case q.sourceDesign && q.request.Budget.MaxItems == nil:
		return
	}
	received := int64(0)
	for _, e := range q.result.Evidence {
		first := strings.HasPrefix(e.Pointer, "/calls/0/")
		if first && (q.read == readSearch || e.NativeType == "conclusion") {
			received++
		}
	}
	sent := q.conclusions
	if q.read == readContext && q.sourceDesign && q.maxConclusions == 0 {
		sent = q.topK()
	}
	sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "native", Sent: &sent, Received: &received})
}

// effective returns the read strategy with its limits as sent.
func (q *retrieval) effective() wire.Object {
	o := wire.Object{"read", q.read}
	switch q.read {
	case readContext:
		o = append(o, "tokens", *q.tokens, "max_conclusions", wire.If(!q.sourceDesign || q.maxConclusions > 0,
			q.conclusions), "search_top_k", q.topK())
	case readSearch:
		o = append(o, "limit", q.conclusions)
	case readChat:
		o = append(o, "reasoning_level", q.reasoningLevel)
	}
	return o
}

// reportFilters says how labels took effect: as words of the query, or as filters of a search. Other filters have no
// equivalent in Honcho.
func (q *retrieval) reportFilters(t *abi.Trace) {
	how := abi.FilterSemantic
	if q.read == readSearch {
		how = abi.FilterHard
	}
	t.FilterMode = abi.FilterNone
	unused := false
	for _, name := range sdk.Labels(q.request) {
		switch name {
		case "scenario", "context", "attribute":
			t.FilterMode = how
			sdk.Put(&t.FiltersApplied, name, string(how))
		default:
			unused = true
			sdk.Put(&t.FiltersApplied, name, string(abi.FilterNone))
		}
	}
	if unused {
		t.Warnings = append(t.Warnings, "filters_ignored: of filters only cross_context has a meaning for Honcho")
	}
}

// reportTimes sets the range of the items' event times, and when the newest of them was derived.
func (q *retrieval) reportTimes(t *abi.Trace) {
	var events, derived span
	for _, e := range q.result.Evidence {
		if e.TimeBasis == abi.TimeDerived {
			derived.add(e.CreatedAt)
		} else {
			events.add(e.CreatedAt)
		}
	}
	t.LastDerivedAt, t.NewestRetrievedAt, t.OldestRetrievedAt = derived.newest, events.newest, events.oldest
	if events.newest != "" {
		t.TimeBasis = abi.TimeEvent
	}
}

// span returns the first and the last of some times, unchanged. It ignores unreadable ones.
type span struct {
	oldest, newest string
	from, to       time.Time
}

func (s *span) add(text string) {
	at, err := abi.ParseTime(text)
	if err != nil {
		return
	}
	if s.oldest == "" || at.Before(s.from) {
		s.oldest, s.from = text, at
	}
	if s.newest == "" || at.After(s.to) {
		s.newest, s.to = text, at
	}
}
