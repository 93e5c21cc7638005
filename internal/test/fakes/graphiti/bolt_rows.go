package graphiti

import "slices"

// Rows that several statements answer.

func (p params) forgotten(episode string) bool { return slices.Contains(p.texts("episodes"), episode) }

// drop calls done for a group's objects of a kind, up to the limit, and returns the UUIDs for which done reported true.
func (s *Server) drop(p params, kind string, done func(uuid string) bool) (string, [][]any) {
	var uuids []string
	switch kind {
	case "episode":
		for _, e := range s.graph.episodes {
			if e.group == p.gid() {
				uuids = append(uuids, e.uuid)
			}
		}
	case "entity":
		for _, e := range s.graph.entities {
			if e.group == p.gid() {
				uuids = append(uuids, e.uuid)
			}
		}
	default:
		for _, f := range s.factsOf(p, nil) {
			uuids = append(uuids, f.uuid)
		}
	}
	var rows [][]any
	for _, uuid := range uuids {
		if len(rows) < int(p.whole("limit")) && done(uuid) {
			rows = append(rows, []any{uuid})
		}
	}
	return "uuid", rows
}

func (p params) listed(list []*entity) [][]any {
	var rows [][]any
	for _, e := range list {
		if e.group == p.gid() && e.uuid > p.text("after") {
			rows = append(rows, []any{e.uuid, e.name, optional(e.summary)})
		}
	}
	return p.limit(byColumns(rows, 0))
}
