package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve searches the scope's memory: on REST and MCP facts by BM25 and cosine, fused by reciprocal rank, which is
// all that either server offers; on core by the configured recipe or search configuration. Superseded facts come with
// the others and may rank above their successors; they are marked, not dropped.
//
// In: max_items limits what is shown, each list within its share; the servers always get the configured max_facts, the
// gateway the smaller of the two.
// Out: raw is the search's answer, then, if configured, entities (search_nodes) and the facts' episodes (bolt, core).
// Only core returns scores, those of the reranker.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	t := v.trace("")
	t.Details = map[string]abi.Raw{"group_id": sdk.Text(v.group),
		"surface": sdk.Text(v.name)}
	query := v.query(r, t)
	v.labels(r, t)
	found, err := v.surface.search(v, r, query, t)
	if err != nil {
		return nil, err
	}
	for _, name := range abi.SortedKeys(r.Filters) {
		if t.FiltersApplied[name] == string(abi.FilterNone) {
			t.Warnings = append(t.Warnings, "filter_ignored: the "+v.name+" surface of Graphiti has no filter "+name)
		}
	}
	if found.count() == 0 {
		err = v.explainEmpty(t)
		if err != nil {
			return nil, err
		}
	}
	first := found.first(r.Budget.MaxItems)
	fitted := first.format(c, v.config, r.Budget)
	found.explain(v, r.Budget, fitted, t)
	evidence := first.evidence()
	fitted.Mark(evidence, 0)
	if len(evidence) > 0 {
		t.TopScore = evidence[0].Score // score of the first item; the lists' scores come from different rerankers
	}
	return &abi.RetrieveResult{Raw: found.raw, FormattedContext: fitted.Text, Evidence: evidence, Trace: t}, nil
}

// explainEmpty returns a state and a warning if nothing was found because the graph is empty although turns were
// recorded: a database that was restarted without its data returns the same answers as an empty one.
func (v *scopedCall) explainEmpty(t *abi.Trace) error {
	last, has, err := v.readLast()
	if err != nil || !has {
		return err
	}
	holds, err := v.surface.holds(v, last)
	if err != nil || holds {
		return err
	}
	t.ResultState = abi.ResultDegraded
	t.Warnings = append(t.Warnings, "store_empty: "+sdk.Itoa(last.seq)+" turns of the scope were recorded, and "+
		"Graphiti's database has nothing of its group: it was lost or exchanged, or the worker never ingested; "+
		"restore it, or reset the scope")
	return nil
}

// Limits of a query. From 127 words on the servers silently drop the BM25 half of the search, and the index allows 1024
// clauses, one per word.
const (
	queryWords = 100
	queryChars = 2000
)

// query returns the request's query, with its labels appended if configured: only words can carry a label into the
// search.
func (v *scopedCall) query(r *abi.RetrieveRequest, t *abi.Trace) string {
	words := strings.Fields(r.Query)
	asked := len(words)
	if v.labelsInQuery && asked > 0 {
		words = append(words, strings.Fields(r.Scenario)...)
		if !sdk.CrossContext(r) {
			words = append(words, strings.Fields(r.Context)...)
		}
		words = append(words, strings.Fields(r.Attribute)...)
	}
	cut := len(words) > queryWords
	if cut { // cut the question first: the labels are at the end, and requested too
		labels := min(len(words)-asked, queryWords/2)
		words = append(words[:queryWords-labels:queryWords-labels], words[len(words)-labels:]...)
	}
	whole := strings.Join(words, " ")
	query := firstChars(whole, queryChars)
	if cut || len(query) < len(whole) {
		t.Warnings = append(t.Warnings,
			"query_cut: Graphiti drops keyword search from 127 words on; the query was cut to 100 words "+
				"and 2000 characters")
	}
	if query == "" {
		t.Warnings = append(t.Warnings, "query_blank: Graphiti answers a query without words with nothing")
	}
	sdk.Put(&t.Details, "query", sdk.Text(query))
	return query
}

// firstChars returns the beginning of s, at most n characters.
func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// labels says how the request's labels and filters are applied: labels as words of the query, filters not at all unless
// the surface says otherwise.
func (v *scopedCall) labels(r *abi.RetrieveRequest, t *abi.Trace) {
	how := abi.FilterNone
	if v.labelsInQuery {
		how = abi.FilterSemantic
	}
	t.FilterMode = abi.FilterNone
	for _, name := range sdk.Labels(r) {
		_, isFilter := r.Filters[name]
		if isFilter {
			sdk.Put(&t.FiltersApplied, name, string(abi.FilterNone))
			continue
		}
		sdk.Put(&t.FiltersApplied, name, string(how))
		t.FilterMode = how
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings,
			"as_of_ignored: Graphiti's searches answer as of now; native query facts_at tells what held at an instant")
	}
}

// filtersNamed returns those of the request's filters that have one of the names.
func filtersNamed(r *abi.RetrieveRequest, names ...string) (list []field) {
	for _, name := range names {
		value := r.Filters[name]
		if len(value) > 0 {
			list = append(list, field{name, value})
		}
	}
	return list
}

// explain fills the trace.
func (f *results) explain(v *scopedCall, budget abi.ContextBudget, fitted sdk.Fitted, t *abi.Trace) {
	fitted.Report(t, budget)
	count := f.count()
	t.RetrievedCount = sdk.Ptr(int64(count))
	sdk.Put(&t.Details, "items_shown", sdk.Number(int64(fitted.End-fitted.First)))
	sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: f.limitOrigin, Sent: sdk.Ptr(f.limit),
		Received: sdk.Ptr(int64(count)), Shown: sdk.Ptr(int64(fitted.End - fitted.First))})
	if budget.MaxItems != nil && f.limitOrigin == "fixed" && *budget.MaxItems > f.limit {
		t.Warnings = append(t.Warnings, "max_facts_fixed: the configuration asks Graphiti for "+sdk.Itoa(f.limit)+
			" facts, always; raise max_facts for more")
	}
	switch {
	case t.ResultState != "": // degraded
	case count == 0:
		t.ResultState = abi.ResultEmpty
	default:
		t.ResultState = abi.ResultResults
	}
	t.NativeIDs = make([]string, count)
	f.each(func(n int, _ *resultList, _ int, x *item) { t.NativeIDs[n] = x.uuid })
	f.dates(t)
	if fitted.Cut {
		t.Warnings = append(t.Warnings,
			"fact_cut: the first item alone is larger than max_tokens; only its beginning is shown")
	} else if count > 0 && fitted.Text == "" {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first item fits the budget")
	}
}

// dates adds to the trace when the facts were valid, or else when they were created, and how many are superseded.
func (f *results) dates(t *abi.Trace) {
	facts := f.facts()
	if len(facts) == 0 {
		return
	}
	superseded, undated := 0, 0
	var oldest, newest graphTime
	for i := range facts {
		at := facts[i].validAt
		if at.text == "" {
			undated++
			at = facts[i].createdAt
		}
		if facts[i].superseded() {
			superseded++
		}
		if at.text == "" {
			continue
		}
		if oldest.text == "" || at.micros < oldest.micros {
			oldest = at
		}
		if newest.text == "" || newest.micros < at.micros {
			newest = at
		}
	}
	t.OldestRetrievedAt, t.NewestRetrievedAt, t.TimeBasis = oldest.text, newest.text, abi.TimeEvent
	if undated == len(facts) {
		t.TimeBasis = abi.TimeIngest
	}
	sdk.Put(&t.Details, "superseded", sdk.Number(int64(superseded)))
	sdk.Put(&t.Details, "times_from_created_at", sdk.Number(int64(undated)))
}
