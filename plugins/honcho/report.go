package main

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// report says in the trace what was asked, what came and how the budget took effect.
func (q *retrieval) report(fitted sdk.Fitted) {
	s, r, t, items := q.settings, q.request, q.result.Trace, q.result.Evidence
	calls := q.result.Raw.Calls
	t.NativeOperation = calls[0].Route
	for i := range calls[1:] {
		t.NativeOperation += " " + calls[i+1].Route
	}
	t.ResultState, t.RetrievedCount = abi.ResultEmpty, sdk.Ptr(int64(len(items)))
	if len(items) > 0 {
		t.ResultState = abi.ResultResults
		t.Warnings = append(t.Warnings, "no_scores: Honcho gives neither scores nor distances, nor a version of its representation")
	}
	fitted.Report(t, r.Budget)
	if r.Budget.MaxTokens != nil && q.tokens != nil {
		t.BudgetApplied.Set("max_tokens", abi.BudgetUse{How: "advisory", Sent: q.tokens})
	}
	if r.Budget.MaxItems != nil {
		t.BudgetApplied.Set("max_items", abi.BudgetUse{How: "native", Sent: &q.conclusions})
	}
	switch {
	case fitted.Cut:
		t.Warnings = append(t.Warnings, "item_cut: the first item alone is larger than max_tokens; only its beginning is shown")
	case len(items) > 0 && fitted.Text == "":
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first item fits the budget")
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: Honcho answers as of now; conclusions and messages of a range of time are in provenance")
	}
	q.reportFilters(t)
	q.reportTimes(t)
	t.Effective = abi.Members[abi.Raw]{{Name: "read", Value: sdk.Text(calls[0].Route)}}
	if q.tokens != nil {
		t.Effective.Set("tokens", sdk.Number(*q.tokens))
		t.Effective.Set("max_conclusions", sdk.Number(q.conclusions))
		t.Effective.Set("search_top_k", sdk.Number(q.topK()))
	} else {
		t.Effective.Set("limit", sdk.Number(q.conclusions))
	}
	for i := range q.result.Evidence {
		if id := q.result.Evidence[i].NativeID; id != "" {
			t.NativeIDs = append(t.NativeIDs, id)
		}
	}
	t.Details = abi.Members[abi.Raw]{{Name: "workspace", Value: sdk.Text(q.native.workspace)}, {Name: "session", Value: sdk.Text(q.session)}}
	if s.fixed != "" {
		t.Details.Set("fixed_workspace", abi.Raw("true"))
	}
}

// reportFilters tells how labels took effect: as words of the query, or as filters of a search. Other filters have no counterpart in Honcho.
func (q *retrieval) reportFilters(t *abi.Trace) {
	how := abi.FilterSemantic
	if !q.settings.context {
		how = abi.FilterHard
	}
	t.FilterMode = abi.FilterNone
	unused := false
	for _, name := range sdk.Labels(q.request) {
		switch name {
		case "scenario", "context", "attribute":
			t.FilterMode = how
			t.FiltersApplied.Set(name, string(how))
		default:
			unused = true
			t.FiltersApplied.Set(name, string(abi.FilterNone))
		}
	}
	if unused {
		t.Warnings = append(t.Warnings, "filters_ignored: of filters only cross_context has a meaning for Honcho")
	}
}

// reportTimes gives the range of the items' event times, and when the newest of them was derived.
func (q *retrieval) reportTimes(t *abi.Trace) {
	var newest, oldest, derived instant
	last := ""
	for i := range q.result.Evidence {
		e := &q.result.Evidence[i]
		switch {
		case e.CreatedAt == "":
		case e.TimeBasis == abi.TimeDerived:
			derived.replace(e.CreatedAt, time.Time.After)
		case e.CreatedAt != last: // items of a batch all have the same
			last = e.CreatedAt
			newest.replace(last, time.Time.After)
			oldest.replace(last, time.Time.Before)
		}
	}
	if t.LastDerivedAt, t.NewestRetrievedAt, t.OldestRetrievedAt = derived.text, newest.text, oldest.text; newest.text != "" {
		t.TimeBasis = abi.TimeEvent
	}
}

// instant is a time as it was given, which is read when there is another to compare it with. known tells whether it could be.
type instant struct {
	text        string
	at          time.Time
	read, known bool
}

//go:noinline
func (m *instant) parse() bool {
	if !m.read {
		at, err := abi.ParseTime(m.text)
		m.at, m.read, m.known = at, true, err == nil
	}
	return m.known
}

// replace puts another time in this one's place if the other is beyond it; a time that cannot be read never is.
//
//go:noinline
func (m *instant) replace(text string, beyond func(time.Time, time.Time) bool) {
	if m.text == "" {
		m.text = text
		return
	}
	other := instant{text: text}
	if !m.parse() || other.parse() && beyond(other.at, m.at) {
		*m = other
	}
}
