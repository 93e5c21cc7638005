package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// Routes that raw.calls names.
const (
	routeRESTSearch  = "rest_search"
	routeMCPSearch   = "mcp_search_facts"
	routeMCPNodes    = "mcp_search_nodes"
	routeCoreSearch  = "core_search"
	routeCoreSources = "core_find_episodes"
	routeSources     = "bolt_fact_events"
)

// results holds the parsed answers of a retrieval.
type results struct {
	raw abi.RawResult
	// lists are the found items, in the backend's order.
	lists []resultList
	// shortened is true if items were taken from the lists' ends.
	shortened bool
	// limit is how many items the search requested; limitHow is native if it came from the budget's max_items, or
	// fixed.
	limit       int64
	limitOrigin string
	// sources maps a fact's UUID to the ids of its events, from Neo4j or the gateway.
	sources map[string][]string
}

// resultList is one list of an answer.
type resultList struct {
	// key is the list's name in the answer; at is its JSON Pointer into raw, up to the item's number.
	key, at string
	// kind is fact, entity, episode or community; group is the evidence's.
	kind, group string
	items       []item
	// unaligned: the answer has scores that cannot be assigned to items.
	unaligned bool
}

// facts returns the facts found.
func (f *results) facts() []item {
	for i := range f.lists {
		if f.lists[i].kind == "fact" {
			return f.lists[i].items
		}
	}
	return nil
}

func (f *results) count() (n int) {
	for i := range f.lists {
		n += len(f.lists[i].items)
	}
	return n
}

// each iterates over the items in the backend's order, numbered from 0.
func (f *results) each(do func(n int, l *resultList, at int, x *item)) {
	n := 0
	for i := range f.lists {
		l := &f.lists[i]
		for j := range l.items {
			do(n, l, j, &l.items[j])
			n++
		}
	}
}

// factsShare is the facts' share of a budget, where every other list's is 1: half of it if a search finds items of all
// four kinds. What a list does not use goes to the others.
const factsShare = 3

// shares returns the number of each item's list, and the lists' shares.
func (f *results) shares() (lists []int, weights []int64) {
	for i := range f.lists {
		weight := int64(1)
		if f.lists[i].kind == "fact" {
			weight = factsShare
		}
		weights = append(weights, weight)
		for range f.lists[i].items {
			lists = append(lists, i)
		}
	}
	return lists, weights
}

// first returns f with the n items that max_items selects by the lists' shares; all without n.
func (f *results) first(n *int64) *results {
	if n == nil || int64(f.count()) <= *n {
		return f
	}
	lists, weights := f.shares()
	counts := make([]int, len(f.lists))
	for _, at := range sdk.Shares(lists, make([]int64, len(lists)), weights)[:max(0, *n)] {
		counts[lists[at]]++
	}
	return f.keep(counts)
}

// keep returns f with the first items of each list, as many as counts says.
func (f *results) keep(counts []int) *results {
	kept := *f
	kept.lists = slices.Clone(f.lists)
	for i := range kept.lists {
		l := &kept.lists[i]
		l.items = l.items[:min(counts[i], len(l.items))]
	}
	kept.shortened = kept.count() < f.count()
	return &kept
}

// add reads one answer and keeps it.
func (f *results) add(route string, body []byte) (err error) {
	switch route {
	case routeRESTSearch, routeMCPSearch:
		err = f.addList(route, body, resultList{key: "facts", kind: "fact"})
	case routeMCPNodes:
		err = f.addList(route, body, resultList{key: "nodes", kind: "entity", group: "entities"})
	case routeCoreSearch:
		err = f.addCore(body)
	case routeCoreSources:
		err = f.addEpisodes(body)
	case routeSources:
		err = f.addRows(body)
	default:
		err = abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+route+" is no call of retrieve")
	}
	f.raw.Calls = append(f.raw.Calls, abi.RawCall{Route: route, Body: body})
	return err
}

// addList reads {"<key>": [...]}.
func (f *results) addList(route string, body []byte, l resultList) (err error) {
	l.at = f.pointerTo(l.key)
	l.items, err = itemsIn(route, l.key, body)
	f.lists = append(f.lists, l)
	return err
}

// pointerTo returns the JSON Pointer into raw of a list of the next call's answer.
func (f *results) pointerTo(key string) string {
	return "/calls/" + sdk.Itoa(len(f.raw.Calls)) + "/body/" + key + "/"
}

// addCore reads the answer of the gateway's search: four lists of items, four of scores, and which of them belong
// together.
func (f *results) addCore(body []byte) error {
	lists := [...]resultList{{key: "edges", kind: "fact"}, {key: "nodes", kind: "entity", group: "entities"},
		{key: "episodes", kind: "episode", group: "episodes"},
		{key: "communities", kind: "community", group: "communities"}}
	scoreKeys := [...]string{"edge_reranker_scores", "node_reranker_scores", "episode_reranker_scores",
		"community_reranker_scores"}
	var scores [len(lists)][]*float64
	var alignment [len(lists)]string
	var all, aligned fields
	var required []string
	for i := range lists {
		l, into := &lists[i], &scores[i]
		l.at = f.pointerTo(l.key)
		required = append(required, l.key)
		aligned = append(aligned, fields{{l.key, &alignment[i]}}...)
		all = append(all, fields{{l.key, &l.items}, {scoreKeys[i], func(d *wirejson.Decoder) (err error) {
			*into, err = numbers(d)
			return err
		}}}...)
	}
	err := answer(routeCoreSearch, body, append(all, fields{{"score_alignment", aligned}}...), required...)
	for i := range lists {
		l := &lists[i]
		l.unaligned = len(scores[i]) > 0 && (alignment[i] != "aligned" || len(scores[i]) != len(l.items))
		for j := range l.items {
			if len(scores[i]) > 0 && !l.unaligned {
				l.items[j].score = scores[i][j]
			}
		}
	}
	f.lists = append(f.lists, lists[:]...)
	return err
}

// numbers reads an array of numbers, in which null is a score that was infinite.
func numbers(d *wirejson.Decoder) (list []*float64, err error) {
	err = d.Arr(func(d *wirejson.Decoder) error {
		if d.Next() == wirejson.Null {
			list = append(list, nil)
			return d.Null()
		}
		n, err := d.Float64()
		list = append(list, &n)
		return err
	})
	return list, err
}

// addEpisodes reads the episodes behind the facts, which core looks up: their names are the events' ids.
func (f *results) addEpisodes(body []byte) error {
	episodes, err := itemsIn(routeCoreSources, "episodes", body)
	names := map[string]string{}
	for i := range episodes {
		names[episodes[i].uuid] = episodes[i].name
	}
	for _, x := range f.facts() {
		for _, uuid := range x.episodes {
			f.addSource(x.uuid, names[uuid])
		}
	}
	return err
}

// addRows reads the events behind the facts as Neo4j returns them: [[fact, name], ...].
func (f *results) addRows(body []byte) error {
	return list(routeSources, body, func(d *wirejson.Decoder) error {
		fact, name, i := "", "", -1
		row := columns(&fact, &name)
		err := d.Arr(func(d *wirejson.Decoder) error {
			i++
			return row(i, d)
		})
		f.addSource(fact, name)
		return err
	})
}

func (f *results) addSource(fact, name string) {
	if f.sources == nil {
		f.sources = map[string][]string{}
	}
	if name != "" {
		f.sources[fact] = append(f.sources[fact], name)
	}
}

// evidence returns pointers to the items, in the backend's order.
func (f *results) evidence() []abi.Evidence {
	var list []abi.Evidence
	f.each(func(n int, l *resultList, at int, x *item) {
		e := x.evidence(l.kind)
		e.Pointer, e.Rank, e.Group = l.at+sdk.Itoa(at), int64(n+1), l.group
		if l.kind == "fact" {
			e.SourceEventIDs = f.sources[x.uuid]
		}
		list = append(list, e)
	})
	return list
}
