package main

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/recorded"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// retrieve is one POST /product/search. When every group comes back empty, one read of the store distinguishes an
// outage from emptiness: search itself answers 200 and nothing with the database or the embedder down.
//
// Out: raw is the answer as it came; evidence points at its items, group by group in the server's order. The groups
// are ranked apart, so ranks count within the whole list but compare only within a group.
func retrieve(b *backend, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	asked, err := b.ask(r)
	if err != nil {
		return nil, err
	}
	q := &query{backend: b, request: r, labels: asked, limits: b.limitsFor(r.Budget),
		result: &abi.RetrieveResult{Trace: b.trace("POST /product/search")}}
	if r.Budget.MaxItems == nil || *r.Budget.MaxItems > 0 {
		if err := q.search(); err != nil {
			return nil, err
		}
	}
	q.finish()
	return q.result, nil
}

// query is a retrieval in progress.
type query struct {
	*backend
	request *abi.RetrieveRequest
	labels  *labelFilter
	limits  limits
	items   []*item
	// state is the reason of an empty answer, according to the store.
	state    abi.ResultState
	warnings []string
	result   *abi.RetrieveResult
}

// search sends the request (APISearchRequest). The session only influences the ranking there; it is not a filter.
func (q *query) search() error {
	route := "search_" + q.searchMode
	body := append(wire.Object{"user_id", q.cube, "readable_cube_ids", append([]string{q.cube}, q.readable...),
		"query", q.request.Query, "mode",
		q.searchMode, "internet_search", false,
		"session_id", sessionOf(q.request.SessionID)}, q.limits.fields(q.sourceDesign)...)
	if !q.sourceDesign {
		body = append(body, "dedup", q.dedup, "rerank", q.rerank, "relativity", q.relativity)
	}
	groups, a, err := q.memories(route, append(body, "filter", q.labels.value()), q.cube, q.readable...)
	if err != nil {
		return err
	}
	q.items = distinctItems(groups)
	if q.shareGroups {
		q.items = q.limits.first(q.items, q.request.Budget.MaxItems)
	}
	q.result.Raw.Calls = []abi.RawCall{{Route: route, Body: a.body}}
	switch {
	case len(q.items) > 0:
		q.state = abi.ResultResults
	case q.sourceDesign:
		q.state = abi.ResultUnknown
		q.warnings = append(q.warnings, "empty_unchecked: MemOS answers with nothing, too, where its database or "+
			"embedder is down, and under memory.profile source-design the store is not asked")
	default:
		return q.explainEmpty()
	}
	return nil
}

// explainEmpty queries the store to determine the meaning of an empty answer. Archived memories do not count, since
// search does not return them.
//
// Errors: unavailable if the store does not answer.
func (q *query) explainEmpty() error {
	n, err := q.count(filter{conds: append([]cond{is("status", "activated")}, q.labels.conds...)})
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "the search came back empty, and the store behind it does not answer: " + e.Message
		return &e
	}
	if n == 0 {
		q.state = abi.ResultEmpty
		return q.warnIfLost()
	}
	q.state = abi.ResultDegraded
	what := "search_blind: the search came back empty although the store holds such memories: MemOS's embedder is " +
		"down, or was when they were written"
	if len(q.labels.conds) > 0 && q.graphStore == "neo4j-community" {
		what += "; or none of the nearest carries the labels, which neo4j-community applies behind the vector search"
	}
	if q.relativity > 0 {
		what += "; or all of them are below relativity"
	}
	q.warnings = append(q.warnings, what)
	return nil
}

// warnIfLost returns a warning if the store holds nothing of a scope in which turns were stored: a store that was
// restarted without its data answers like an empty one.
func (q *query) warnIfLost() error {
	stored, err := recorded.Any(q.Call)
	if err != nil || !stored {
		return err
	}
	if len(q.labels.conds) > 0 { // the store was queried for these labels only
		if n, err := q.count(filter{}); err != nil || n > 0 {
			return err
		}
	}
	q.state = abi.ResultDegraded
	q.warnings = append(q.warnings, "store_empty: turns of the scope were stored, and MemOS's database has none of "+
		"its "+
		"memories now: it was lost or exchanged, they were deleted, or the extraction kept nothing; restore it, or "+
		"reset the scope")
	return nil
}

// distinctItems returns the items that count: the first of those with the same id. Feedback writes every memory twice
// under one id.
func distinctItems(groups []*group) (list []*item) {
	seen := map[string]bool{}
	for _, m := range itemsOf(groups) {
		if m.id == "" || !seen[m.id] {
			list = append(list, m)
		}
		seen[m.id] = true
	}
	return list
}

// finish sets evidence, text and trace.
func (q *query) finish() {
	t := q.result.Trace
	q.evidence(t)
	fitted := q.fit(q.Call, q.items, q.formatBudget(q.request.Budget))
	q.result.FormattedContext = fitted.Text
	fitted.Mark(q.result.Evidence, 0)
	t.ResultState, t.RetrievedCount = q.state, sdk.Ptr(int64(len(q.items)))
	t.FilterMode, t.FiltersApplied = q.labels.mode(), q.labels.applied
	t.Details = wire.Object{"cube_id", q.cube}.Map()
	fitted.Report(t, q.request.Budget)
	q.report(t)
	q.warn(fitted)
	if len(q.labels.conds) > 0 && len(q.items) > 0 {
		q.verify()
	}
	t.Warnings = append(t.Warnings, q.warnings...)
}

// evidence describes the items, and summarises them in the trace. If all scores are 0, there are none.
func (q *query) evidence(t *abi.Trace) {
	scored := q.rerank && q.searchMode == searchFast
	var oldest, newest time.Time
	zeros := 0
	q.result.Evidence, t.NativeIDs = make([]abi.Evidence, 0, len(q.items)), make([]string, 0, len(q.items))
	for i, m := range q.items {
		e := m.evidence(i+1, scored)
		e.Pointer = "/calls/0/body" + m.pointer
		q.result.Evidence = append(q.result.Evidence, e)
		if m.id != "" {
			t.NativeIDs = append(t.NativeIDs, m.id)
		}
		if e.Score != nil && *e.Score == 0 {
			zeros++
		}
		if e.Score != nil && (t.TopScore == nil || *e.Score > *t.TopScore) {
			t.TopScore = e.Score
		}
		created, err := abi.ParseTime(m.createdAt)
		if err != nil {
			continue
		}
		if t.TimeBasis == "" || created.Before(oldest) {
			t.OldestRetrievedAt, oldest = m.createdAt, created
		}
		if t.TimeBasis == "" || newest.Before(created) {
			t.NewestRetrievedAt, newest = m.createdAt, created
		}
		t.TimeBasis = abi.TimeIngest
	}
	if zeros > 1 && zeros == len(q.items) {
		q.warnings = append(q.warnings, "reranker_silent: every score is 0: the server's reranker does not answer; "+
			"set MOS_RERANKER_BACKEND=cosine_local there")
		t.TopScore = nil
		for i := range q.result.Evidence {
			q.result.Evidence[i].Score = nil
		}
	}
}

func (q *query) warn(fitted sdk.Fitted) {
	q.warnings = append(q.warnings, q.labels.warnings...)
	if q.searchMode != searchFast {
		q.warnings = append(q.warnings, "search_ablation: "+ablation(q.searchMode))
	}
	if q.searchMode == searchMixture {
		q.result.Trace.ReadSideEffects = []string{"MemOS stores query and results in a search history in Redis, " +
			"which later mixture searches merge back"}
	}
	if !q.rerank {
		q.warnings = append(q.warnings,
			"not_reranked: with rerank false MemOS returns items in no useful order and without scores")
	}
	if q.request.AsOf != "" {
		q.result.Trace.AsOfMode = "ignored"
		q.warnings = append(q.warnings, "as_of_ignored: MemOS has no validity intervals; the answer is as of now")
	}
	if q.request.Budget.MaxItems != nil && *q.request.Budget.MaxItems == 0 || fitted.Text == "" && fitted.Truncated {
		q.warnings = append(q.warnings, "budget_too_small: not even the beginning of the first memory fits the budget")
	}
}

// ablation describes the cost of a mode other than fast (single_cube.py: search_memories, searcher.py).
func ablation(mode string) string {
	if mode == searchFine {
		return "mode fine calls an LLM and returns text memories only, as new texts with new ids, without sources, " +
			"times and scores"
	}
	return "mode mixture calls an LLM where the server has Redis, drops preferences, skills and sources, and returns " +
		"what a search history holds, deleted memories too"
}

// verify checks whether every item has the labels of the filter. A mismatch is reported, but the item is kept.
func (q *query) verify() {
	wrong := 0
	for _, m := range q.items {
		if !q.labels.matches(m) {
			wrong++
		}
	}
	t := q.result.Trace
	t.LabelsVerified = sdk.Ptr(wrong == 0)
	if wrong == 0 {
		return
	}
	for name, how := range q.labels.applied {
		if how != string(abi.FilterNone) {
			q.labels.applied[name] = "unverified"
		}
	}
	t.FilterMode = abi.FilterNone
	sdk.Put(&t.Details, "label_mismatches", sdk.Number(int64(wrong)))
	q.warnings = append(q.warnings, "labels_unverified: MemOS was asked to filter and returned items without those "+
		"labels")
}
