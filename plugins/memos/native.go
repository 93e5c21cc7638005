package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// queryNames are the native queries, which are all reads. The chat and suggestion routes are not included, because they
// call an LLM and partly write.
var queryNames = []string{"search", "get_memory", "get_memory_dashboard", "get_all", "exist_mem_cube_id", "scheduler_status",
	"scheduler_allstatus"}

// nativeQuery hands on one of the server's own reads, for the scope's cube alone.
//
//	search                            query, and the fields of searchFields
//	get_memory, get_memory_dashboard  filter?, page?, page_size?
//	get_all                           memory_type? (text_mem), search_query?
//	exist_mem_cube_id, scheduler_status
//	scheduler_allstatus               counters of the whole server, no contents
//
// Errors: unsupported for another name, invalid_argument for a filter that the server would misread.
func nativeQuery(b *backend, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	var a *answer
	var err error
	user := abi.QueryParam{Key: "user_id", Value: b.cube}
	switch r.Name {
	case "search":
		a, err = b.querySearch(r.Params)
	case "get_memory", "get_memory_dashboard":
		a, err = b.queryMemories(map[string]string{"get_memory": "get_memory",
			"get_memory_dashboard": "dashboard"}[r.Name],
			r.Params)
	case "get_all":
		kind := wire.Text(r.Params["memory_type"])
		if kind == "" {
			kind = "text_mem"
		}
		a, err = b.post("subgraph", wire.Object{"user_id", b.cube, "mem_cube_ids", []string{b.cube},
			"memory_type", kind, "search_query", wire.Some(wire.Text(r.Params["search_query"]))})
	case "exist_mem_cube_id":
		a, err = b.post("exist", wire.Object{"mem_cube_id", b.cube})
	case "scheduler_status":
		a, err = b.get("status", user)
	case "scheduler_allstatus":
		a, err = b.get("allstatus")
	default:
		err = unknownName("native query", r.Name, queryNames)
	}
	if err != nil {
		return nil, err
	}
	return &abi.NativeQueryResult{Name: r.Name, Result: a.body, Trace: b.trace(r.Name)}, nil
}

// searchFields are the fields of APISearchRequest that a caller may set in addition to query and filter. The others
// name cubes and users, call a model, write, or have no effect (threshold).
var searchFields = []string{"top_k", "pref_top_k", "tool_mem_top_k", "skill_mem_top_k", "include_preference",
	"search_tool_memory", "include_skill_memory", "search_memory_type", "relativity", "dedup", "rerank", "session_id"}

// querySearch runs one search of mode fast with the server's own defaults.
func (b *backend) querySearch(params map[string]abi.Raw) (*answer, error) {
	body := wire.Object{"user_id", b.cube, "readable_cube_ids", []string{b.cube}, "mode", searchFast,
		"internet_search", false}
	for _, name := range abi.SortedKeys(params) {
		value := any(params[name])
		switch {
		case name == "session_id":
			value = sessionOf(wire.Text(params[name]))
		case name == "query" || slices.Contains(searchFields, name):
		case name == "filter":
			if err := checkFilter(params[name]); err != nil {
				return nil, err
			}
		default:
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+name+": unknown").
				WithHint("search takes query, filter, " + strings.Join(searchFields, ", "))
		}
		body = append(body, name, value)
	}
	if wire.Text(params["query"]) == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.query: missing, empty or no text")
	}
	_, a, err := b.memories("search_"+searchFast, body, b.cube)
	return a, err
}

// queryMemories lists the cube with the caller's filter and page.
func (b *backend) queryMemories(route string, params map[string]abi.Raw) (*answer, error) {
	if f := params["filter"]; len(f) > 0 {
		if err := checkFilter(f); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"page", "page_size"} {
		n, err := strconv.ParseInt(string(params[name]), 10, 32)
		if len(params[name]) > 0 && (err != nil || n < 1) {
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+name+": want a number from 1")
		}
	}
	_, a, err := b.memories(route, wire.Object{"mem_cube_id", b.cube, "filter", params["filter"],
		"page", params["page"], "page_size", params["page_size"]}, b.cube)
	return a, err
}

func unknownName(what, name string, known []string) error {
	e := abi.NewError(abi.CodeUnsupported,
		"name: memos has no "+what+" "+strconv.Quote(name)+", only "+strings.Join(known, ", "))
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = "did you mean " + strconv.Quote(near) + "?"
	}
	return e
}

var mutationNames = []string{"delete_memories", "recover"}

// nativeMutation changes what the scope holds.
//
//	delete_memories {ids: [id, ...]}  each must belong to this scope: the server deletes memories of any scope, and
//	                                  reports success for unknown ids
//	recover {}                        undoes the marking of a reset that was interrupted
//
// Out: applied if a check afterwards confirms it, no_change otherwise.
func nativeMutation(b *backend, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	switch r.Name {
	case "delete_memories":
		return b.deleteMemories(r.Params["ids"])
	case "recover":
		return b.recover()
	}
	return nil, unknownName("native mutation", r.Name, mutationNames)
}

func (b *backend) deleteMemories(list abi.Raw) (*abi.MutationReceipt, error) {
	var ids []string
	for _, id := range wire.Items(list) {
		ids = append(ids, wire.Text(id))
	}
	return b.deleteAll(ids)
}

// deleteAll deletes memories after checking that all belong to the scope.
func (b *backend) deleteAll(ids []string) (*abi.MutationReceipt, error) {
	if len(ids) == 0 || slices.Contains(ids, "") {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.ids: want at least one id")
	}
	if err := b.checkOwned(ids...); err != nil {
		return nil, err
	}
	a, err := b.post("delete_memory", wire.Object{"writable_cube_ids", []string{b.cube}, "memory_ids", ids})
	if err != nil {
		return nil, err
	}
	owners, err := b.owners(ids)
	if err != nil {
		return nil, err
	}
	out := &abi.MutationReceipt{Status: "applied", Trace: b.trace("POST /product/delete_memory")}
	for _, id := range ids {
		if owners[id] == "" {
			out.NativeIDs = append(out.NativeIDs, id)
		}
	}
	if left := len(ids) - len(out.NativeIDs); left > 0 {
		return nil, failure(abi.CodeBackend, "delete_memory", 200,
			"MemOS still has "+sdk.Itoa(left)+" of the memories that were to be deleted", a.body).
			WithReason("not_deleted")
	}
	return out, nil
}

func (b *backend) recover() (*abi.MutationReceipt, error) {
	before, err := b.count(filter{})
	if err != nil {
		return nil, err
	}
	if _, err := b.post("recover", wire.Object{"mem_cube_id", b.cube,
		"delete_record_id", recordOf(b.cube)}); err != nil {
		return nil, err
	}
	after, err := b.count(filter{})
	out := &abi.MutationReceipt{Status: "no_change", Trace: b.trace("POST /product/recover_memory_by_record_id")}
	if after != before {
		out.Status = "applied"
	}
	return out, err
}
