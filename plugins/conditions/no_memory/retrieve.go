package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns the empty string for every request.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	t := s.trace()
	t.ResultState = abi.ResultEmpty
	t.RetrievedCount = sdk.Ptr(int64(0))
	t.FilterMode, t.FiltersApplied = abi.FilterNone, sdk.Filters(sdk.Labels(r), abi.FilterNone)
	sdk.Fitted{}.Report(t, r.Budget)
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
	}
	return &abi.RetrieveResult{Trace: t}, nil
}
