package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the newest turns that fit, in the order in which they were said.
//
// In:  as_of leaves out later turns. Labels and filters are not used. max_items counts turns. Without max_tokens the
// ceiling bounds the stored text.
// Out: raw is one list of the turns as stored; evidence i points at /calls/0/body/i.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	budget := s.budget(r.Budget)
	w, err := s.read(c, r, budget)
	if err != nil {
		return nil, err
	}
	result := &abi.RetrieveResult{Raw: raw(w), FormattedContext: w.fitted.Text, Trace: s.trace(r, w, budget)}
	for i, t := range w.kept() {
		result.Evidence = append(result.Evidence, abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i),
			Rank:       int64(i + 1),
			NativeID:   t.key,
			NativeType: "turn", CreatedAt: t.timestamp, TimeBasis: abi.TimeEvent, SourceEventIDs: []string{t.eventID}})
		result.Trace.NativeIDs = append(result.Trace.NativeIDs, t.key)
	}
	w.fitted.Mark(result.Evidence, w.fitted.First)
	return result, nil
}

// raw returns the kept turns as stored.
func raw(w *window) abi.RawResult {
	size := 2
	for _, t := range w.kept() {
		size += len(t.stored) + 1
	}
	body := append(make([]byte, 0, size), '[')
	for i, t := range w.kept() {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, t.stored...)
	}
	result := abi.RawResult{Calls: []abi.RawCall{{Route: route, Body: append(body, ']')}}}
	if w.clipped && len(w.kept()) == 1 {
		result.Notes = map[string]abi.Raw{"clipped": sdk.Text("/calls/0/body/0")}
	}
	return result
}

func (s *settings) trace(r *abi.RetrieveRequest, w *window, budget abi.ContextBudget) *abi.Trace {
	kept := w.kept()
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list", Consistency: "committed",
		ResultState:    abi.ResultEmpty,
		RetrievedCount: sdk.Ptr(int64(len(kept))), FilterMode: abi.FilterNone,
		FiltersApplied: sdk.Filters(sdk.Labels(r),
			abi.FilterNone),
		Effective: s.effective(budget), Details: map[string]abi.Raw{"turns_stored": sdk.Number(w.total.turns),
			"turns_kept": sdk.Number(int64(len(kept)))}}
	w.fitted.Truncated = w.fitted.Truncated || w.overCeiling
	w.fitted.Report(t, budget)
	if n, known := w.leftOut(r, s); known {
		sdk.Put(&t.Details, "turns_left_out", sdk.Number(n))
	}
	if s.excludeCurrent {
		sdk.Put(&t.Details, "turns_of_this_session", sdk.Number(w.sameSession))
	}
	if r.AsOf != "" {
		t.AsOfMode = "native"
	}
	if len(kept) > 0 {
		t.ResultState, t.TimeBasis = abi.ResultResults, abi.TimeEvent
		t.OldestRetrievedAt, t.NewestRetrievedAt = kept[0].timestamp, kept[len(kept)-1].timestamp
	}
	switch {
	case w.fitted.Cut:
		t.Warnings = append(t.Warnings,
			"turn_cut: the newest turn alone is larger than max_tokens; only its beginning is shown")
	case w.clipped:
		t.Warnings = append(t.Warnings, "turn_cut: the newest turn alone is larger than 4 MiB; only its beginning is "+
			"shown")
	case len(w.turns) > 0 && len(kept) == 0:
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the newest turn fits the budget")
	}
	if w.overCeiling && w.fitted.First == 0 {
		t.Warnings = append(t.Warnings,
			"history_ceiling: a retrieval reads at most 4 MiB of stored turns; older ones are left out")
	}
	return t
}
