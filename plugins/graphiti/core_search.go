package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The fields of SearchFilters that the gateway takes, and what goes beside them in a search. The first is the same as a filter of search_memory_facts, whose
// four dates are understood too.
var (
	coreFilters = [...]string{"edge_types", "node_labels", "edge_uuids", "valid_at", "invalid_at", "created_at", "expired_at"}
	coreBeside  = [...]string{"center_node_uuid", "bfs_origin_node_uuids"}
	coreDates   = [...]struct{ name, field, operator string }{{"valid_at_after", "valid_at", ">="}, {"valid_at_before", "valid_at", "<="},
		{"invalid_at_after", "invalid_at", ">="}, {"invalid_at_before", "invalid_at", "<="}}
)

// search is one request of the native search.
type search struct {
	query string
	// limit is the most of each kind of item.
	limit int64
	// filters are fields of search_filter, beside what goes next to it.
	filters, beside []field
}

// coreFilter sorts the request's filters into the native search and tells how each is applied. What the configuration has fixed a request cannot change.
//
// Facts heed every filter, entities node_labels alone, episodes and communities none (graphiti_core search_utils.py): where a search finds more than a filter reaches, that is
// no hard one.
func (s *settings) coreFilter(r *abi.RetrieveRequest, t *abi.Trace) (*search, error) {
	q := &search{limit: s.limit(r.Budget), filters: append([]field(nil), s.library.filters...)}
	fixed := func(name, field string) error {
		if !has(s.library.filters, field) {
			return nil
		}
		return abi.NewError(abi.CodeInvalidArgument, "filters."+name+": search_filters of the configuration has fixed "+field).WithHint("leave it out, or take it out of the configuration")
	}
	partial := false
	apply := func(name string, reaches bool) {
		how := "unverified"
		if reaches {
			how, t.FilterMode = string(abi.FilterHard), abi.FilterHard
		} else {
			partial = true
		}
		t.FiltersApplied.Set(name, how)
	}
	k := s.library.kinds
	for _, name := range coreFilters {
		if value := r.Filters[name]; len(value) > 0 {
			if err := fixed(name, name); err != nil {
				return nil, err
			}
			q.filters = append(q.filters, field{name, value})
			apply(name, !k.episodes && !k.communities && (!k.entities || name == "node_labels"))
		}
	}
	for _, date := range coreDates {
		value := r.Filters[date.name]
		if len(value) == 0 {
			continue
		}
		if err := fixed(date.name, date.field); err != nil {
			return nil, err
		}
		if len(r.Filters[date.field]) > 0 {
			return nil, abi.NewError(abi.CodeInvalidArgument, "filters."+date.name+": filters."+date.field+" is given too; write all conditions into that")
		}
		q.condition(date.field, date.operator, value)
		apply(date.name, !k.episodes && !k.communities && !k.entities)
	}
	for _, name := range coreBeside {
		if value := r.Filters[name]; len(value) > 0 {
			q.beside = append(q.beside, field{name, value})
			apply(name, true)
		}
	}
	if partial {
		t.Warnings = append(t.Warnings, "filter_partial: this search finds more than facts; entities heed node_labels alone, episodes and communities no filter")
	}
	return q, nil
}

// condition adds one to those of a date field: conditions of a field hold together.
func (q *search) condition(name, operator string, date abi.Raw) {
	one := append(append([]byte(`{"comparison_operator":"`+operator+`","date":`), date...), '}')
	for i := range q.filters {
		if f := &q.filters[i]; f.name == name {
			f.value = append(append(append(abi.Raw(nil), f.value[:len(f.value)-2]...), ','), append(one, "]]"...)...)
			return
		}
	}
	q.filters = append(q.filters, field{name, append(append([]byte("[["), one...), "]]"...)})
}

// limit is how many items of each kind are asked for: the budget's max_items where it is smaller than the configured number. The library keeps no search's limit for
// others: the gateway gives each one its own copy of the recipe.
func (s *settings) limit(budget abi.ContextBudget) int64 {
	n := s.maxFacts
	for _, f := range s.library.config {
		if f.name == "limit" {
			if own, err := jsontext.DecodeBytes(f.value).Int64(); err == nil {
				n = own
			}
		}
	}
	if budget.MaxItems != nil {
		n = min(n, max(1, *budget.MaxItems))
	}
	return n
}

// body is the request: a recipe by name, or a whole configuration with this request's limit.
func (s *settings) body(q *search) []byte {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("query")
	e.Str(q.query)
	if l := &s.library; l.config == nil {
		e.FieldStart("recipe")
		e.Str(l.recipe)
		e.FieldStart("limit")
		e.Int64(q.limit)
		if l.minScore != nil {
			e.FieldStart("reranker_min_score")
			e.Raw(jsontext.Raw(l.minScore))
		}
	} else {
		e.FieldStart("config")
		e.ObjStart()
		for _, f := range l.config {
			if f.name != "limit" {
				e.FieldStart(f.name)
				e.Raw(jsontext.Raw(f.value))
			}
		}
		e.FieldStart("limit")
		e.Int64(q.limit)
		e.ObjEnd()
	}
	for _, f := range q.beside {
		e.FieldStart(f.name)
		e.Raw(jsontext.Raw(f.value))
	}
	if len(q.filters) > 0 {
		e.FieldStart("search_filter")
		e.ObjStart()
		for _, f := range q.filters {
			e.FieldStart(f.name)
			e.Raw(jsontext.Raw(f.value))
		}
		e.ObjEnd()
	}
	e.ObjEnd()
	return e.Bytes()
}

// Routes of core that raw.calls names.
const (
	routeCoreSearch  = "core_search"
	routeCoreSources = "core_find_episodes"
)

// coreFind makes the native calls of a retrieval: search_, and where it is configured a look at the episodes that the facts name.
func (s *settings) coreFind(c *sdk.Call, gid string, q *search, t *abi.Trace) (*found, error) {
	f := new(found)
	body, err := s.gateway(c, abi.HTTPRequest{Route: routeCoreSearch, Params: inPath(gid, "", "")}, s.body(q))
	if err != nil {
		return nil, err
	}
	if err := f.add(routeCoreSearch, body); err != nil {
		return nil, err
	}
	for i := range f.lists {
		if err := ours(routeCoreSearch, gid, f.lists[i].items); err != nil {
			return nil, err
		}
	}
	f.scores(t)
	if !s.annotate {
		return f, nil
	}
	var uuids []string
	for _, x := range f.facts() {
		for _, uuid := range x.episodes {
			if !contains(uuids, uuid) {
				uuids = append(uuids, uuid)
			}
		}
	}
	for len(uuids) > 0 {
		n := min(lookupAtOnce, len(uuids))
		_, body, err := s.coreEpisodes(c, gid, "uuids", uuids[:n])
		if err == nil {
			err = f.add(routeCoreSources, body)
		}
		if abi.CodeOf(err) == abi.CodeIsolationBreach {
			return nil, err
		}
		if err != nil {
			t.ResultState = abi.ResultDegraded
			t.Warnings = append(t.Warnings, "sources_unknown: the gateway could not be asked for the episodes behind the facts: "+abi.AsError(err).Message)
			return f, nil
		}
		uuids = uuids[n:]
	}
	return f, nil
}

// addCore reads the answer of a search: four lists of items, four of scores, and which of them belong together.
func (f *found) addCore(body []byte) error {
	lists := [...]hits{{key: "edges", kind: "fact"}, {key: "nodes", kind: "entity", group: "entities"}, {key: "episodes", kind: "episode", group: "episodes"},
		{key: "communities", kind: "community", group: "communities"}}
	scoreKeys := [...]string{"edge_reranker_scores", "node_reranker_scores", "episode_reranker_scores", "community_reranker_scores"}
	var scores [len(lists)][]*float64
	var aligned [len(lists)]bool
	seen := 0
	err := fields(routeCoreSearch, body, func(d *jsontext.Decoder, key string) (err error) {
		if key == "score_alignment" {
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				said, err := text(d)
				for i := range lists {
					aligned[i] = aligned[i] || lists[i].key == key && said == "aligned"
				}
				return err
			})
		}
		for i := range lists {
			switch key {
			case lists[i].key:
				seen++
				lists[i].items, err = coreItems(d)
				return err
			case scoreKeys[i]:
				scores[i], err = numbers(d)
				return err
			}
		}
		return d.Skip()
	})
	if err == nil && seen != len(lists) {
		err = unusable(routeCoreSearch, "one without edges, nodes, episodes and communities", body)
	}
	if err != nil {
		return err
	}
	for i := range lists {
		l := &lists[i]
		l.at = f.bodyOf(l.key)
		if !aligned[i] || len(scores[i]) != len(l.items) {
			l.unaligned = len(scores[i]) > 0
		} else {
			for j := range l.items {
				l.items[j].score = scores[i][j]
			}
		}
		f.lists = append(f.lists, *l)
	}
	return nil
}

// coreItems reads a list of items with an episode's text, which the other surfaces do not search.
func coreItems(d *jsontext.Decoder) (list []item, err error) {
	err = d.Arr(func(d *jsontext.Decoder) error {
		list = append(list, item{})
		x := &list[len(list)-1]
		return d.Obj(func(d *jsontext.Decoder, key string) (err error) {
			if key == "content" {
				x.text, err = text(d)
				return err
			}
			return x.decode(d, key)
		})
	})
	return list, err
}

// numbers reads a list of numbers, in which null is none: a score that was infinite.
func numbers(d *jsontext.Decoder) (list []*float64, err error) {
	err = d.Arr(func(d *jsontext.Decoder) error {
		if d.Next() == jsontext.Null {
			list = append(list, nil)
			return d.Null()
		}
		n, err := d.Float64()
		list = append(list, &n)
		return err
	})
	return list, err
}

// scores warns of those that belong to no item.
func (f *found) scores(t *abi.Trace) {
	for i := range f.lists {
		if f.lists[i].unaligned {
			t.Warnings = append(t.Warnings, "scores_unaligned: the scores of "+f.lists[i].key+" are not in the order of the items: this reranker scores otherwise than it sorts; they stand in raw alone")
		}
	}
}

// addSources reads the episodes behind the facts: their names are the events' ids.
func (f *found) addSources(body []byte) error {
	episodes, err := itemsIn(routeCoreSources, "episodes", body)
	if err != nil {
		return err
	}
	if f.sources == nil {
		f.sources = map[string][]string{}
	}
	for _, x := range f.facts() {
		for _, uuid := range x.episodes {
			for i := range episodes {
				if episodes[i].uuid == uuid && episodes[i].name != "" {
					f.sources[x.uuid] = append(f.sources[x.uuid], episodes[i].name)
				}
			}
		}
	}
	return nil
}
