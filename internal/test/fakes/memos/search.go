package memos

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// rankedMemory is a candidate with its nearness.
type rankedMemory struct {
	*node
	near float64
}

func (s *Server) search(in object) (string, any, *problem) {
	const path, message = "/product/search", "Search completed successfully"
	mode := text(in, "mode")
	switch {
	case !has(in, "query"):
		return "", nil, invalid(path, "query", "missing", "Field required")
	case !has(in, "user_id"):
		return "", nil, invalid(path, "user_id", "missing", "Field required")
	case number(in, "top_k", 10) < 1:
		return "", nil, invalid(path, "top_k", "greater_than_equal", "Input should be greater than or equal to 1")
	case mode != "" && mode != "fast" && mode != "fine" && mode != "mixture":
		return "", nil, invalid(path, "mode", "enum", "Input should be 'fast', 'fine' or 'mixture'")
	}
	f, p := readFilter(in)
	if p != nil {
		return "", nil, p
	}
	cubes := texts(in, "readable_cube_ids")
	if len(cubes) == 0 {
		cubes = []string{text(in, "user_id")}
	}
	data := object{"text_mem": []any{}, "act_mem": []any{}, "para_mem": []any{}, "pref_mem": []any{},
		"tool_mem": []any{}, "skill_mem": []any{}, "pref_note": ""}
	for _, cube := range cubes {
		for name, group := range s.searchCube(in, cube, mode, f) {
			data[name] = append(data[name].([]any), group)
		}
	}
	return message, data, nil
}

// searchCube is one cube's groups. With the database or the embedder down they are empty, and no error is reported.
func (s *Server) searchCube(in object, cube, mode string, f filter) map[string]any {
	all := s.rank(in, bucket(cube), f)
	if mode == "mixture" && !s.options.NoRedis {
		all["pref_mem"], all["skill_mem"] = nil, nil
	}
	seen := map[string]bool{}
	groups := map[string]any{}
	for _, g := range []struct {
		name, key, on string
		most          int
	}{{"text_mem", "top_k", "", 10}, {"pref_mem", "pref_top_k", "include_preference", 6},
		{"tool_mem", "tool_mem_top_k", "search_tool_memory", 6},
		{"skill_mem", "skill_mem_top_k", "include_skill_memory", 3}} {
		if g.on != "" && !truth(in, g.on, true) || mode == "fine" && g.name != "text_mem" {
			all[g.name] = nil
		}
		items := []any{}
		for _, r := range all[g.name] {
			if text(in, "dedup") != "no" && g.name != "tool_mem" && seen[r.memory] {
				continue
			}
			if len(items) == number(in, g.key, g.most) {
				break
			}
			seen[r.memory] = true
			items = append(items, s.found(r, mode))
		}
		if mode == "mixture" && g.name == "text_mem" {
			items = append(items, s.remembered(cube, items)...)
		}
		switch {
		case g.name == "text_mem" && len(items) == 0:
		case g.name == "text_mem":
			groups[g.name] = object{"cube_id": cube, "memories": items}
		default:
			groups[g.name] = object{"cube_id": cube, "memories": items, "total_nodes": len(items)}
		}
	}
	return groups
}

// remembered is the search history of mode mixture: what earlier searches found, whether it still exists or not.
func (s *Server) remembered(cube string, items []any) []any {
	if s.options.NoRedis {
		return nil
	}
	var more []any
	known := map[any]bool{}
	for _, i := range items {
		known[asObject(i)["id"]] = true
	}
	for _, old := range s.history[cube] {
		if !known[old["id"]] {
			known[old["id"]] = true
			more = append(more, old)
		}
	}
	for _, i := range items {
		s.history[cube] = append(s.history[cube], asObject(i))
	}
	return more
}

// rank orders the cube's activated memories by nearness, each group apart. Neo4j filters before it takes the nearest,
// Community behind.
func (s *Server) rank(in object, cube string, f filter) map[string][]rankedMemory {
	groups := map[string][]rankedMemory{}
	if s.faults.DatabaseDown || s.faults.EmbedderDown {
		return groups
	}
	if s.faults.FiltersDropped {
		f = filter{}
	}
	query := embed.Text(text(in, "query"))
	least := 0.45
	if value, ok := in["relativity"].(float64); ok {
		least = value
	}
	for _, n := range s.nodes {
		if !s.visible(n, cube) || n.status != "activated" || n.delete != "" || n.vector == nil {
			continue
		}
		if s.options.Flavour == Neo4j && !f.matches(n) || !ofType(n, text(in, "search_memory_type")) {
			continue
		}
		groups[groupOf(n.kind)] = append(groups[groupOf(n.kind)], rankedMemory{n, embed.Cosine(query, n.vector)})
	}
	for name, list := range groups {
		slices.SortStableFunc(list, func(a, b rankedMemory) int { return cmp.Compare(b.near, a.near) })
		if s.options.Flavour == Community {
			// Qdrant gives three times the wanted number; the graph filters what came.
			list = list[:min(len(list), 3*max(10, number(in, "top_k", 10)))]
			list = slices.DeleteFunc(list, func(r rankedMemory) bool { return !f.matches(r.node) })
		}
		if !truth(in, "rerank", true) || s.faults.RerankerDown {
			for i := range list {
				list[i].near = 0
			}
		}
		if !truth(in, "rerank", true) {
			slices.SortFunc(list, func(a, b rankedMemory) int { return cmp.Compare(a.id, b.id) })
		}
		if least > 0 && (name == "text_mem" || name == "pref_mem") {
			list = slices.DeleteFunc(list, func(r rankedMemory) bool { return r.near < least })
		}
		groups[name] = list
	}
	return groups
}

// ofType reports whether search_memory_type lets a memory through.
func ofType(n *node, wanted string) bool { return wanted == "" || wanted == "All" || n.kind == wanted }

// found is an item of a search.
func (s *Server) found(r rankedMemory, mode string) object {
	id, meta := r.id, s.full(r.node)
	meta["relativity"] = r.near
	switch mode {
	case "fine":
		// A new item, of which only owner, status and the moment of the search are given.
		id = s.newID()
		for key := range meta {
			meta[key] = nil
		}
		meta["user_id"], meta["status"], meta["version"], meta["memory_type"] = r.userID, r.status, 1, "LongTermMemory"
		meta["updated_at"] = s.options.Now().UTC().Format("2006-01-02T15:04:05.000000")
		for _, list := range []string{"evolve_to", "history", "embedding", "usage"} {
			meta[list] = []any{}
		}
	case "mixture":
		meta["sources"] = []any{}
	}
	ref := "[" + id[:8] + "]"
	meta["id"], meta["memory"], meta["ref_id"] = id, r.memory, ref
	return object{"id": id, "memory": r.memory, "ref_id": ref, "metadata": meta}
}

// full is a node's metadata in search and by id: the properties, and null for what it has not.
func (s *Server) full(n *node) object {
	meta := s.properties(n)
	for _, key := range []string{"is_fast", "key", "confidence", "source", "visibility", "info", "internal_info",
		"covered_history"} {
		if _, ok := meta[key]; !ok {
			meta[key] = nil
		}
	}
	meta["embedding"] = []any{}
	sources := []any{}
	for _, one := range n.sources {
		if s.options.Flavour == Community {
			source := object{"doc_path": nil, "file_info": nil, "image_info": nil}
			for key, value := range one {
				source[key] = value
			}
			sources = append(sources, source)
			continue
		}
		sources = append(sources, object{"type": "doc", "role": nil, "chat_time": nil, "message_id": nil,
			"content": coded(one, n.nested), "doc_path": nil,
			"file_info": nil, "image_info": nil})
	}
	meta["sources"] = sources
	return meta
}

// coded is a source as Neo4j keeps it: the JSON text of a JSON text; after async once more inside a doc.
func coded(source object, nested int) string {
	data, _ := json.Marshal(source)
	twice, _ := json.Marshal(string(data))
	for range nested {
		data, _ = json.Marshal(object{"type": "doc", "content": string(twice)})
		twice, _ = json.Marshal(string(data))
	}
	return string(twice)
}

// properties are a node as the graph has it.
func (s *Server) properties(n *node) object {
	meta := object{"delete_time": n.delete, "delete_record_id": n.deleteRecord, "usage": []any{},
		"created_at": n.created, "updated_at": n.updated, "type": "fact",
		"file_ids": []any{}, "key": firstLine(n.memory), "confidence": 0.99, "session_id": n.sessionID,
		"memory_type": n.kind, "evolve_to": []any{},
		"history": []any{}, "version": 1, "tags": n.tags, "working_binding": n.id, "user_id": n.userID,
		"background": n.memory, "status": n.status}
	if n.fast {
		meta["is_fast"] = true
	}
	if n.covered != "" {
		meta["covered_history"] = n.covered
	}
	if s.options.Flavour == Community {
		meta["vector_sync"] = "success"
		if n.vector == nil {
			meta["vector_sync"] = "skipped"
		}
	}
	if n.kind == "PreferenceMemory" {
		meta["type"] = "chat"
		delete(meta, "key")
		delete(meta, "confidence")
	}
	for key, value := range n.labels {
		meta[key] = value
	}
	return meta
}
