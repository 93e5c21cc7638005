package memos

import (
	"slices"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// feedback corrects a memory: the old one is archived, the new one is written twice under one id. Every failure is an
// empty record.
func (s *Server) feedback(in object) (string, any, *problem) {
	const path, message = "/product/feedback", "Memory feedback successfully"
	for _, key := range []string{"history", "feedback_content"} {
		if !has(in, key) {
			return "", nil, invalid(path, key, "missing", "Field required")
		}
	}
	if text(in, "async_mode") != "sync" {
		s.queue(batch{user: text(in, "user_id"), cube: text(in, "user_id"), info: object{}, labels: object{}},
			text(in, "task_id"), nil)
		return message, []any{[]any{}}, nil
	}
	cubes := texts(in, "writable_cube_ids")
	if len(cubes) == 0 {
		cubes = []string{text(in, "user_id")}
	}
	record := object{"add": []any{}, "update": []any{}}
	answer := []any{object{"answer": "", "record": record}}
	if s.faults.DatabaseDown || s.faults.LLMDown || s.faults.LLMProse || s.faults.EmbedderDown {
		return message, answer, nil
	}
	for _, id := range texts(in, "retrieved_memory_ids") {
		if s.index(id) < 0 {
			return message, answer, nil
		}
	}
	b := batch{cube: cubes[0], user: text(in, "user_id"), session: text(in, "session_id"), info: asObject(in["info"]),
		labels: object{}}
	if b.info == nil {
		b.info = object{}
	}
	fact := s.node(b, text(in, "feedback_content"), "UserMemory", nil)
	if old := s.corrected(in, b.cube, fact.memory); old != nil {
		old.status, fact.covered = "archived", old.id
		record["update"] = []any{object{"id": fact.id, "text": fact.memory, "source_doc_id": nil, "archived_id": old.id,
			"origin_memory": old.memory}}
	} else {
		record["add"] = []any{object{"id": fact.id, "text": fact.memory, "source_doc_id": nil}}
	}
	twin := *fact
	twin.kind = "WorkingMemory"
	s.store(b, []*node{&twin, fact})
	return message, answer, nil
}

// corrected is the memory that feedback is about: the nearest of those it names, or of all. Raw windows are left alone.
func (s *Server) corrected(in object, cube, correction string) *node {
	var best *node
	named, nearest := texts(in, "retrieved_memory_ids"), 0.3
	for _, n := range s.nodes {
		if n.cube != cube || n.status != "activated" || n.fast || groupOf(n.kind) != "text_mem" || n.vector == nil ||
			len(named) > 0 && !slices.Contains(named, n.id) {
			continue
		}
		if near := embed.Cosine(embed.Text(correction), n.vector); near > nearest {
			best, nearest = n, near
		}
	}
	return best
}
