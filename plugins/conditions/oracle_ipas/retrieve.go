package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the scope's entries that are valid at the requested time and whose labels do not differ from those
// of the request.
//
// In: the time is as_of, or the host's clock without it. The query and filters other than cross_context are not used.
// max_items counts entries.
// Out: raw is one list of the entries as configured, as many as fit; evidence i points at /calls/0/body/i.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	at, given, err := moment(c, r)
	if err != nil {
		return nil, err
	}
	held := s.of(c.Scope)
	matching := selectEntries(held, r, at)
	fitted := s.format(c, matching, r.Budget)
	shown := matching[fitted.First:fitted.End]

	result := &abi.RetrieveResult{FormattedContext: fitted.Text, Trace: s.trace(r, fitted, len(held), len(matching))}
	result.Trace.Effective = map[string]abi.Raw{"at": sdk.Text(given)}
	if len(held) > 0 {
		result.Raw.Calls = []abi.RawCall{{Route: route, Body: raw(shown)}}
	}
	for i, e := range shown {
		found := e.evidence(i)
		if found.TimeBasis != "" {
			result.Trace.TimeBasis = found.TimeBasis
		}
		result.Evidence = append(result.Evidence, found)
	}
	fitted.Mark(result.Evidence, fitted.First)
	return result, nil
}

// moment returns the time at which the entries must be valid, and how it was determined.
func moment(c *sdk.Call, r *abi.RetrieveRequest) (at time.Time, given string, err error) {
	if r.AsOf == "" {
		at, err = abi.ParseTime(c.Now)
		return at, c.Now, err
	}
	if at, err = abi.ParseTime(r.AsOf); err != nil {
		err = abi.NewError(abi.CodeInvalidArgument, "as_of: "+abi.AsError(err).Message)
	}
	return at, r.AsOf, err
}

// selectEntries returns the matching entries, ordered by attribute, context and start; equal ones keep the order of the
// list.
func selectEntries(entries []*entry, r *abi.RetrieveRequest, at time.Time) []*entry {
	var list []*entry
	for _, e := range entries {
		if e.matches(r) && e.holds(at) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *entry) int {
		if n := strings.Compare(a.attribute, b.attribute); n != 0 {
			return n
		}
		if n := strings.Compare(a.context, b.context); n != 0 {
			return n
		}
		return a.from.Compare(b.from) // without a start: the year 1
	})
	return list
}

// matches applies the labels. An entry without a scenario or context matches all, and so does a request without one.
func (e *entry) matches(r *abi.RetrieveRequest) bool {
	general := func(own, named string) bool { return own == "" || named == "" || own == named }
	return general(e.scenario, r.Scenario) &&
		(sdk.CrossContext(r) || general(e.context, r.Context)) &&
		(r.Attribute == "" || e.attribute == r.Attribute)
}

// holds reports whether the entry is valid at a moment: from its start until just before its end.
func (e *entry) holds(at time.Time) bool {
	return (e.validFrom == "" || !at.Before(e.from)) && (e.validUntil == "" || at.Before(e.until))
}

// raw returns entries as configured.
func raw(entries []*entry) abi.Raw {
	body := abi.Raw{'['}
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.raw...)
	}
	return append(body, ']')
}

func (e *entry) evidence(i int) abi.Evidence {
	v := abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i), Rank: int64(i + 1), NativeType: "ground_truth",
		Text:    e.value,
		ValidAt: e.validFrom, InvalidAt: e.validUntil}
	if e.validFrom != "" || e.validUntil != "" {
		v.TimeBasis = abi.TimeEvent
	}
	if e.source != "" {
		v.SourceEventIDs = []string{e.source}
	}
	return v
}

// trace describes the retrieval; held is the number of the scope's entries, matching the number that matched.
func (s *settings) trace(r *abi.RetrieveRequest, fitted sdk.Fitted, held, matching int) *abi.Trace {
	shown := fitted.End - fitted.First
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: route, ResultState: abi.ResultEmpty,
		RetrievedCount: sdk.Ptr(int64(shown)),
		FilterMode:     abi.FilterHard, FiltersApplied: filtersApplied(r),
		Details: map[string]abi.Raw{"entries_of_scope": sdk.Number(int64(held)),
			"entries_matching": sdk.Number(int64(matching)), "entries_left_out": sdk.Number(int64(matching - shown))}}
	fitted.Report(t, r.Budget)
	if r.AsOf != "" {
		t.AsOfMode = "native"
	}
	if shown > 0 {
		t.ResultState = abi.ResultResults
	}
	switch {
	case held == 0:
		t.Warnings = []string{noGroundTruth}
	case fitted.Cut:
		t.Warnings = []string{"entry_cut: the first entry alone is larger than max_tokens; only its beginning is shown"}
	case matching > 0 && shown == 0:
		t.Warnings = []string{"budget_too_small: not even the beginning of the first entry fits the budget"}
	}
	return t
}

// filtersApplied returns hard for the labels of the request; other filters are not used.
func filtersApplied(r *abi.RetrieveRequest) map[string]string {
	filters := sdk.Filters(sdk.Labels(r), abi.FilterNone)
	for _, label := range []struct {
		name string
		used bool
	}{{"scenario", r.Scenario != ""}, {"context", r.Context != "" && !sdk.CrossContext(r)}, {"attribute",
		r.Attribute != ""}} {
		if label.used {
			filters[label.name] = string(abi.FilterHard)
		}
	}
	return filters
}
