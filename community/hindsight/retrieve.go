package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve recalls and gives three things: raw, Hindsight's answer as it came; evidence, pointers into raw; and the text
// for the prompt. Ranking and filtering are Hindsight's, and so is the budget of tokens.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	limit := s.maxTokens
	if r.Budget.MaxTokens != nil {
		limit = *r.Budget.MaxTokens
	}
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{}}, Trace: trace(r)}
	answer, err := ask(c, request{route: "recall", body: recallBody(r, s, limit)})
	if err != nil {
		return nil, err
	}
	var list []recallHit
	if answer != nil { // nil: nothing was ever recorded in this scope, or the question has no word
		if list, err = parseRecall(answer); err != nil {
			return nil, unusable("recall", answer)
		}
		result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: "recall", Body: answer})
	}
	for i, f := range list {
		result.Trace.ResultState = abi.ResultResults
		e := abi.Evidence{Pointer: "/calls/0/body/results/" + sdk.Itoa(i), Rank: int64(i + 1), NativeID: f.id,
			NativeType: f.kind, Text: f.text, Score: f.score, CreatedAt: f.mentionedAt, ValidAt: f.occurredAt,
			TimeBasis: abi.TimeEvent}
		if f.event != "" { // an observation is made of several events' facts
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
	if r.Budget.MaxTokens != nil {
		use := result.Trace.BudgetApplied["max_tokens"]
		use.How, use.Sent = "native", &limit
		result.Trace.BudgetApplied["max_tokens"] = use
	}
	return result, nil
}

// recallBody is the question as Hindsight takes it. Profiles of entities, which it adds by default, are not asked for:
// they are no results, and have no rank.
func recallBody(r *abi.RetrieveRequest, s *settings, limit int64) []byte {
	context := r.Context
	if sdk.CrossContext(r) {
		context = ""
	}
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("query")
	j.Str(r.Query)
	if s.effort != "" {
		j.FieldStart("budget")
		j.Str(s.effort)
	}
	if len(s.types) > 0 {
		j.FieldStart("types")
		j.ArrStart()
		for _, t := range s.types {
			j.Str(t)
		}
		j.ArrEnd()
	}
	if limit > 0 {
		j.FieldStart("max_tokens")
		j.Int64(limit)
	}
	j.FieldStart("include")
	j.Raw([]byte(`{"entities":null}`))
	if writeTags(&j, r.Scenario, context, r.Attribute) {
		j.FieldStart("tags_match")
		j.Str("all_strict")
	}
	j.ObjEnd()
	return j.Bytes()
}

// trace says how the request was carried out: Hindsight filters by tags, by nothing else, and does not go back in time.
func trace(r *abi.RetrieveRequest) *abi.Trace {
	t := &abi.Trace{BackendName: backendName, NativeOperation: "recall", ResultState: abi.ResultEmpty,
		AsOfMode: "ignored", FilterMode: abi.FilterNone, FiltersApplied: sdk.Filters(sdk.Labels(r), abi.FilterHard)}
	if len(t.FiltersApplied) > 0 {
		t.FilterMode = abi.FilterHard
	}
	for name := range r.Filters {
		if name != "cross_context" {
			t.FiltersApplied[name] = string(abi.FilterNone)
		}
	}
	return t
}
