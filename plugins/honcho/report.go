package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// report says in the trace what was asked, what came and how the budget took effect.
func (q *retrieval) report(fitted sdk.Fitted) {
	s, r, t, items := q.settings, q.request, q.result.Trace, q.result.Evidence
	routes := make([]string, len(q.result.Raw.Calls))
	for i := range routes {
		routes[i] = q.result.Raw.Calls[i].Route
	}
	t.NativeOperation = strings.Join(routes, " ")
	t.ResultState, t.RetrievedCount = abi.ResultEmpty, sdk.Ptr(int64(len(items)))
	if len(items) > 0 {
		t.ResultState = abi.ResultResults
		t.Warnings = append(t.Warnings, "no_scores: Honcho gives neither scores nor distances, nor a version of its representation")
	}
	fitted.Report(t, r.Budget)
	if _, asked := t.BudgetApplied["max_tokens"]; asked && q.tokens != nil {
		t.BudgetApplied["max_tokens"] = abi.BudgetUse{How: "advisory", Sent: q.tokens}
	}
	if _, asked := t.BudgetApplied["max_items"]; asked {
		t.BudgetApplied["max_items"] = abi.BudgetUse{How: "native", Sent: &q.conclusions}
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
	t.Effective = map[string]abi.Raw{"read": sdk.Text(routes[0])}
	if q.tokens != nil {
		t.Effective["tokens"], t.Effective["max_conclusions"], t.Effective["search_top_k"] = sdk.Number(*q.tokens), sdk.Number(q.conclusions), sdk.Number(q.topK())
	} else {
		t.Effective["limit"] = sdk.Number(q.conclusions)
	}
	for i := range q.result.Evidence {
		if id := q.result.Evidence[i].NativeID; id != "" {
			t.NativeIDs = append(t.NativeIDs, id)
		}
	}
	t.Details = map[string]abi.Raw{"workspace": sdk.Text(q.native.workspace), "session": sdk.Text(q.native.session(r.SessionID))}
	if s.fixed != "" {
		t.Details["fixed_workspace"] = abi.Raw("true")
	}
}

// reportFilters tells how labels took effect: as words of the query, or as filters of a search. Other filters have no counterpart in Honcho.
func (q *retrieval) reportFilters(t *abi.Trace) {
	how := abi.FilterSemantic
	if !q.settings.context {
		how = abi.FilterHard
	}
	t.FilterMode, t.FiltersApplied = abi.FilterNone, map[string]string{}
	unused := false
	for _, name := range sdk.Labels(q.request) {
		switch name {
		case "scenario", "context", "attribute":
			t.FiltersApplied[name], t.FilterMode = string(how), how
		default:
			t.FiltersApplied[name], unused = string(abi.FilterNone), true
		}
	}
	if unused {
		t.Warnings = append(t.Warnings, "filters_ignored: of filters only cross_context has a meaning for Honcho")
	}
}

// reportTimes gives the range of the items' event times, and when the newest of them was derived.
func (q *retrieval) reportTimes(t *abi.Trace) {
	for i := range q.result.Evidence {
		e := &q.result.Evidence[i]
		if e.CreatedAt == "" {
			continue
		}
		if e.TimeBasis == abi.TimeDerived {
			t.LastDerivedAt = later(t.LastDerivedAt, e.CreatedAt)
			continue
		}
		t.TimeBasis = abi.TimeEvent
		t.NewestRetrievedAt = later(t.NewestRetrievedAt, e.CreatedAt)
		if t.OldestRetrievedAt == "" || later(t.OldestRetrievedAt, e.CreatedAt) == t.OldestRetrievedAt {
			t.OldestRetrievedAt = e.CreatedAt
		}
	}
}

// later is the later of two times; one that cannot be read never is.
//
//go:noinline
func later(a, b string) string {
	at, err1 := abi.ParseTime(a)
	bt, err2 := abi.ParseTime(b)
	if err1 != nil || err2 == nil && bt.After(at) {
		return b
	}
	return a
}
