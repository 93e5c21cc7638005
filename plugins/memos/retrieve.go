package main

import (
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve is one POST /product/search. When every group comes back empty, one look at the store tells an outage from emptiness: search itself answers
// 200 and nothing with the database or the embedder down.
//
// Out: raw is the answer as it came; evidence points at its items, group by group in the server's order. The groups are ranked apart, so ranks count within
// the whole list but compare only within a group.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	asked, err := s.ask(r)
	if err != nil {
		return nil, err
	}
	q := &query{settings: s, request: r, asked: asked, cube: s.cubeOf(c), limits: s.limits.within(r.Budget.MaxItems),
		result: &abi.RetrieveResult{Trace: s.trace("POST /product/search")}}
	if r.Budget.MaxItems == nil || *r.Budget.MaxItems > 0 {
		if err := q.search(c); err != nil {
			return nil, err
		}
	}
	q.finish(c)
	return q.result, nil
}

// query is one retrieval under way.
type query struct {
	*settings
	request *abi.RetrieveRequest
	asked   *asked
	cube    string
	limits  limits
	items   []found
	// state is what the look at the store said of an empty answer.
	state    abi.ResultState
	warnings []string
	result   *abi.RetrieveResult
}

func (q *query) route() string { return "search_" + q.searchMode }

func (q *query) search(c *sdk.Call) error {
	route := q.route()
	groups, a, err := q.memories(c, route, q.body(), q.cube)
	if err != nil {
		return err
	}
	q.items = listed(groups)
	q.result.Raw.Calls = []abi.RawCall{{Route: route, Body: abi.Raw(a.body)}}
	if q.state = abi.ResultResults; len(q.items) == 0 {
		return q.lookBehind(c)
	}
	return nil
}

// body is the request of POST /product/search (APISearchRequest). The session is a soft signal there, never a filter.
func (q *query) body() []byte {
	return object(func(e *jsontext.Encoder) {
		putText(e, "user_id", q.cube)
		putTexts(e, "readable_cube_ids", q.cube)
		putText(e, "query", q.request.Query)
		putText(e, "mode", q.searchMode)
		putText(e, "session_id", sessionOf(q.request.SessionID))
		q.limits.put(e)
		putText(e, "dedup", q.dedup)
		putBool(e, "rerank", q.rerank)
		e.FieldStart("relativity")
		e.Float64(q.relativity)
		putBool(e, "internet_search", false)
		q.asked.put(e)
	})
}

// lookBehind asks the store what an empty answer means. Archived memories do not count: search does not return them.
//
// Errors: unavailable, when the store does not answer.
//
//go:noinline
func (q *query) lookBehind(c *sdk.Call) error {
	behind := filter{conds: append([]cond{is("status", "activated")}, q.asked.conds...)}
	groups, _, err := q.list(c, listing{cube: q.cube, filter: behind, page: 1, size: 1})
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "the search came back empty, and the store behind it does not answer: " + e.Message
		return &e
	}
	if total(groups) == 0 {
		q.state = abi.ResultEmpty
		return nil
	}
	q.state = abi.ResultDegraded
	what := "search_blind: the search came back empty although the store holds such memories: MemOS's embedder is down, or was when they were written"
	if len(q.asked.conds) > 0 && q.graphStore == "neo4j-community" {
		what += "; or none of the nearest carries the labels, which neo4j-community applies behind the vector search"
	}
	if q.relativity > 0 {
		what += "; or all of them are below relativity"
	}
	q.warnings = append(q.warnings, what)
	return nil
}

// found is a group's item that counts: the first with its id. Feedback writes every memory twice under one id.
type found struct {
	*item
	in *group
}

// listed compares every id with every one before it: of the few items of a search that is quicker than a map.
func listed(groups []group) []found {
	most := 0
	for i := range groups {
		most += len(groups[i].items)
	}
	list := make([]found, 0, most)
	for i := range groups {
		g := &groups[i]
		for j := range g.items {
			if m := &g.items[j]; m.id == "" || !holds(list, m.id) {
				list = list[:len(list)+1]
				list[len(list)-1] = found{m, g}
			}
		}
	}
	return list
}

func holds(list []found, id string) bool {
	for i := range list {
		if list[i].id == id {
			return true
		}
	}
	return false
}

// finish makes evidence, text and trace.
func (q *query) finish(c *sdk.Call) {
	t := q.result.Trace
	zeros := q.evidence(t)
	fitted := q.fit(c, q.items, q.request.Budget)
	q.result.FormattedContext = fitted.Text
	t.ResultState, t.RetrievedCount = q.state, sdk.Ptr(int64(len(q.items)))
	t.FilterMode, t.FiltersApplied = q.asked.mode(), q.asked.applied
	t.Details = abi.Members[abi.Raw]{{Name: "cube_id", Value: sdk.Text(q.cube)}}
	fitted.Report(t, q.request.Budget)
	q.limits.report(t, q.settings, q.request.Budget)
	q.warn(fitted)
	if len(q.asked.conds) > 0 && len(q.items) > 0 {
		q.verify()
	}
	if zeros > 1 && zeros == len(q.items) {
		q.silent()
	}
	t.Warnings = append(t.Warnings, q.warnings...)
}

// evidence describes the items and what the trace says of all of them, and counts the scores that are 0.
func (q *query) evidence(t *abi.Trace) (zeros int) {
	if len(q.items) == 0 {
		return 0
	}
	q.result.Evidence = make([]abi.Evidence, len(q.items))
	t.NativeIDs = make([]string, 0, len(q.items))
	scored := q.rerank && q.searchMode == searchFast
	var oldest, newest time.Time
	var in *group
	pointer := ""
	for i := range q.items {
		m, e := &q.items[i], &q.result.Evidence[i]
		created := m.describe(e, m.in.name, i+1, scored)
		if m.in != in {
			in, pointer = m.in, "/calls/0/body"+m.in.list
		}
		e.Pointer = pointer + sdk.Itoa(m.at)
		if m.id != "" {
			t.NativeIDs = append(t.NativeIDs, m.id)
		}
		if e.Score != nil {
			if *e.Score == 0 {
				zeros++
			}
			if t.TopScore == nil || *e.Score > *t.TopScore {
				t.TopScore = e.Score
			}
		}
		if e.CreatedAt != "" {
			if t.TimeBasis == "" || created.Before(oldest) {
				t.OldestRetrievedAt, oldest = e.CreatedAt, created
			}
			if t.TimeBasis == "" || newest.Before(created) {
				t.NewestRetrievedAt, newest = e.CreatedAt, created
			}
			t.TimeBasis = abi.TimeIngest
		}
	}
	return zeros
}

// silent takes the scores away: all of them are 0.
//
//go:noinline
func (q *query) silent() {
	q.warnings = append(q.warnings, "reranker_silent: every score is 0: the server's reranker does not answer; set MOS_RERANKER_BACKEND=cosine_local there")
	q.result.Trace.TopScore = nil
	for i := range q.result.Evidence {
		q.result.Evidence[i].Score = nil
	}
}

// earlier is the earlier of two times; b where a is none.
func earlier(a, b string) string {
	at, err := abi.ParseTime(a)
	if err != nil {
		return b
	}
	if bt, err := abi.ParseTime(b); err == nil && bt.Before(at) {
		return b
	}
	return a
}

func (q *query) warn(fitted sdk.Fitted) {
	q.warnings = append(q.warnings, q.asked.warnings...)
	if q.searchMode != searchFast {
		q.warnings = append(q.warnings, "search_ablation: "+ablation(q.searchMode))
	}
	if q.searchMode == searchMixture {
		q.result.Trace.ReadSideEffects = []string{"MemOS stores query and results in a search history in Redis, which later mixture searches merge back"}
	}
	if !q.rerank {
		q.warnings = append(q.warnings, "not_reranked: with rerank false MemOS returns items in no useful order and without scores")
	}
	if q.request.AsOf != "" {
		q.result.Trace.AsOfMode = "ignored"
		q.warnings = append(q.warnings, "as_of_ignored: MemOS has no validity intervals; the answer is as of now")
	}
	if q.request.Budget.MaxItems != nil && *q.request.Budget.MaxItems == 0 || fitted.Text == "" && fitted.Truncated {
		q.warnings = append(q.warnings, "budget_too_small: not even the beginning of the first memory fits the budget")
	}
}

// ablation says what a mode other than fast costs (single_cube.py: search_memories, searcher.py).
func ablation(mode string) string {
	if mode == searchFine {
		return "mode fine calls an LLM and returns text memories only, as new texts with new ids, without sources, times and scores"
	}
	return "mode mixture calls an LLM where the server has Redis, drops preferences, skills and sources, and returns what a search history holds, deleted memories too"
}

// verify looks whether every item carries the labels that were filtered by. No item is left out: what does not is said.
//
//go:noinline
func (q *query) verify() {
	wrong := 0
	for _, m := range q.items {
		if !q.asked.met(m.item) {
			wrong++
		}
	}
	q.result.Trace.LabelsVerified = sdk.Ptr(wrong == 0)
	if wrong == 0 {
		return
	}
	for i := range q.asked.applied {
		if how := &q.asked.applied[i].Value; *how != string(abi.FilterNone) {
			*how = "unverified"
		}
	}
	q.result.Trace.FilterMode = abi.FilterNone
	q.result.Trace.Details.Set("label_mismatches", sdk.Number(int64(wrong)))
	q.warnings = append(q.warnings, "labels_unverified: MemOS was asked to filter and returned items without those labels")
}
