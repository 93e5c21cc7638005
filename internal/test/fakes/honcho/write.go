package honcho

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/memhost/memhost/internal/test/fakes/embed"
	"github.com/memhost/memhost/internal/text/tokens"
)

// counter is Honcho's tokenizer.
var counter = sync.OnceValue(func() tokens.Counter {
	c, err := tokens.New("o200k_base")
	if err != nil {
		panic(err) // the encoding is compiled in
	}
	return c
})

func count(text string) int64 { return counter().Count([]byte(text)) }

const maxContent = 25_000

// createMessages stores all or nothing. Queue rows are inserted after the response.
func (q *request) createMessages() answer {
	list, isList := q.body["messages"].([]any)
	switch {
	case !isList || len(list) == 0:
		return wrong("too_short", "List should have at least 1 item after validation, not 0", list,
			map[string]any{"field_type": "List", "min_length": 1, "actual_length": 0}, "body", "messages")
	case len(list) > 100:
		return wrong("too_long", "List should have at most 100 items after validation, not "+itoa(len(list)), nil,
			map[string]any{"field_type": "List", "max_length": 100, "actual_length": len(list)}, "body", "messages")
	}
	var made []*message
	for i, v := range list {
		m, a := q.checkMessage(i, v)
		if a != nil {
			return *a
		}
		made = append(made, m)
	}
	for _, m := range made {
		if !idPattern.MatchString(m.peer) {
			return refuse(422, "Peer name(s) ['%s'] must match pattern ^[a-zA-Z0-9_-]+$", m.peer)
		}
		for _, token := range []string{"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"} {
			if strings.Contains(m.content, token) {
				return unexpected // the embedding client's tokenizer
			}
		}
	}
	id := q.path("s")
	switch {
	case !idPattern.MatchString(id) || q.options.Mood.LockBusy:
		return unexpected
	case q.stale(q.path("w")):
		return refuse(409, "Unable to create or get session: %s", id)
	}
	w := q.makeWorkspace(q.path("w"))
	x, _ := q.makeSession(w, id)
	if !x.active {
		return refuse(404, "Session %s not found in workspace %s", id, w.id)
	}
	created := []any{}
	for _, m := range made {
		p, _ := q.makePeer(w, m.peer)
		x.join(p.id)
		x.said++
		m.id, m.session, m.tokens, m.vector = q.id(), id, count(m.content), embed.Text(m.content)
		w.messages = append(w.messages, m)
		q.enqueue(w, x, p, m)
		j := m.json(w.id)
		if m.echo != "" {
			j["created_at"] = m.echo
		}
		created = append(created, j)
	}
	return answer{201, created}
}

func (q *request) checkMessage(i int, v any) (*message, *answer) {
	in, isObject := v.(map[string]any)
	bad := func(a answer) (*message, *answer) { return nil, &a }
	if !isObject {
		return bad(wrong("model_type", "Input should be an object", v, nil, "body", "messages", i))
	}
	content, isText := in["content"].(string)
	author, isName := in["peer_id"].(string)
	switch {
	case !isText:
		return bad(wrong("string_type", "Input should be a valid string", in["content"], nil, "body", "messages", i,
			"content"))
	case !isName:
		return bad(wrong("string_type", "Input should be a valid string", in["peer_id"], nil, "body", "messages", i,
			"peer_id"))
	case utf8.RuneCountInString(content) > maxContent:
		return bad(wrong("string_too_long", "String should have at most 25000 characters", content,
			map[string]any{"max_length": maxContent}, "body", "messages", i, "content"))
	case depth(in["metadata"]) > 5:
		return bad(wrong("value_error", "Value error, Metadata nesting exceeds maximum depth of 5", in["metadata"],
			map[string]any{"error": map[string]any{}}, "body", "messages", i, "metadata"))
	}
	for _, token := range []string{"<|endoftext|>", "<|endofprompt|>"} {
		if strings.Contains(content, token) {
			return bad(wrong("value_error", "Value error, Encountered text corresponding to disallowed special token "+
				"'"+token+"'.", in, map[string]any{"error": map[string]any{}}, "body", "messages", i))
		}
	}
	m := &message{peer: author, content: strings.ReplaceAll(content, "\x00", ""),
		metadata: withoutNUL(clone(in["metadata"])), createdAt: q.now}
	if given, _ := in["created_at"].(string); given != "" {
		at, err := time.Parse(time.RFC3339Nano, given)
		if err != nil {
			if at, err = time.Parse("2006-01-02T15:04:05", given); err != nil {
				return bad(wrong("datetime_from_date_parsing", "Input should be a valid datetime", given, nil, "body",
					"messages", i, "created_at"))
			}
		}
		m.createdAt, m.echo = at.Truncate(time.Microsecond), given
		if dot := strings.IndexByte(given, '.'); dot > 0 && len(given) > dot+8 {
			m.echo = stamp(m.createdAt) // beyond microseconds
		}
	}
	return m, nil
}

// depth counts objects, the outermost too; it does not look into lists.
func depth(v any) int {
	object, isObject := v.(map[string]any)
	if !isObject {
		return 0
	}
	most := 0
	for _, inner := range object {
		most = max(most, depth(inner))
	}
	return most + 1
}

func withoutNUL(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if text, isText := v.(string); isText {
			v = strings.ReplaceAll(text, "\x00", "")
		}
		out[strings.ReplaceAll(k, "\x00", "")] = v
	}
	return out
}

func (q *request) messagesOf(session string) (all []*message) {
	if w := q.workspaces[q.path("w")]; w != nil {
		for _, m := range w.messages {
			if m.session == session {
				all = append(all, m)
			}
		}
	}
	return all
}

func (q *request) filterMessages(all []*message) ([]*message, *answer) {
	return filtered(all, q.body["filters"], "Message",
		[]string{"workspace_id", "session_id", "peer_id", "token_count", "created_at"},
		func(m *message) map[string]any {
			return map[string]any{"session_id": m.session, "peer_id": m.peer, "token_count": int(m.tokens),
				"created_at": m.createdAt, "metadata": m.metadata}
		})
}

func (q *request) listMessages() answer {
	found, bad := q.filterMessages(q.messagesOf(q.path("s")))
	if bad != nil {
		return *bad
	}
	return paged(q, found, func(m *message) any { return m.json(q.path("w")) })
}

func (q *request) getMessage() answer {
	for _, m := range q.messagesOf(q.path("s")) {
		if m.id == q.path("m") {
			return ok(m.json(q.path("w")))
		}
	}
	return refuse(404, "Message with ID %s not found", q.path("m"))
}

func (q *request) putMessage() answer {
	for _, m := range q.messagesOf(q.path("s")) {
		if m.id == q.path("m") {
			m.metadata = clone(q.body["metadata"])
			return ok(m.json(q.path("w")))
		}
	}
	return refuse(404, "Message with ID %s not found", q.path("m"))
}

func (q *request) createConclusions() answer {
	list, _ := q.body["conclusions"].([]any)
	w := q.workspaces[q.path("w")]
	if q.options.Mood.EmbedDown {
		return unexpected
	}
	created := []any{}
	for _, v := range list {
		in, _ := v.(map[string]any)
		c := &conclusion{level: "explicit", createdAt: q.now, factAt: q.now, timesDerived: 1}
		c.content, _ = in["content"].(string)
		c.observer, _ = in["observer_id"].(string)
		c.observed, _ = in["observed_id"].(string)
		c.session, _ = in["session_id"].(string)
		for _, p := range []string{c.observer, c.observed} {
			if w.peer(p) == nil {
				return refuse(404, "Peer %s not found in workspace %s", p, q.path("w"))
			}
		}
		c.id, c.vector = q.id(), embed.Text(c.content)
		w.conclusions = append(w.conclusions, c)
		created = append(created, c.json())
	}
	return answer{201, created}
}

func (q *request) filterConclusions(filters any) ([]*conclusion, *answer) {
	var all []*conclusion
	if w := q.workspaces[q.path("w")]; w != nil {
		all = slices.Clone(w.conclusions)
	}
	slices.Reverse(all) // newest first
	known := []string{"id", "observer_id", "observed_id", "observer", "observed", "session_id", "workspace_id", "level",
		"created_at", "times_derived", "source_ids"}
	return filtered(all, filters, "Document", known, func(c *conclusion) map[string]any {
		return map[string]any{"id": c.id, "observer_id": c.observer, "observer": c.observer, "observed_id": c.observed,
			"observed": c.observed, "session_id": c.session,
			"level": c.level, "created_at": c.createdAt, "times_derived": c.timesDerived, "source_ids": c.sources}
	})
}

func (q *request) listConclusions() answer {
	found, bad := q.filterConclusions(q.body["filters"])
	if bad != nil {
		return *bad
	}
	return paged(q, found, func(c *conclusion) any { return c.json() })
}

func (q *request) queryConclusions() answer {
	f, _ := q.body["filters"].(map[string]any)
	if f["observer_id"] == nil && f["observer"] == nil || f["observed_id"] == nil && f["observed"] == nil {
		return refuse(422, "observer and observed must be specified for semantic search. Pass them inside the "+
			"'filters' object, "+
			"e.g. {\"query\": \"...\", \"filters\": {\"observer\": \"alice\", \"observed\": \"bob\"}}. Both "+
			"'observer'/'observed' and 'observer_id'/'observed_id' are accepted.")
	}
	if q.options.Mood.EmbedDown {
		return unexpected
	}
	found, bad := q.filterConclusions(f)
	if bad != nil {
		return *bad
	}
	query := q.text("query")
	found = nearest(query, found, func(c *conclusion) []float32 { return c.vector })
	if limit, given := q.body["distance"].(float64); given {
		v := embed.Text(query)
		found = slices.DeleteFunc(found, func(c *conclusion) bool { return 1-embed.Cosine(v, c.vector) > limit })
	}
	listed := []any{}
	for i, c := range found {
		if i < q.whole("top_k", 10) {
			listed = append(listed, c.json())
		}
	}
	return ok(listed)
}

func (q *request) whole(name string, otherwise int) int {
	if n, given := q.body[name].(float64); given {
		return int(n)
	}
	return otherwise
}

func (q *request) deleteConclusion() answer {
	w, id := q.workspaces[q.path("w")], q.path("c")
	if w != nil {
		before := len(w.conclusions)
		if w.conclusions = slices.DeleteFunc(w.conclusions, func(c *conclusion) bool {
			return c.id == id
		}); len(w.conclusions) < before {
			return answer{204, nil}
		}
	}
	return refuse(404, "Document %s not found or does not belong to workspace %s", id, q.path("w"))
}
