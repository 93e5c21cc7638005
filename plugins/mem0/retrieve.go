package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// bodyRoom is for what a search says beside its query.
const bodyRoom = 384

// platformMax is the most that a search on the platform returns.
const platformMax = 1000

func (b *backend) searchRoute() string {
	if b.platform() {
		return "platform_search"
	}
	return "search"
}

// retrieve is one search. mem0 finds, ranks and limits.
//
// In:     labels become conditions on metadata; max_items becomes top_k; max_tokens is the formatter's.
// Out:    raw is the answer; evidence i points at /calls/0/body/results/i.
// Errors: invalid_argument for a blank query or a filter on native ids; isolation_breach; what failure says.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	b, err := open(c)
	if err == nil {
		err = b.offered()
	}
	if err != nil {
		return nil, err
	}
	q, err := b.question(r)
	if err != nil {
		return nil, err
	}
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{}}}
	var rows []*memory
	if q.topK > 0 {
		body, err := b.send(request{route: b.searchRoute(), body: q.body})
		if err != nil {
			return nil, err
		}
		if rows, _, err = b.readResults(b.searchRoute(), body); err != nil {
			return nil, err
		}
		if q.reranks && b.surface.gateway {
			if err := q.readRerank(b.searchRoute(), body); err != nil {
				return nil, err
			}
		}
		result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: b.searchRoute(), Body: body})
	}
	fitted := b.settings.format(c, rows, r.Budget)
	result.FormattedContext = fitted.Text
	if len(rows) > 0 {
		result.Evidence = make([]abi.Evidence, len(rows))
	}
	for i, m := range rows {
		m.evidence(&result.Evidence[i], i+1, b.settings.backdate)
		result.Evidence[i].Pointer = "/calls/0/body/results/" + sdk.Itoa(i)
	}
	result.Trace = b.trace(r, q, rows, fitted)
	return result, nil
}

// question is a request as mem0 gets it.
type question struct {
	topK     int64
	filters  []filter
	ignored  []string
	warnings []string
	body     []byte
	// reranks: the request asks for it. rerank is what the gateway says of it.
	reranks bool
	rerank  abi.Raw
}

// readRerank keeps what the gateway says of its reranker, beside the results, and warns where the order is the search's own.
func (q *question) readRerank(route string, body []byte) error {
	applied := false
	err := readObject(route, body, func(d *jsontext.Decoder, key string) error {
		if key != "rerank" {
			return d.Skip()
		}
		told, err := d.Raw()
		if err != nil {
			return err
		}
		q.rerank = abi.Raw(told)
		return eachIn(jsontext.DecodeBytes(told), func(d *jsontext.Decoder, key string) (err error) {
			if key == "applied" {
				applied, err = readFlag(d)
				return err
			}
			return d.Skip()
		})
	})
	if err == nil && !applied {
		q.warnings = append(q.warnings, "rerank_failed: the reranker failed; the order is the search's own, and no memory has a rerank score")
	}
	return err
}

func (b *backend) question(r *abi.RetrieveRequest) (*question, error) {
	q := &question{topK: b.settings.topK, reranks: b.settings.rerank}
	if r.Budget.MaxItems != nil {
		q.topK = *r.Budget.MaxItems
	}
	if b.platform() {
		q.topK = min(q.topK, platformMax)
	}
	query := withoutZero(r.Query)
	if sdk.TrimSpace(query) == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "query: blank; mem0 searches by meaning and refuses a query without any")
	}
	var err error
	if q.filters, q.ignored, err = filtersOf(r); err != nil {
		return nil, err
	}
	if len(q.filters) > 0 && b.surface.store == "" {
		// Which store filters how is only asked for where it matters.
		if err := b.lookAtStore(); err != nil {
			q.warnings = append(q.warnings, "store_unknown: mem0 does not tell its vector store: "+abi.AsError(err).Message)
		}
	}
	var j jsontext.Encoder
	j.SetBytes(make([]byte, 0, len(query)+bodyRoom))
	j.ObjStart()
	j.FieldStart("query")
	j.Str(query)
	kept, plain := &b.settings.last.search, len(q.filters) == 0 && r.AsOf == ""
	if plain && kept.surface == b.surface && kept.topK == q.topK {
		q.body = append(j.Bytes(), kept.rest...)
		return q, nil
	}
	begin := len(j.Bytes())
	b.writeSearch(&j, q, r.AsOf)
	q.body = j.Bytes()
	if plain {
		*kept = keptSearch{b.surface, q.topK, slices.Clone(q.body[begin:])}
	}
	return q, nil
}

// keptSearch is what a search of a scope says behind its query, without filters and as of now. It hangs on no more than is kept with it.
type keptSearch struct {
	surface *surface
	topK    int64
	rest    []byte
}

// writeSearch writes a search from behind its query to its end.
func (b *backend) writeSearch(j *jsontext.Encoder, q *question, asOf string) {
	s := b.settings
	j.FieldStart("top_k")
	j.Int64(q.topK)
	j.FieldStart("threshold")
	j.Float64(s.threshold)
	if s.explain && !b.platform() {
		j.FieldStart("explain")
		j.Bool(true)
	}
	if q.reranks {
		j.FieldStart("rerank")
		j.Bool(true)
		if b.surface.gateway {
			if s.rerankPool > q.topK {
				j.FieldStart("rerank_pool")
				j.Int64(s.rerankPool)
			}
			j.FieldStart("rerank_on_error")
			j.Str(s.rerankOnError)
		}
	}
	if b.platform() && s.latestOnly {
		j.FieldStart("latest_only")
		j.Bool(true)
	}
	if !b.platform() {
		asOf = ""
	} else if asOf != "" {
		asOf = utc(asOf)
		j.FieldStart("reference_date")
		j.Str(asOf)
	}
	j.FieldStart("filters")
	b.writeFilters(j, q.filters, asOf)
	j.ObjEnd()
}

// evidence writes what an item is to e. What mem0 did not say is absent.
func (m *memory) evidence(e *abi.Evidence, rank int, backdated bool) {
	e.Rank, e.NativeID, e.NativeType, e.Text, e.CreatedAt, e.UpdatedAt = int64(rank), m.id, "memory", m.text, m.created, m.update
	if m.score.told {
		e.Score = &m.score.value
	}
	if m.replaced {
		e.Superseded = sdk.Ptr(true)
	}
	if m.created != "" {
		e.TimeBasis = abi.TimeIngest
		if backdated {
			e.TimeBasis = abi.TimeEvent
		}
	}
	if id := m.label(keyEvent); id != "" {
		e.SourceEventIDs = []string{id}
	}
}

func (b *backend) trace(r *abi.RetrieveRequest, q *question, rows []*memory, fitted sdk.Fitted) *abi.Trace {
	s := b.settings
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: "POST /search", Consistency: "committed", ResultState: abi.ResultEmpty, NativeIDs: idsOfRows(rows),
		RetrievedCount: sdk.Ptr(int64(len(rows))), Warnings: q.warnings,
		Effective: b.effectiveSearch(q)}
	if b.platform() {
		t.NativeOperation = "POST /v3/memories/search/"
	}
	fitted.Report(t, r.Budget)
	if r.Budget.MaxItems != nil {
		t.BudgetApplied.Set("max_items", abi.BudgetUse{How: "native", Sent: &q.topK})
	}
	b.traceFilters(t, q, rows)
	b.traceRows(t, rows)
	if r.AsOf != "" {
		t.AsOfMode = "native"
		if !b.platform() {
			t.AsOfMode = "ignored"
			t.Warnings = append(t.Warnings, "as_of_ignored: the self-hosted server cannot filter by time; it answers as of now")
		}
	}
	if len(q.rerank) > 0 {
		t.Details.Set("rerank", q.rerank)
	}
	if len(rows) > 0 && fitted.End == 0 {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first memory fits the budget")
	}
	return t
}

// effectiveSearch is what a search goes by. It is made once for a top_k.
func (b *backend) effectiveSearch(q *question) abi.Members[abi.Raw] {
	s, f := b.settings, b.surface
	pooled := len(q.rerank) > 0
	if f.searchEffective != nil && f.searchTopK == q.topK && !pooled {
		return f.searchEffective
	}
	effective := abi.Members[abi.Raw]{{Name: "api", Value: sdk.Text(f.api)}, {Name: "infer", Value: boolean(s.infer)}, {Name: "top_k", Value: sdk.Number(q.topK)},
		{Name: "threshold", Value: strconv.AppendFloat(nil, s.threshold, 'g', -1, 64)}, {Name: "rerank", Value: boolean(q.reranks)}}
	if pooled {
		effective.Set("rerank_pool", sdk.Number(s.rerankPool))
	} else {
		f.searchEffective, f.searchTopK = effective, q.topK
	}
	return effective
}

// traceFilters says how the labels were applied, and checks the items against them.
func (b *backend) traceFilters(t *abi.Trace, q *question, rows []*memory) {
	t.FilterMode = abi.FilterNone
	if len(q.ignored)+len(q.filters) == 0 {
		return
	}
	for _, name := range q.ignored {
		t.FiltersApplied.Set(name, string(abi.FilterNone))
		t.Warnings = append(t.Warnings, "filter_ignored: mem0 cannot filter by "+name+": an event's own metadata is stored nested")
	}
	if len(q.filters) == 0 {
		return
	}
	how := b.surface.labelFilter()
	fits := true
	for _, f := range q.filters {
		for _, m := range rows {
			fits = fits && string(sdk.Text(m.label(f.key))) == string(f.value)
		}
	}
	if len(rows) > 0 {
		t.LabelsVerified = &fits
	}
	if !fits {
		how = string(abi.FilterNone)
		t.Warnings = append(t.Warnings, "labels_ignored: mem0 returned memories with other labels than asked for: its vector store does not filter by them")
	}
	for _, f := range q.filters {
		t.FiltersApplied.Set(strings.TrimPrefix(f.key, prefix), how)
	}
	if how == string(abi.FilterHard) {
		t.FilterMode = abi.FilterHard
	}
}

// traceRows reports scores and times as mem0 gave them. Its fused scores are not comparable between queries; the semantic one, where it is told, is.
func (b *backend) traceRows(t *abi.Trace, rows []*memory) {
	semantic := ""
	var reranked *float64
	var oldest, newest *memory
	for _, m := range rows {
		if m.score.told && (t.TopScore == nil || m.score.value > *t.TopScore) {
			t.TopScore = &m.score.value
		}
		if m.semantic != "" && (semantic == "" || greater(m.semantic, semantic)) {
			semantic = m.semantic
		}
		if m.reranked.told && (reranked == nil || m.reranked.value > *reranked) {
			reranked = &m.reranked.value
		}
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
	if semantic != "" {
		t.Details.Set("top_semantic_score", strconv.AppendFloat(nil, numeralValue(semantic), 'g', -1, 64))
	}
	if reranked != nil {
		t.Details.Set("top_rerank_score", strconv.AppendFloat(nil, *reranked, 'g', -1, 64))
	}
	if len(rows) > 0 {
		t.ResultState = abi.ResultResults
	}
	if oldest != nil {
		t.OldestRetrievedAt, t.NewestRetrievedAt = oldest.created, newest.created
		t.TimeBasis = abi.TimeIngest
		if b.settings.backdate {
			t.TimeBasis = abi.TimeEvent
		}
	}
}

// before compares times by their instant; both have been read before.
func before(a, b string) bool {
	x, _ := abi.ParseTime(a)
	y, _ := abi.ParseTime(b)
	return x.Before(y)
}
