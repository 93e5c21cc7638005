package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/recorded"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// platformMax is the maximum number of results of a search on the platform.
const platformMax = 1000

// retrieve is one search. mem0 finds, ranks and limits.
//
// In: labels become conditions on metadata; max_items, or the number that the host derives from max_tokens, becomes
// top_k.
// Out:    raw is the answer; evidence i points at /calls/0/body/results/i.
// Errors: invalid_argument for a blank query or a filter on native ids; isolation_breach; those of failure.
func retrieve(b *backend, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	q, err := b.question(r)
	if err != nil {
		return nil, err
	}
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{}}}
	var rows []*memory
	if q.topK > 0 {
		var body abi.Raw
		if rows, _, body, err = b.rows(request{route: b.route("search"), body: q.body}); err != nil {
			return nil, err
		}
		q.readRerank(body)
		result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: b.route("search"), Body: body})
		if len(rows) == 0 {
			if err = b.explainEmpty(q); err != nil {
				return nil, err
			}
		}
	}
	fitted := b.format(b.Call, rows, r.Budget)
	result.FormattedContext = fitted.Text
	for i, m := range rows {
		e := m.evidence(i+1, b.backdate)
		e.Pointer = "/calls/0/body/results/" + sdk.Itoa(i)
		result.Evidence = append(result.Evidence, e)
	}
	fitted.Mark(result.Evidence, 0)
	result.Trace = b.trace(r, q, rows, fitted)
	if q.state != "" {
		result.Trace.ResultState = q.state
	}
	return result, nil
}

// explainEmpty determines the meaning of an empty answer: a store that was restarted without its data gives the same
// answer as an empty memory.
func (b *backend) explainEmpty(q *question) error {
	if b.config.Profile == abi.ProfileSourceDesign {
		q.state = abi.ResultUnknown
		q.warnings = append(q.warnings, "empty_unchecked: a store that lost its data answers with nothing, too, and "+
			"under memory.profile source-design it is not asked")
		return nil
	}
	var rows []*memory
	var err error
	if b.platform() {
		rows, _, err = b.listPlatform(1, 1)
	} else {
		rows, err = b.list(1)
	}
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "the search came back empty, and the list of the scope's memories failed: " + e.Message
		return &e
	}
	if len(rows) > 0 {
		if len(q.filters) == 0 {
			q.warnings = append(q.warnings, "nothing_near: the scope has memories, and the search found none: none is "+
				"as near as threshold, or the vector store's index missed them")
		}
		return nil
	}
	stored, err := recorded.Any(b.Call)
	if stored {
		q.state = abi.ResultDegraded
		q.warnings = append(q.warnings, "store_empty: turns of the scope were stored, and mem0 has none of its "+
			"memories now: its store was lost or exchanged, or they were deleted; restore it, or reset the scope")
	}
	return err
}

// question is a request as sent to mem0.
type question struct {
	topK     int64
	filters  []filter
	ignored  []string
	warnings []string
	body     []byte
	// state is the reason of an empty answer, unless the memory is empty.
	state abi.ResultState
	// gateway: the gateway is asked to rerank. rerank is its report of that.
	gateway bool
	rerank  abi.Raw
}

// readRerank keeps the gateway's report about its reranker, which accompanies the results, and warns if the order is
// the search's own.
func (q *question) readRerank(body abi.Raw) {
	if !q.gateway {
		return
	}
	applied := false
	q.rerank = wire.At(body, "rerank")
	wire.Pick(q.rerank, "applied", &applied)
	if !applied {
		q.warnings = append(q.warnings, "rerank_failed: the reranker failed; the order is the search's own, and no "+
			"memory has a rerank score")
	}
}

func (b *backend) question(r *abi.RetrieveRequest) (*question, error) {
	q := &question{topK: b.ItemsFor(r.Budget, b.topK), gateway: b.rerank && b.surface.gateway}
	if b.platform() {
		q.topK = min(q.topK, platformMax)
	}
	query := withoutZero(r.Query)
	if strings.TrimSpace(query) == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "query: blank; mem0 searches by meaning and refuses a "+
			"query without any")
	}
	var err error
	if q.filters, q.ignored, err = filtersOf(r); err != nil {
		return nil, err
	}
	if len(q.filters) > 0 && b.surface.store == "" {
		// How the store filters is only determined if it matters.
		if err := b.detectStore(); err != nil {
			q.warnings = append(q.warnings, "store_unknown: mem0 does not tell its vector store: "+
				abi.AsError(err).Message)
		}
	}
	asOf := ""
	if b.platform() && r.AsOf != "" {
		asOf = utc(r.AsOf)
	}
	q.body = wire.Object{"query", query, "top_k", q.topK, "threshold", b.threshold,
		"explain", wire.If(b.explain && !b.platform(), true), "rerank", wire.If(b.rerank, true),
		"rerank_pool", wire.If(q.gateway && b.rerankPool > q.topK, b.rerankPool),
		"rerank_on_error", wire.If(q.gateway, b.rerankOnError),
		"latest_only", wire.If(b.platform() && b.latestOnly, true), "reference_date", wire.Some(asOf),
		"show_expired", wire.If(b.showExpired, true), "filters", b.conditions(q.filters, asOf)}.JSON()
	return q, nil
}

// evidence returns mem0's data about an item. Missing data is left out.
func (m *memory) evidence(rank int, backdated bool) abi.Evidence {
	e := abi.Evidence{Rank: int64(rank), NativeID: m.id, NativeType: "memory", Text: m.text, Score: m.score,
		CreatedAt: m.created, UpdatedAt: m.update}
	if m.replaced {
		e.Superseded = sdk.Ptr(true)
	}
	if m.created != "" {
		e.TimeBasis = timeBasis(backdated)
	}
	if id := m.label(keyEvent); id != "" {
		e.SourceEventIDs = []string{id}
	}
	return e
}

func timeBasis(backdated bool) abi.TimeBasis {
	if backdated {
		return abi.TimeEvent
	}
	return abi.TimeIngest
}

func (b *backend) trace(r *abi.RetrieveRequest, q *question, rows []*memory, fitted sdk.Fitted) *abi.Trace {
	t := &abi.Trace{BackendName: b.config.Provider, NativeOperation: "POST /search", Consistency: "committed",
		ResultState: abi.ResultEmpty,
		NativeIDs:   idsOfRows(rows), RetrievedCount: sdk.Ptr(int64(len(rows))), Warnings: q.warnings}
	t.Effective = wire.Object{"api", b.surface.api, "infer", b.infer, "top_k", q.topK, "threshold", b.threshold,
		"rerank", b.rerank, "rerank_pool", wire.If(len(q.rerank) > 0, b.rerankPool)}.Map()
	if b.platform() {
		t.NativeOperation = "POST /v3/memories/search/"
	}
	fitted.Report(t, r.Budget)
	sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "native", Sent: &q.topK,
		Received: sdk.Ptr(int64(len(rows))), Shown: sdk.Ptr(int64(fitted.End))})
	b.traceFilters(t, q, rows)
	b.traceRows(t, q, rows)
	if r.AsOf != "" {
		t.AsOfMode = "native"
		if !b.platform() {
			t.AsOfMode = "ignored"
			t.Warnings = append(t.Warnings, "as_of_ignored: the self-hosted server cannot filter by time; it answers "+
				"as of now")
		}
	}
	if len(rows) > 0 && fitted.End == 0 {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first memory fits the budget")
	}
	return t
}

// traceFilters says how the labels were applied, and checks the items against them.
func (b *backend) traceFilters(t *abi.Trace, q *question, rows []*memory) {
	t.FilterMode = abi.FilterNone
	for _, name := range q.ignored {
		sdk.Put(&t.FiltersApplied, name, string(abi.FilterNone))
		t.Warnings = append(t.Warnings, "filter_ignored: mem0 cannot filter by "+name+": an event's own metadata is "+
			"stored nested")
	}
	if len(q.filters) == 0 {
		return
	}
	how := b.surface.labelFilter()
	fits := true
	for _, f := range q.filters {
		for _, m := range rows {
			fits = fits && m.label(f.key) == wire.Text(f.value)
		}
	}
	if len(rows) > 0 {
		t.LabelsVerified = &fits
	}
	if !fits {
		how = string(abi.FilterNone)
		t.Warnings = append(t.Warnings, "labels_ignored: mem0 returned memories with other labels than asked for: "+
			"its vector store does not filter by them")
	}
	for _, f := range q.filters {
		sdk.Put(&t.FiltersApplied, strings.TrimPrefix(f.key, prefix), how)
	}
	if how == string(abi.FilterHard) {
		t.FilterMode = abi.FilterHard
	}
}

// traceRows reports mem0's scores and times. Its fused scores are not comparable between queries; the semantic one, if
// mem0 reports it, is.
func (b *backend) traceRows(t *abi.Trace, q *question, rows []*memory) {
	var semantic, reranked *float64
	var oldest, newest *memory
	for _, m := range rows {
		t.ResultState = abi.ResultResults
		t.TopScore = larger(t.TopScore, m.score)
		semantic, reranked = larger(semantic, m.semantic), larger(reranked, m.reranked)
		if m.created == "" {
			continue
		}
		if oldest == nil || m.at.Before(oldest.at) {
			oldest = m
		}
		if newest == nil || newest.at.Before(m.at) {
			newest = m
		}
	}
	t.Details = wire.Object{"top_semantic_score", numberOrNil(semantic), "top_rerank_score", numberOrNil(reranked),
		"rerank", q.rerank}.Map()
	if oldest != nil {
		t.OldestRetrievedAt, t.NewestRetrievedAt, t.TimeBasis = oldest.created, newest.created, timeBasis(b.backdate)
	}
}

// larger returns the larger of two numbers; nil means no number.
func larger(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// numberOrNil returns a number as a value of an Object, nil if there is none.
func numberOrNil(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}
