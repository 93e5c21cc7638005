package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// retrieve searches the scope's memory: on REST and MCP facts by BM25 and cosine, fused by reciprocal rank, which is all that either server offers; on core by
// the configured recipe or search configuration. Superseded facts come with the others and may rank above their successors; they are marked, not dropped.
//
// In:  max_items cuts what is shown; the servers always get the configured max_facts, the gateway the smaller of the two.
// Out: raw is the search's answer, then entities (search_nodes) and the episodes behind the facts (bolt, core) where configured. Scores on core alone, the reranker's
// own, where they belong to the items.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: "POST /search", AsOfMode: "", Details: abi.Members[abi.Raw]{
		{Name: "group_id", Value: sdk.Text(gid)}, {Name: "surface", Value: sdk.Text(s.surface())}}}
	query, quotedQuery := s.query(r, t)
	applied := s.filters(r, t)
	var found *found
	switch {
	case s.core:
		t.NativeOperation = "search_"
		var q *search
		if q, err = s.coreFilter(r, t); err == nil {
			q.query = query
			found, err = s.coreFind(c, gid, q, t)
		}
	default:
		if s.mcp {
			t.NativeOperation = "search_memory_facts"
		}
		found, err = s.find(c, gid, quotedQuery, applied, t)
	}
	if err != nil {
		return nil, err
	}
	fitted := s.format(c, found, r.Budget)
	s.explain(r, found, fitted, t)
	evidence := found.evidence(r.Budget)
	if len(evidence) > 0 {
		t.TopScore = evidence[0].Score // of the first item; the lists' scores are of different rerankers
	}
	return &abi.RetrieveResult{Raw: found.raw, FormattedContext: fitted.Text, Evidence: evidence, Trace: t}, nil
}

// Bounds of a query. From 127 words on the servers drop the BM25 half of the search without a word, and an index clause for each word ends at 1024.
const (
	queryWords = 100
	queryChars = 2000
)

// query is the request's, with its labels appended where configured: words are the only way by which a label can reach the search. It comes as JSON too.
func (s *settings) query(r *abi.RetrieveRequest, t *abi.Trace) (query string, quoted abi.Raw) {
	query = r.Query
	if s.labelsInQuery && (r.Scenario != "" || r.Context != "" || r.Attribute != "") || !fewWords(query) {
		query = s.listed(r, t)
	}
	if query == "" {
		t.Warnings = append(t.Warnings, "query_blank: Graphiti answers a query without words with nothing")
	}
	quoted = sdk.Text(query)
	t.Details.Set("query", quoted)
	return query, quoted
}

// fewWords tells that a query is ASCII in words with one blank between them, and too short to be cut: most are, and need no list of their words.
func fewWords(query string) bool {
	blank := true
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c >= 0x7f || c < ' ' || c == ' ' && blank {
			return false
		}
		blank = c == ' '
	}
	return !blank && len(query) < 2*queryWords
}

// listed is query where labels are appended, blanks are more than one, or there may be too many words.
//
//go:noinline
func (s *settings) listed(r *abi.RetrieveRequest, t *abi.Trace) string {
	words := strings.Fields(r.Query)
	asked := len(words)
	if s.labelsInQuery && asked > 0 {
		if r.Scenario != "" {
			words = append(words, strings.Fields(r.Scenario)...)
		}
		if r.Context != "" && !sdk.CrossContext(r) {
			words = append(words, strings.Fields(r.Context)...)
		}
		if r.Attribute != "" {
			words = append(words, strings.Fields(r.Attribute)...)
		}
	}
	cut := len(words) > queryWords
	if cut { // of the question first: the labels are at the end, and asked for too
		labels := min(len(words)-asked, queryWords/2)
		words = append(words[:queryWords-labels:queryWords-labels], words[len(words)-labels:]...)
	}
	query := strings.Join(words, " ")
	if short := cutChars(query, queryChars); len(short) < len(query) {
		query, cut = short, true
	}
	if cut {
		t.Warnings = append(t.Warnings, "query_cut: Graphiti drops keyword search from 127 words on; the query was cut to 100 words and 2000 characters")
	}
	return query
}

// cutChars is the beginning of s, of at most n characters.
func cutChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// nativeFilters are what search_memory_facts takes beside the query: dates, a list of relation names, and a node to rank by.
var nativeFilters = [...]string{"edge_types", "valid_at_after", "valid_at_before", "invalid_at_after", "invalid_at_before", "center_node_uuid"}

// filters sorts the request's labels and filters into what the backend applies and what it does not, and says so in the trace.
func (s *settings) filters(r *abi.RetrieveRequest, t *abi.Trace) (applied []field) {
	t.FilterMode = abi.FilterNone
	if labels := sdk.Labels(r); len(labels) > 0 {
		applied = s.sorted(labels, r, t)
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: Graphiti's searches answer as of now; native query facts_at tells what held at an instant")
	}
	return applied
}

// sorted is filters for the names of labels and filters that a request has.
//
//go:noinline
func (s *settings) sorted(labels []string, r *abi.RetrieveRequest, t *abi.Trace) []field {
	how := abi.FilterNone
	if s.labelsInQuery {
		how = abi.FilterSemantic
	}
	var applied []field
	for _, name := range labels {
		_, isFilter := r.Filters[name]
		switch {
		case !isFilter:
			t.FiltersApplied.Set(name, string(how))
			if how == abi.FilterSemantic && t.FilterMode == abi.FilterNone {
				t.FilterMode = abi.FilterSemantic
			}
		case s.core && isCoreFilter(name): // coreFilter says how
		case s.mcp && isNativeFilter(name):
			t.FiltersApplied.Set(name, string(abi.FilterHard))
			t.FilterMode = abi.FilterHard
		default:
			t.FiltersApplied.Set(name, string(abi.FilterNone))
		}
	}
	if s.mcp {
		for _, name := range nativeFilters {
			if value := r.Filters[name]; len(value) > 0 {
				applied = append(applied, field{name, value})
			}
		}
	}
	for _, name := range abi.SortedKeys(r.Filters) {
		if t.FiltersApplied.Get(name) == string(abi.FilterNone) {
			t.Warnings = append(t.Warnings, "filter_ignored: the "+s.surface()+" surface of Graphiti has no filter "+name)
		}
	}
	return applied
}

func isNativeFilter(name string) bool { return contains(nativeFilters[:], name) }

func isCoreFilter(name string) bool {
	for i := range coreDates {
		if coreDates[i].name == name {
			return true
		}
	}
	return contains(coreFilters[:], name) || contains(coreBeside[:], name)
}

// found is a retrieval's answers, read.
type found struct {
	raw abi.RawResult
	// lists are what was found, in the backend's order.
	lists []hits
	// sources are the event ids behind a fact, by its uuid: from Bolt, or the gateway.
	sources map[string][]string
	// failed: the last answer has a key "error".
	failed bool
}

// hits is one list of an answer.
type hits struct {
	// key is its name there, at its place in raw, as a JSON Pointer up to the item's number.
	key, at string
	// kind is fact, entity, episode or community; group what evidence says of it.
	kind, group string
	items       []item
	// unaligned: the answer has scores, and they belong to no item.
	unaligned bool
}

// facts are the facts among what was found.
func (f *found) facts() []item {
	for i := range f.lists {
		if f.lists[i].kind == "fact" {
			return f.lists[i].items
		}
	}
	return nil
}

func (f *found) count() (n int) {
	for i := range f.lists {
		n += len(f.lists[i].items)
	}
	return n
}

// Routes that raw.calls names.
const (
	routeRESTSearch = "rest_search"
	routeMCPSearch  = "mcp_search_facts"
	routeMCPNodes   = "mcp_search_nodes"
	routeSources    = "bolt_fact_events"
)

// find makes the native calls of a retrieval. query is JSON.
func (s *settings) find(c *sdk.Call, gid string, query abi.Raw, filters []field, t *abi.Trace) (*found, error) {
	f := new(found)
	route := routeRESTSearch
	var body []byte
	var err error
	if s.mcp {
		route = routeMCPSearch
		body, err = s.mcpSearch(c, gid, query, filters)
	} else {
		body, err = s.restSearch(c, gid, query)
	}
	if err != nil {
		return nil, err
	}
	if err := s.read(f, route, body); err != nil {
		return nil, err
	}
	if s.mcp { // the REST service tells no group
		if err := ours(route, gid, f.facts()); err != nil {
			return nil, err
		}
	}
	if s.mcp && s.nodes {
		if body, err = s.mcpNodes(c, gid, query); err != nil {
			return nil, err
		}
		if err := s.read(f, routeMCPNodes, body); err != nil {
			return nil, err
		}
		if err := ours(routeMCPNodes, gid, f.lists[1].items); err != nil {
			return nil, err
		}
	}
	if s.bolt && s.annotate && len(f.facts()) > 0 {
		if err := f.annotate(c, gid); err != nil {
			t.ResultState = abi.ResultDegraded
			t.Warnings = append(t.Warnings, "sources_unknown: Neo4j could not be asked for the episodes behind the facts: "+abi.AsError(err).Message)
		}
	}
	return f, nil
}

// read adds an answer of Graphiti's own servers. A tool's error goes before all that is wrong with its answer as one of a search.
func (s *settings) read(f *found, route string, body []byte) error {
	err := f.add(route, body)
	if s.mcp && (err != nil || f.failed) {
		if told := toolError(route, body); told != nil {
			return told
		}
	}
	return err
}

// annotate asks which recorded events the facts came from.
func (f *found) annotate(c *sdk.Call, gid string) error {
	facts := f.facts()
	uuids := make([]string, len(facts))
	for i := range facts {
		uuids[i] = facts[i].uuid
	}
	_, rows, err := c.Bolt(routeSources, inGroup(gid).list("facts", uuids).json())
	if err != nil {
		return err
	}
	body := []byte{'['}
	if err := sdk.EachRow(rows, func(row []byte) error {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(body, row...)
		return nil
	}); err != nil {
		return err
	}
	return f.add(routeSources, append(body, ']'))
}

// add reads one answer and keeps it.
func (f *found) add(route string, body []byte) (err error) {
	switch route {
	case routeRESTSearch, routeMCPSearch:
		err = f.hit(hits{key: "facts", kind: "fact"}, route, body)
	case routeMCPNodes:
		err = f.hit(hits{key: "nodes", kind: "entity", group: "entities"}, route, body)
	case routeCoreSearch:
		err = f.addCore(body)
	case routeCoreSources:
		err = f.addSources(body)
	case routeSources:
		f.sources = map[string][]string{}
		err = list(route, body, func(d *jsontext.Decoder) error {
			fact, i := "", 0
			return d.Arr(func(d *jsontext.Decoder) (err error) {
				switch i {
				case 0:
					fact, err = text(d)
				case 1:
					var name string
					if name, err = text(d); name != "" {
						f.sources[fact] = append(f.sources[fact], name)
					}
				default:
					err = d.Skip()
				}
				i++
				return err
			})
		})
	default:
		return abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+route+" is no call of retrieve")
	}
	if err != nil {
		return err
	}
	f.raw.Calls = append(f.raw.Calls, abi.RawCall{Route: route, Body: body})
	return nil
}

// hit reads the one list of an answer of the servers.
func (f *found) hit(l hits, route string, body []byte) (err error) {
	l.at = f.bodyOf(l.key)
	l.items, f.failed, err = readItems(route, l.key, body)
	f.lists = append(f.lists, l)
	return err
}

// bodyOf is where a list of the next call's answer stands in raw.
func (f *found) bodyOf(key string) string {
	if len(f.raw.Calls) == 0 {
		return "/calls/0/body/" + key + "/"
	}
	return "/calls/" + sdk.Itoa(len(f.raw.Calls)) + "/body/" + key + "/"
}

// evidence points at the items in the backend's order, as many as the budget takes.
func (f *found) evidence(budget abi.ContextBudget) []abi.Evidence {
	most := f.count()
	if budget.MaxItems != nil {
		most = int(min(int64(most), max(0, *budget.MaxItems)))
	}
	if most == 0 {
		return nil
	}
	list := make([]abi.Evidence, most)
	pointers := lines{buf: make([]byte, 0, 32*most)}
	n := 0
	for i := range f.lists {
		l := &f.lists[i]
		for j := range l.items[:min(most-n, len(l.items))] {
			x, e := &l.items[j], &list[n]
			switch l.kind {
			case "fact":
				x.factEvidence(e)
				if f.sources != nil {
					e.SourceEventIDs = f.sources[x.uuid]
				}
			case "episode":
				x.evidence(e, l.kind)
				e.SourceEventIDs, e.TimeBasis = []string{x.name}, abi.TimeEvent
			default:
				x.evidence(e, l.kind)
			}
			begin := len(pointers.buf)
			pointers.add(l.at, sdk.Itoa(j))
			n++
			e.Pointer, e.Rank, e.Group, e.Score = pointers.since(begin), int64(n), l.group, x.score
		}
	}
	return list
}

// explain fills the trace.
func (s *settings) explain(r *abi.RetrieveRequest, f *found, fitted sdk.Fitted, t *abi.Trace) {
	fitted.Report(t, r.Budget)
	facts, count := f.facts(), f.count()
	t.Effective = s.effective
	if s.core {
		limit := s.limit(r.Budget)
		t.Effective = abi.Members[abi.Raw]{{Name: "search", Value: sdk.Text(s.library.recipe)}, {Name: "limit", Value: sdk.Number(limit)}}
		if r.Budget.MaxItems != nil {
			t.BudgetApplied.Set("max_items", abi.BudgetUse{How: "native", Sent: sdk.Ptr(limit)})
		}
	} else if r.Budget.MaxItems != nil {
		t.BudgetApplied.Set("max_items", abi.BudgetUse{How: "fixed", Sent: sdk.Ptr(s.maxFacts)})
		if *r.Budget.MaxItems > s.maxFacts {
			t.Warnings = append(t.Warnings, "max_facts_fixed: the configuration asks Graphiti for "+sdk.Itoa(s.maxFacts)+
				" facts, always; raise max_facts for more")
		}
	}
	t.RetrievedCount = sdk.Ptr(int64(count))
	t.Details.Set("items_shown", sdk.Number(int64(fitted.End-fitted.First)))
	if t.ResultState == "" {
		t.ResultState = abi.ResultResults
	}
	if count == 0 {
		t.ResultState = abi.ResultEmpty
	}
	t.NativeIDs = make([]string, 0, count)
	for i := range f.lists {
		for j := range f.lists[i].items {
			t.NativeIDs = append(t.NativeIDs, f.lists[i].items[j].uuid)
		}
	}
	superseded, undated := int64(0), int64(0)
	var oldest, newest moment
	for i := range facts {
		x := &facts[i]
		if x.superseded() {
			superseded++
		}
		at := x.validAt
		if at.text == "" {
			undated++
			at = x.createdAt
		}
		switch {
		case at.text == "":
		case oldest.text == "":
			oldest, newest = at, at
		case at.earlier(oldest):
			oldest = at
		case newest.earlier(at):
			newest = at
		}
	}
	t.OldestRetrievedAt, t.NewestRetrievedAt = oldest.text, newest.text
	if len(facts) > 0 {
		t.TimeBasis = abi.TimeEvent
		if undated == int64(len(facts)) {
			t.TimeBasis = abi.TimeIngest
		}
		t.Details.Set("superseded", sdk.Number(superseded))
		t.Details.Set("times_from_created_at", sdk.Number(undated))
	}
	if fitted.Cut {
		t.Warnings = append(t.Warnings, "fact_cut: the first fact alone is larger than max_tokens; only its beginning is shown")
	} else if count > 0 && fitted.Text == "" {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first fact fits the budget")
	}
}
