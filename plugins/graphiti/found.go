package main

import (
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

// found is a retrieval's answers, read.
type found struct {
	raw abi.RawResult
	// lists are what was found, in the backend's order.
	lists []hits
	// limit is how many items the search was asked for: "native" where the budget's max_items went into it, or "fixed".
	limit    int64
	limitHow string
	// sources are the ids of the events that a fact came from, by its uuid: from Neo4j, or the gateway.
	sources map[string][]string
}

// hits is one list of an answer.
type hits struct {
	// key is its name there, at its place in raw, as a JSON Pointer up to the item's number.
	key, at string
	// kind is fact, entity, episode or community; group is the evidence's.
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

// each gives the items in the backend's order, numbered from 0.
func (f *found) each(do func(n int, l *hits, at int, x *item)) {
	n := 0
	for i := range f.lists {
		l := &f.lists[i]
		for j := range l.items {
			do(n, l, j, &l.items[j])
			n++
		}
	}
}

// add reads one answer and keeps it.
func (f *found) add(route string, body []byte) (err error) {
	switch route {
	case routeRESTSearch, routeMCPSearch:
		err = f.addList(route, body, hits{key: "facts", kind: "fact"})
	case routeMCPNodes:
		err = f.addList(route, body, hits{key: "nodes", kind: "entity", group: "entities"})
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
func (f *found) addList(route string, body []byte, l hits) (err error) {
	l.at = f.pointerTo(l.key)
	l.items, err = itemsIn(route, l.key, body)
	f.lists = append(f.lists, l)
	return err
}

// pointerTo is where a list of the next call's answer is in raw.
func (f *found) pointerTo(key string) string {
	return "/calls/" + sdk.Itoa(len(f.raw.Calls)) + "/body/" + key + "/"
}

// addCore reads the answer of the gateway's search: four lists of items, four of scores, and which of them belong
// together.
func (f *found) addCore(body []byte) error {
	lists := [...]hits{{key: "edges", kind: "fact"}, {key: "nodes", kind: "entity", group: "entities"},
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

// addEpisodes reads the episodes that the facts came from, which core looks up: their names are the events' ids.
func (f *found) addEpisodes(body []byte) error {
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

// addRows reads the events that the facts came from as Neo4j answers them: [[fact, name], ...].
func (f *found) addRows(body []byte) error {
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

func (f *found) addSource(fact, name string) {
	if f.sources == nil {
		f.sources = map[string][]string{}
	}
	if name != "" {
		f.sources[fact] = append(f.sources[fact], name)
	}
}

// evidence points at the items in the backend's order, as many as the budget takes.
func (f *found) evidence(budget abi.ContextBudget) []abi.Evidence {
	most := f.count()
	if budget.MaxItems != nil {
		most = int(min(int64(most), max(0, *budget.MaxItems)))
	}
	var list []abi.Evidence
	f.each(func(n int, l *hits, at int, x *item) {
		if n >= most {
			return
		}
		e := x.evidence(l.kind)
		e.Pointer, e.Rank, e.Group = l.at+sdk.Itoa(at), int64(n+1), l.group
		if l.kind == "fact" {
			e.SourceEventIDs = f.sources[x.uuid]
		}
		list = append(list, e)
	})
	return list
}
