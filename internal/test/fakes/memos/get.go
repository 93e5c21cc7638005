package memos

import (
	"slices"
)

// groupSwitches are the groups of a list and what switches them off.
var groupSwitches = []struct{ name, on string }{{"text_mem", ""}, {"pref_mem", "include_preference"},
	{"tool_mem", "include_tool_memory"}, {"skill_mem", "include_skill_memory"}}

func (s *Server) getMemory(in object) (string, any, *problem) {
	if text(in, "mem_cube_id") == "" {
		return "", nil, invalid("/product/get_memory", "mem_cube_id", "missing", "Field required")
	}
	f, p := readFilter(in)
	if p != nil {
		return "", nil, p
	}
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	if s.faults.ListRaces > 0 {
		s.faults.ListRaces--
		return "", nil, &problem{status: 500, message: "'id'"}
	}
	if s.faults.FiltersDropped {
		f = filter{}
	}
	cube := text(in, "mem_cube_id")
	data := object{}
	for _, g := range groupSwitches {
		if g.on != "" && !truth(in, g.on, true) {
			data[g.name] = []any{}
			continue
		}
		var nodes []*node
		for _, n := range slices.Backward(s.nodes) {
			if s.visible(n, cube) && n.delete == "" && groupOf(n.kind) == g.name && f.matches(n) {
				nodes = append(nodes, n)
			}
		}
		all := len(nodes)
		if size := number(in, "page_size", 0); size > 0 {
			from := min(all, size*(max(1, number(in, "page", 1))-1))
			nodes = nodes[from:min(all, from+size)]
		}
		items := []any{}
		for _, n := range nodes {
			items = append(items, object{"id": n.id, "memory": n.memory, "metadata": s.listed(n)})
		}
		data[g.name] = []any{object{"cube_id": cube, "memories": items, "total_nodes": all}}
	}
	return "Memories retrieved successfully", data, nil
}

// listed is a node's metadata in a list: on Neo4j sources are plain texts there, on Community the vector is left in it.
func (s *Server) listed(n *node) object {
	meta := s.properties(n)
	sources := []any{}
	for _, one := range n.sources {
		if s.options.Flavour == Community {
			sources = append(sources, one)
		} else {
			sources = append(sources, coded(one, n.nested))
		}
	}
	meta["sources"] = sources
	if s.options.Flavour == Community && n.vector != nil {
		meta["embedding"] = n.vector
	}
	return meta
}

func (s *Server) getAll(in object) (string, any, *problem) {
	cubes := texts(in, "mem_cube_ids")
	cube := text(in, "user_id")
	if len(cubes) > 0 {
		cube = cubes[0]
	}
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	items := []any{}
	for _, n := range s.nodes {
		if s.visible(n, cube) && n.delete == "" && groupOf(n.kind) == text(in, "memory_type") {
			items = append(items, object{"id": n.id, "memory": n.memory, "metadata": s.listed(n)})
		}
	}
	return "Memories retrieved successfully", []any{object{"cube_id": cube, "memories": items}}, nil
}

// byID ignores cubes. An unknown id, and a database that is down, are 200 and null.
func (s *Server) byID(id string) (string, any, *problem) {
	if i := s.index(id); i >= 0 && !s.faults.DatabaseDown {
		n := s.nodes[i]
		return "Memory retrieved successfully", object{"id": n.id, "memory": n.memory, "metadata": s.full(n)}, nil
	}
	return "Memory with ID " + id + " not found", nil, nil
}

func (s *Server) index(id string) int {
	return slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == id && n.delete == "" })
}

func (s *Server) owners(in object) (string, any, *problem) {
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	data := object{}
	for _, id := range texts(in, "memory_ids") {
		data[id] = nil
		if i := s.index(id); i >= 0 {
			data[id] = s.nodes[i].cube
		}
	}
	return "Successfully", data, nil
}

func (s *Server) exist(in object) (string, any, *problem) {
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	cube := text(in, "mem_cube_id")
	return "Successfully", object{cube: slices.ContainsFunc(s.nodes, func(n *node) bool { return n.cube == cube })}, nil
}
