package honcho

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// number reads a parameter of a URL's query within its bounds.
func (q *request) number(name string, otherwise, least, most int) (int, *answer) {
	v, given := q.query[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v[0])
	switch {
	case err != nil:
		a := wrong("int_parsing", "Input should be a valid integer, unable to parse string as an integer", v[0], nil,
			"query", name)
		return 0, &a
	case n > most:
		a := wrong("less_than_equal", "Input should be less than or equal to "+itoa(most), v[0],
			map[string]any{"le": most}, "query", name)
		return 0, &a
	case n < least && name != "tokens":
		a := wrong("greater_than_equal", "Input should be greater than or equal to "+itoa(least), v[0],
			map[string]any{"ge": least}, "query", name)
		return 0, &a
	}
	return n, nil
}

func (q *request) param(name string) string {
	if v := q.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// selection is what chooses conclusions for a representation.
type selection struct {
	observer, observed, session string // observer "": everyone
	sessions                    []any  // an allowlist, nil for all
	query                       string
	topK, most                  int
	distance                    float64
}

func (q *request) selectionOf(observer, observed string, most int) (sel selection, bad *answer) {
	sel = selection{observer: observer, observed: observed, query: q.param("search_query"), distance: 2}
	if sel.most, bad = q.number("max_conclusions", most, 1, 100); bad != nil {
		return sel, bad
	}
	if sel.topK, bad = q.number("search_top_k", max(1, sel.most/3), 1, 100); bad != nil {
		return sel, bad
	}
	if d := q.param("search_max_distance"); d != "" {
		sel.distance, _ = strconv.ParseFloat(d, 64)
	}
	return sel, nil
}

// represent is the markdown of a collection: the nearest to the query, filled up with the newest, in order of time.
func (q *request) represent(sel selection) string {
	w := q.workspaces[q.path("w")]
	if w == nil {
		return ""
	}
	var all []*conclusion
	for _, c := range slices.Backward(w.conclusions) {
		limited := sel.session != "" || sel.sessions != nil
		inSession := !limited || c.level == "explicit" && (c.session == sel.session || slices.Contains(sel.sessions, any(c.session)))
		if sel.observer == "" || c.observer == sel.observer && c.observed == sel.observed && inSession {
			all = append(all, c)
		}
	}
	var chosen []*conclusion
	newest := sel.most // how many of the newest are taken
	if sel.query != "" {
		newest = max(0, sel.most-sel.topK) // whether or not the search works
	}
	if sel.query != "" && !q.options.Mood.EmbedDown && !strings.Contains(sel.query, "<|endof") {
		v := embed.Text(sel.query)
		for _, c := range nearest(sel.query, all, func(c *conclusion) []float32 { return c.vector }) {
			if len(chosen) < min(sel.topK, sel.most) && 1-embed.Cosine(v, c.vector) <= sel.distance {
				chosen = append(chosen, c)
			}
		}
	}
	if sel.distance <= 1 {
		newest = 0
	}
	for _, c := range all {
		if len(chosen) < sel.most && newest > 0 && !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
			newest--
		}
	}
	slices.SortStableFunc(chosen, func(a, b *conclusion) int {
		return cmp.Or(a.factAt.Compare(b.factAt), slices.Index(w.conclusions, a)-slices.Index(w.conclusions, b))
	})
	text := ""
	for _, section := range [][2]string{{"explicit", "Explicit"}, {"deductive", "Deductive"}} {
		lines := ""
		for _, c := range chosen {
			if c.level == section[0] {
				lines += "[" + c.factAt.UTC().Format("2006-01-02 15:04:05") + "] " + c.content + "\n"
			}
		}
		if lines != "" {
			text += "## " + section[1] + " Observations\n\n" + lines
		}
	}
	return text
}

func (q *request) noPeer(p string) answer {
	return refuse(404, "Peer %s not found in workspace %s", p, q.path("w"))
}

// card is a peer's card, or the one that the cache still has of a workspace that is gone.
func (q *request) card(p string) (card any, known bool) {
	w := q.workspaces[q.path("w")]
	if w == nil && q.stale(q.path("w")) {
		w = q.gone[q.path("w")].was
	}
	found := w.peer(p)
	if found == nil {
		return nil, false
	}
	if found.card == nil {
		return nil, true
	}
	return found.card, true
}

func (q *request) sessionContext() answer {
	tokens, bad := q.number("tokens", q.options.MaxContextTokens, 0, q.options.MaxContextTokens)
	if bad != nil {
		return *bad
	}
	target, perspective := q.param("peer_target"), q.param("peer_perspective")
	if perspective == "" {
		perspective = target
	} else if target == "" {
		return refuse(422, "peer_target must be provided if peer_perspective is provided")
	}
	sel, bad := q.selectionOf(perspective, target, 100)
	if bad != nil {
		return *bad
	}
	a := map[string]any{"id": q.path("s"), "messages": []any{}, "summary": nil, "peer_representation": nil,
		"peer_card": nil}
	left := int64(tokens)
	if target != "" {
		if q.param("limit_to_session") == "true" {
			sel.session = q.path("s")
		} else {
			for _, p := range []string{target, perspective} {
				if _, known := q.card(p); !known {
					return q.noPeer(p)
				}
			}
			a["peer_card"], _ = q.card(target)
		}
		text := q.represent(sel)
		a["peer_representation"] = text
		left -= count(text)
		if card, isCard := a["peer_card"].([]string); isCard {
			left -= count(strings.Join(card, "\n"))
		}
	}
	x := q.workspaces[q.path("w")].session(q.path("s"))
	if x != nil && x.summary != nil && q.param("summary") != "false" &&
		!q.now.Before(x.summaryAt.Add(q.options.Mood.CacheTTL)) {
		if n, _ := x.summary["token_count"].(int64); n <= left*4/10 {
			a["summary"] = x.summary
			left -= n
		}
	}
	var kept []any
	for _, m := range slices.Backward(q.messagesOf(q.path("s"))) {
		if left -= m.tokens; left < 0 || tokens <= 0 {
			break
		}
		kept = append(kept, m.json(q.path("w")))
	}
	slices.Reverse(kept)
	if kept != nil {
		a["messages"] = kept
	}
	return ok(a)
}

func (q *request) summaries() answer {
	var short any
	x := q.workspaces[q.path("w")].session(q.path("s"))
	if x != nil && x.summary != nil && !q.now.Before(x.summaryAt.Add(q.options.Mood.CacheTTL)) {
		short = x.summary
	}
	return ok(map[string]any{"id": q.path("s"), "short_summary": short, "long_summary": nil})
}

func (q *request) peerContext() answer {
	p := q.path("p")
	card, known := q.card(p)
	if !known {
		return q.noPeer(p)
	}
	sel, bad := q.selectionOf(p, p, 100)
	if bad != nil {
		return *bad
	}
	return ok(map[string]any{"peer_id": p, "target_id": p, "representation": q.represent(sel), "peer_card": card})
}

func (q *request) representation() answer {
	p := q.path("p")
	sel := selection{observer: p, observed: p, query: q.text("search_query"), session: q.text("session_id"),
		most: q.whole("max_conclusions", 25), distance: 2}
	sel.topK = q.whole("search_top_k", max(1, sel.most/3))
	if f, _ := q.body["filters"].(map[string]any); f["session_id"] == "*" {
		return refuse(422, "Invalid session id in filters.session_id: '*'. Session ids match ^[a-zA-Z0-9_-]+$")
	}
	sel.sessions = q.allowlist()
	return ok(map[string]any{"representation": q.represent(sel)})
}

// allowlist is filters.session_id.in of a body.
func (q *request) allowlist() []any {
	f, _ := q.body["filters"].(map[string]any)
	in, _ := f["session_id"].(map[string]any)
	list, _ := in["in"].([]any)
	return list
}

func (q *request) getCard() answer {
	card, known := q.card(q.path("p"))
	if !known {
		return q.noPeer(q.path("p"))
	}
	return ok(map[string]any{"peer_card": card})
}

func (q *request) putCard() answer {
	p, _ := q.makePeer(q.makeWorkspace(q.path("w")), q.path("p"))
	p.card = []string{}
	list, _ := q.body["peer_card"].([]any)
	for _, line := range list {
		text, _ := line.(string)
		p.card = append(p.card, text)
	}
	return ok(map[string]any{"peer_card": p.card})
}

// chat runs an LLM, and makes peer and workspace.
func (q *request) chat() answer {
	query := q.text("query")
	if query == "" {
		return wrong("string_too_short", "String should have at least 1 character", query,
			map[string]any{"min_length": 1}, "body", "query")
	}
	w := q.makeWorkspace(q.path("w"))
	q.makePeer(w, q.path("p"))
	if t := q.text("target"); t != "" && w.peer(t) == nil {
		return q.noPeer(t)
	}
	return q.answerFrom(selection{observer: q.path("p"), observed: q.path("p"), query: query, session: q.text("session_id"),
		sessions: q.allowlist(), topK: 3, most: 3, distance: 2})
}

// workspaceChat is that of a server newer than 3.0.12, as its client describes it: it reads everyone.
func (q *request) workspaceChat() answer {
	if !q.options.WorkspaceChat {
		return refuse(404, "Not Found")
	}
	return q.answerFrom(selection{query: q.text("query"), topK: 3, most: 3, distance: 2})
}

func (q *request) answerFrom(sel selection) answer {
	if q.options.Mood.LLMDown {
		return unexpected
	}
	text := q.represent(sel)
	if text == "" {
		return ok(map[string]any{"content": "I found nothing in memory about that."})
	}
	return ok(map[string]any{"content": "From memory: " + text})
}

// search finds messages. A "*" in the path is a filter value, and drops the condition: this is Honcho's leak.
func (q *request) search() answer {
	query, given := q.body["query"].(string)
	if !given {
		return wrong("missing", "Field required", orEmpty(q.body), nil, "body", "query")
	}
	switch {
	case strings.Contains(query, "<|endof"):
		return refuse(422, "Query exceeds maximum token limit of 8192.")
	case q.options.Mood.EmbedDown:
		return unexpected
	}
	type hit struct {
		w string
		m *message
	}
	var all []hit
	for id, w := range q.workspaces {
		if p := q.path("w"); p != "*" && p != id {
			continue
		}
		var messages []*message
		for _, m := range w.messages {
			s, p := q.path("s"), q.path("p")
			if (s == "" || s == "*" || s == m.session) && (p == "" || p == "*" || p == m.peer) {
				messages = append(messages, m)
			}
		}
		f, _ := q.body["filters"].(map[string]any)
		if f["peer_perspective"] != nil {
			continue // joined_at is now, and drops what was said before
		}
		found, bad := q.filterMessages(messages)
		if bad != nil {
			return *bad
		}
		for _, m := range found {
			all = append(all, hit{id, m})
		}
	}
	shown := []any{}
	for i, h := range nearest(query, all, func(h hit) []float32 { return h.m.vector }) {
		if i < q.whole("limit", 10) {
			shown = append(shown, h.m.json(h.w))
		}
	}
	return ok(shown)
}
