package mem0

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// list is GET /memories.
func (s *OSS) list(r *http.Request) (any, error) {
	q := r.URL.Query()
	top := 20
	if text := q.Get("top_k"); text != "" {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return nil, invalidQuery("top_k", "int_parsing",
				"Input should be a valid integer, unable to parse string as an integer", text, nil)
		case n > 1000:
			return nil, invalidQuery("top_k", "less_than_equal", "Input should be less than or equal to 1000", text,
				map[string]any{"le": 1000})
		case n < 0:
			return nil, invalidQuery("top_k", "greater_than_equal", "Input should be greater than or equal to 0", text,
				map[string]any{"ge": 0})
		}
		top = max(1, n) // the real one answers one row for 0
	}
	ids, err := idsOf(q)
	if err != nil {
		return nil, upstream("unknown")
	}
	if len(ids) == 0 {
		if err := s.admin(r, "Admin role required to list all memories."); err != nil {
			return nil, err
		}
	}
	if err := s.database(); err != nil {
		return nil, err
	}
	s.touched = true
	items := []map[string]any{}
	for _, found := range s.rows {
		switch {
		case len(items) == top:
		case len(ids) == 0:
			items = append(items, found.wholeItem())
		case found.hasIDs(ids) || s.faults.Leak:
			if q.Get("show_expired") == "true" || !found.expired(s.now()) {
				items = append(items, found.item(nil))
			}
		}
	}
	return map[string]any{"results": items}, nil
}

func invalidQuery(field, kind, message, input string, ctx map[string]any) *problem {
	e := map[string]any{"type": kind, "loc": []string{"query", field}, "msg": message, "input": input}
	if ctx != nil {
		e["ctx"] = ctx
	}
	return refuse(422, []any{e})
}

// idsOf reads the ids of a query string. Empty ones are dropped, as the real one does.
func idsOf(q map[string][]string) (map[string]string, error) {
	ids := map[string]string{}
	for _, name := range []string{"user_id", "agent_id", "run_id"} {
		if len(q[name]) == 0 || q[name][0] == "" {
			continue
		}
		id, err := trimID(name, q[name][0])
		if err != nil {
			return nil, err
		}
		ids[name] = id
	}
	return ids, nil
}

// trimID checks an id as mem0 does.
func trimID(name, id string) (string, error) {
	id = strings.TrimSpace(id)
	if id == "" {
		return "", refuse(400, "Invalid "+name+": cannot be empty or whitespace-only. Provide a valid identifier.")
	}
	if len(strings.Fields(id)) > 1 {
		return "", refuse(400, "Invalid "+name+": cannot contain whitespace. Provide a valid identifier without "+
			"spaces.")
	}
	return id, nil
}

func (s *OSS) deleteScope(r *http.Request) (any, error) {
	if err := s.admin(r, "Admin role required."); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	if q.Get("user_id")+q.Get("run_id")+q.Get("agent_id") == "" {
		return nil, refuse(400, "At least one identifier is required.")
	}
	ids, err := idsOf(q)
	if err != nil {
		return nil, upstream("unknown")
	}
	before := len(s.rows)
	s.removeRows(func(found *row) bool { return found.hasIDs(ids) })
	if s.faults.DeleteFails {
		return nil, upstream("unknown")
	}
	answer := message("All relevant memories deleted")
	if buffer := q.Get("buffer"); buffer != "" && s.options.Gateway != nil {
		answer["deleted"], answer["buffer_rows"] = before-len(s.rows), nil
		if buffer == "true" {
			answer["buffer_rows"] = s.clearBuffer(ids)
		}
	}
	return answer, nil
}

func (s *OSS) removeRows(which func(*row) bool) {
	left := s.faults.DeleteAtMost
	s.rows = slices.DeleteFunc(s.rows, func(found *row) bool {
		if !which(found) || s.faults.DeleteAtMost > 0 && left == 0 {
			return false
		}
		left--
		s.remember(found.id, found.text, nil, "DELETE", found)
		return true
	})
}

func (s *OSS) find(id string) *row {
	for _, r := range s.rows {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (s *OSS) get(id string) (any, error) {
	if err := s.database(); err != nil {
		return nil, err
	}
	if !isUUID(id) {
		return nil, upstream("unknown")
	}
	if found := s.find(id); found != nil {
		item := found.item(nil)
		item["score"] = nil
		return item, nil
	}
	return nil, nil
}

func (s *OSS) historyOf(id string) any {
	if list := s.history[id]; list != nil {
		return list
	}
	return []any{}
}

func (s *OSS) update(id string, body []byte) (any, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, notJSON(body)
	}
	var text *string
	if raw, ok := fields["text"]; ok && json.Unmarshal(raw, &text) != nil {
		return nil, wrongType("text", raw)
	}
	var metadata map[string]any
	_ = json.Unmarshal(fields["metadata"], &metadata)
	expiration, dated := fields["expiration_date"]
	switch {
	case text == nil && metadata == nil && !dated:
		return nil, refuse(400, "At least one of text, metadata, or expiration_date must be provided.")
	case text != nil && *text == "":
		return nil, upstream("provider_bad_request")
	case !isUUID(id):
		return nil, upstream("unknown")
	}
	found := s.find(id)
	if found == nil {
		return nil, refuse(404, "Memory with id "+id+" not found. Please provide a valid 'memory_id'")
	}
	old := found.text
	if text != nil {
		found.setText(*text)
	}
	for key, value := range metadata {
		if !slices.Contains([]string{"user_id", "agent_id", "run_id", "actor_id", "created_at"}, key) {
			found.metadata[key] = value
		}
	}
	if dated {
		found.expiration, found.cleared = "", string(expiration) == "null"
		_ = json.Unmarshal(expiration, &found.expiration)
	}
	found.updated = s.now().UTC().Format(stamp)
	s.remember(id, old, &found.text, "UPDATE", found)
	return message("Memory updated successfully!"), nil
}

func (s *OSS) delete(id string) (any, error) {
	if !isUUID(id) {
		return nil, upstream("unknown")
	}
	if s.find(id) == nil {
		return nil, refuse(404, "Memory with id "+id+" not found")
	}
	s.removeRows(func(r *row) bool { return r.id == id })
	return message("Memory deleted successfully"), nil
}

// remember writes history, which survives the memory.
func (s *OSS) remember(id, old string, text *string, event string, r *row) {
	var after any
	if text != nil {
		after = *text
	}
	entry := map[string]any{"id": s.id(), "memory_id": id, "old_memory": old, "new_memory": after, "event": event,
		"created_at": r.created,
		"updated_at": r.updated, "is_deleted": event == "DELETE", "actor_id": nil, "role": nil}
	if event == "ADD" {
		entry["old_memory"] = nil
		if r.role == "" {
			entry["updated_at"] = nil
		}
	}
	if r.role != "" {
		entry["role"] = r.role
	}
	s.history[id] = append(s.history[id], entry)
}
