package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the scope's profile.
//
// In:  query, labels, filters and as_of are not used. max_items counts the profile as one item.
// Out: raw is the entry as configured, if at least its beginning fits.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	p := s.find(c.Scope)
	fitted := s.format(c, p, r.Budget)
	result := &abi.RetrieveResult{FormattedContext: fitted.Text, Trace: s.trace(r, p, fitted)}
	if fitted.Text != "" {
		result.Raw.Calls = []abi.RawCall{{Route: route, Body: p.raw}}
		result.Evidence = []abi.Evidence{{Pointer: "/calls/0/body", Rank: 1, NativeType: "profile", Text: p.text}}
		fitted.Mark(result.Evidence, 0)
	}
	return result, nil
}

func (s *settings) trace(r *abi.RetrieveRequest, p *profile, fitted sdk.Fitted) *abi.Trace {
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: route, ResultState: abi.ResultEmpty,
		RetrievedCount: sdk.Ptr(int64(0)),
		FilterMode:     abi.FilterNone, FiltersApplied: sdk.Filters(sdk.Labels(r), abi.FilterNone)}
	fitted.Report(t, r.Budget)
	if p == nil {
		t.Warnings = []string{noProfile}
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: a profile has no times; it is the same at every moment")
	}
	if fitted.Text != "" {
		t.ResultState, t.RetrievedCount = abi.ResultResults, sdk.Ptr(int64(1))
		t.Details = map[string]abi.Raw{"profile_of": sdk.Text("persona")}
		if p.runID != "" {
			t.Details["profile_of"] = sdk.Text("run")
		}
	}
	switch {
	case fitted.Cut:
		t.Warnings = append(t.Warnings, "profile_cut: the profile is larger than max_tokens; only its beginning is "+
			"shown")
	case fitted.Truncated:
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the profile fits the budget")
	}
	return t
}
