package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// queryNames are the native queries. Each reads; the chat and suggestion routes call an LLM and partly write, so they are not among them.
var queryNames = []string{"get_memory", "get_memory_dashboard", "get_all", "exist_mem_cube_id", "scheduler_status", "scheduler_allstatus"}

// nativeQuery hands on one of the server's own reads, for the scope's cube alone.
//
//	get_memory, get_memory_dashboard  filter?, page?, page_size?
//	get_all                           memory_type? (text_mem), search_query?
//	exist_mem_cube_id, scheduler_status
//	scheduler_allstatus               counters of the whole server, no contents
//
// Errors: unsupported for another name, invalid_argument for a filter that the server would misread.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	cube := s.cubeOf(c)
	var a *answer
	switch r.Name {
	case "get_memory", "get_memory_dashboard":
		route := "get_memory"
		if r.Name != route {
			route = "dashboard"
		}
		var body []byte
		if body, err = queryBody(cube, r.Params); err != nil {
			return nil, err
		}
		if a, err = s.post(c, route, body); err == nil {
			_, err = readGroups(route, a, cube)
		}
	case "get_all":
		a, err = s.post(c, "subgraph", object(func(e *jsontext.Encoder) {
			putText(e, "user_id", cube)
			putTexts(e, "mem_cube_ids", cube)
			kind := textOf(jsontext.Raw(r.Params["memory_type"]))
			if kind == "" {
				kind = "text_mem"
			}
			putText(e, "memory_type", kind)
			if words := textOf(jsontext.Raw(r.Params["search_query"])); words != "" {
				putText(e, "search_query", words)
			}
		}))
	case "exist_mem_cube_id":
		a, err = s.post(c, "exist", object(func(e *jsontext.Encoder) { putText(e, "mem_cube_id", cube) }))
	case "scheduler_status":
		a, err = s.get(c, "status", abi.QueryParam{Key: "user_id", Value: cube})
	case "scheduler_allstatus":
		a, err = s.get(c, "allstatus")
	default:
		return nil, unknownName("native query", r.Name, queryNames)
	}
	if err != nil {
		return nil, err
	}
	return &abi.NativeQueryResult{Name: r.Name, Result: abi.Raw(a.body), Trace: s.trace(r.Name)}, nil
}

// queryBody is a listing of the cube with the caller's filter and page.
func queryBody(cube string, params map[string]abi.Raw) ([]byte, error) {
	if f := params["filter"]; len(f) > 0 {
		if err := checkFilter(jsontext.Raw(f)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"page", "page_size"} {
		if p := params[name]; len(p) > 0 {
			if n, err := strconv.ParseInt(string(p), 10, 32); err != nil || n < 1 {
				return nil, abi.NewError(abi.CodeInvalidArgument, "params."+name+": want a number from 1")
			}
		}
	}
	return object(func(e *jsontext.Encoder) {
		putText(e, "mem_cube_id", cube)
		for _, name := range []string{"filter", "page", "page_size"} {
			if p := params[name]; len(p) > 0 {
				e.FieldStart(name)
				e.Raw(jsontext.Raw(p))
			}
		}
	}), nil
}

func unknownName(what, name string, known []string) error {
	e := abi.NewError(abi.CodeUnsupported, "name: memos has no "+what+" "+strconv.Quote(name)+", only "+strings.Join(known, ", "))
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = "did you mean " + strconv.Quote(near) + "?"
	}
	return e
}

var mutationNames = []string{"delete_memories", "recover"}

// nativeMutation changes what the scope holds.
//
//	delete_memories {ids: [id, ...]}  each must be of this scope: the server deletes any id, whoever's it is, and says success for those that nobody has
//	recover {}                        undoes the marking of a reset that was interrupted
//
// Out: applied when a look afterwards sees it, no_change otherwise.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	switch r.Name {
	case "delete_memories":
		return s.deleteMemories(c, jsontext.Raw(r.Params["ids"]))
	case "recover":
		return s.recoverCube(c)
	}
	return nil, unknownName("native mutation", r.Name, mutationNames)
}

func (s *settings) deleteMemories(c *sdk.Call, raw jsontext.Raw) (*abi.MutationReceipt, error) {
	var ids []string
	if len(raw) > 0 && raw.Type() == jsontext.Array {
		ids, _ = readTexts(jsontext.DecodeBytes(raw))
	}
	for _, id := range ids {
		if id == "" {
			ids = nil
			break
		}
	}
	if len(ids) == 0 {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.ids: want at least one id")
	}
	if err := s.own(c, ids); err != nil {
		return nil, err
	}
	a, err := s.post(c, "delete_memory", object(func(e *jsontext.Encoder) {
		putTexts(e, "writable_cube_ids", s.cubeOf(c))
		putTexts(e, "memory_ids", ids...)
	}))
	if err != nil {
		return nil, err
	}
	owners, err := s.owners(c, ids)
	if err != nil {
		return nil, err
	}
	out := &abi.MutationReceipt{Status: "applied", Trace: s.trace("POST /product/delete_memory")}
	for _, id := range ids {
		if owners[id] == "" {
			out.NativeIDs = append(out.NativeIDs, id)
		}
	}
	if len(out.NativeIDs) < len(ids) {
		return nil, failure(abi.CodeBackend, "delete_memory", 200, "MemOS still has "+sdk.Itoa(len(ids)-len(out.NativeIDs))+" of the memories that were to be deleted", a.body).
			WithReason("not_deleted")
	}
	return out, nil
}

func (s *settings) recoverCube(c *sdk.Call) (*abi.MutationReceipt, error) {
	cube := s.cubeOf(c)
	before, _, err := s.list(c, listing{cube: cube, page: 1, size: 1})
	if err != nil {
		return nil, err
	}
	if _, err := s.post(c, "recover", object(func(e *jsontext.Encoder) {
		putText(e, "mem_cube_id", cube)
		putText(e, "delete_record_id", recordOf(cube))
	})); err != nil {
		return nil, err
	}
	after, _, err := s.list(c, listing{cube: cube, page: 1, size: 1})
	if err != nil {
		return nil, err
	}
	out := &abi.MutationReceipt{Status: "no_change", Trace: s.trace("POST /product/recover_memory_by_record_id")}
	if total(after) != total(before) {
		out.Status = "applied"
	}
	return out, nil
}
