package main

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve searches for chunks and gives three things: raw, Cognee's answer as it came; evidence, pointers into raw; and
// the text for the prompt. The ranking is Cognee's.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	topK := c.ItemsFor(r.Budget, s.topK)
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{}}, Trace: trace(r)}
	var answer []byte
	if dataset != "" && strings.TrimSpace(r.Query) != "" {
		if answer, err = ask(c, request{route: "search", json: searchBody(dataset, r.Query, topK)}); err != nil {
			return nil, err
		}
	}
	var list []searchHit
	if answer != nil { // nil: nothing was ever recorded in this scope, or no run has completed yet
		if list, err = parseSearch(answer, dataset); err != nil {
			return nil, unusable("search", answer)
		}
		result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: "search", Body: answer})
	}
	for i, f := range list {
		result.Trace.ResultState = abi.ResultResults
		e := abi.Evidence{Pointer: "/calls/0/body/0/search_result/" + sdk.Itoa(i), Rank: int64(i + 1), NativeID: f.id,
			NativeType: "chunk", Text: f.body(), Score: f.score, CreatedAt: f.time, TimeBasis: abi.TimeEvent}
		if f.event != "" {
			e.SourceEventIDs = []string{f.event}
		}
		result.Evidence = append(result.Evidence, e)
	}
	fitted, err := format(c, list, r.Budget)
	if err != nil {
		return nil, err
	}
	result.FormattedContext = fitted.Text
	fitted.Mark(result.Evidence, 0)
	fitted.Report(result.Trace, r.Budget)
	if r.Budget.MaxItems != nil {
		use := result.Trace.BudgetApplied["max_items"]
		use.How, use.Sent = "native", &topK
		result.Trace.BudgetApplied["max_items"] = use
	}
	return result, nil
}

// body returns a chunk's text without its document's heading.
func (f searchHit) body() string { return strings.TrimPrefix(f.text, heading(f.name, f.time)) }

func searchBody(dataset, query string, topK int64) []byte {
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("search_type")
	j.Str("CHUNKS")
	j.FieldStart("dataset_ids")
	j.ArrStart()
	j.Str(dataset)
	j.ArrEnd()
	j.FieldStart("query")
	j.Str(query)
	j.FieldStart("top_k")
	j.Int64(topK)
	j.ObjEnd()
	return j.Bytes()
}

// trace says how the request was carried out: a search of chunks filters by nothing and does not go back in time.
func trace(r *abi.RetrieveRequest) *abi.Trace {
	t := &abi.Trace{BackendName: backendName, NativeOperation: "search CHUNKS", ResultState: abi.ResultEmpty,
		AsOfMode: "ignored", FilterMode: abi.FilterNone, FiltersApplied: sdk.Filters(sdk.Labels(r), abi.FilterNone)}
	for name := range r.Filters {
		if name != "cross_context" {
			t.FiltersApplied[name] = string(abi.FilterNone)
		}
	}
	return t
}
