package honcho

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// row is one row of the deriver's queue: a message to derive from, or a summary to write.
type row struct {
	session   *session
	sender    string // "" for a summary
	message   *message
	visibleAt time.Time
	claimedAt time.Time // zero: not claimed
	done      bool
}

// enqueue puts rows into the queue, where they appear after the response.
func (s *Server) enqueue(w *workspace, x *session, p *peer, m *message) {
	if s.options.Mood.EnqueueFails {
		return
	}
	at := s.now.Add(s.options.Mood.RowDelay)
	if w.observes(x, p) {
		w.rows = append(w.rows, &row{session: x, sender: p.id, message: m, visibleAt: at})
	}
	if x.said%20 == 0 {
		w.rows = append(w.rows, &row{session: x, message: m, visibleAt: at})
	}
}

// advance brings queue and deletions up to the clock.
func (s *Server) advance() {
	mood := s.options.Mood
	if mood.DeriverDown || mood.DBDown {
		return
	}
	for id, w := range s.workspaces {
		for _, x := range slices.Clone(w.sessions) {
			if !x.active && !s.now.Before(x.purgeAt.Add(mood.PurgeDelay)) {
				w.purge(x)
			}
		}
		if !w.deleteAt.IsZero() && !s.now.Before(w.deleteAt.Add(mood.PurgeDelay)) {
			delete(s.workspaces, id)
			s.gone[id] = cachedWorkspace{at: s.now, was: w}
			continue
		}
		s.work(w)
	}
}

// unit is what the deriver claims at once: the rows of one author in one session, or one summary.
type unit struct {
	session *session
	sender  string
}

// work claims what may be claimed and finishes what has been in progress long enough.
func (s *Server) work(w *workspace) {
	mood := s.options.Mood
	units := map[unit][]*row{}
	var order []unit
	for _, r := range w.rows {
		if r.done || s.now.Before(r.visibleAt) {
			continue
		}
		u := unit{r.session, r.sender}
		if units[u] == nil {
			order = append(order, u)
		}
		units[u] = append(units[u], r)
	}
	for _, u := range order {
		rows := units[u]
		if rows[0].claimedAt.IsZero() && s.open(u, rows) {
			for _, r := range rows {
				r.claimedAt = s.now
			}
		}
		rows = slices.DeleteFunc(rows, func(r *row) bool { return r.claimedAt.IsZero() })
		if len(rows) == 0 || s.now.Before(rows[0].claimedAt.Add(mood.WorkDelay)) {
			continue
		}
		for _, r := range rows {
			r.done = true // a failed row is done, too
		}
		switch {
		case mood.LLMDown || mood.EmbedDown:
		case u.sender == "":
			s.summarise(w, u.session)
		default:
			s.derive(w, u, rows)
		}
	}
}

// open reports whether the gate lets a work unit through. Summaries are not gated.
func (s *Server) open(u unit, rows []*row) bool {
	mood := s.options.Mood
	if mood.Flush || u.sender == "" {
		return true
	}
	least, age := mood.BatchTokens, mood.MaxAge
	if least == 0 {
		least = 512
	}
	if age == 0 {
		age = 1800 * time.Second
	}
	tokens := int64(0)
	for _, r := range rows {
		tokens += r.message.tokens
	}
	return tokens >= least || s.now.Sub(rows[0].visibleAt) >= age
}

// derive makes facts of a batch, for the author's own collection and for those of the session's observers.
func (s *Server) derive(w *workspace, u unit, rows []*row) {
	latest := rows[0].message.createdAt
	for _, r := range rows {
		if r.message.createdAt.After(latest) {
			latest = r.message.createdAt
		}
	}
	observers := []string{u.sender}
	for _, m := range u.session.members {
		if m.observeOther != nil && *m.observeOther && m.peer != u.sender {
			observers = append(observers, m.peer)
		}
	}
	for _, observer := range observers {
		seen := map[string]bool{}
		for _, r := range rows {
			for _, sentence := range sentences(r.message.content) {
				text := u.sender + " said: " + sentence
				if seen[text] {
					continue // twice in one batch: it collapses
				}
				seen[text] = true
				s.learn(w, &conclusion{content: text, observer: observer, observed: u.sender, session: u.session.id,
					level: "explicit", createdAt: s.now, factAt: latest,
					timesDerived: 1, vector: embed.Text(text)})
			}
		}
	}
}

// learn keeps a fact. The same again in its session is only counted, a near duplicate is replaced under a new id.
func (s *Server) learn(w *workspace, fact *conclusion) {
	const near = 0.95
	for _, c := range w.conclusions {
		if c.session != fact.session || c.level != fact.level || c.observer != fact.observer ||
			c.observed != fact.observed {
			continue
		}
		if c.content == fact.content {
			c.timesDerived++
			return
		}
		if embed.Cosine(c.vector, fact.vector) >= near {
			w.conclusions = slices.DeleteFunc(w.conclusions, func(o *conclusion) bool { return o == c })
			break
		}
	}
	fact.id = s.id()
	w.conclusions = append(w.conclusions, fact)
}

func (s *Server) summarise(w *workspace, x *session) {
	var last *message
	first, n := "", 0
	for _, m := range w.messages {
		if m.session == x.id {
			if n++; n == 1 {
				first = m.content
			}
			last = m
		}
	}
	if last == nil {
		return
	}
	text := "Short summary of " + itoa(n) + " lines. First: " + first + " Last: " + last.content
	x.summary = map[string]any{"content": text, "message_id": last.id, "summary_type": "honcho_chat_summary_short",
		"created_at":  s.now.UTC().Format("2006-01-02T15:04:05Z"),
		"token_count": count(text)}
	x.summaryAt = s.now
}

// sentences splits a text at full stops, question and exclamation marks, of wide scripts too.
func sentences(text string) (out []string) {
	runes := []rune(text)
	from := 0
	for i, r := range runes {
		wide := strings.ContainsRune("。！？", r)
		if wide || strings.ContainsRune(".!?", r) && (i+1 == len(runes) || unicode.IsSpace(runes[i+1])) {
			if t := strings.TrimSpace(string(runes[from : i+1])); t != "" {
				out = append(out, t)
			}
			from = i + 1
		}
	}
	if t := strings.TrimSpace(string(runes[from:])); t != "" {
		out = append(out, t)
	}
	return out
}

// queueStatus counts rows.
func (q *request) queueStatus() answer {
	w := q.workspaces[q.path("w")]
	var total tally
	per := map[string]*tally{}
	session, bySession := q.query["session_id"]
	sender, bySender := q.query["sender_id"]
	_, byObserver := q.query["observer_id"]
	if w != nil {
		for _, r := range w.rows {
			switch {
			case q.now.Before(r.visibleAt), bySession && r.session.id != session[0], bySender && r.sender != sender[0],
				byObserver && !bySender:
				continue
			}
			if per[r.session.native] == nil {
				per[r.session.native] = &tally{}
			}
			total.add(r)
			per[r.session.native].add(r)
		}
	}
	a := total.json()
	a["sessions"] = nil
	if !bySession && len(per) > 0 {
		sessions := map[string]any{}
		for id, t := range per {
			one := t.json()
			one["session_id"] = id
			sessions[id] = one
		}
		a["sessions"] = sessions
	}
	return ok(a)
}

type tally struct{ total, done, working, pending int }

func (t *tally) add(r *row) {
	t.total++
	switch {
	case r.done:
		t.done++
	case !r.claimedAt.IsZero():
		t.working++
	default:
		t.pending++
	}
}

func (t *tally) json() map[string]any {
	return map[string]any{"total_work_units": t.total, "completed_work_units": t.done,
		"in_progress_work_units": t.working, "pending_work_units": t.pending}
}
