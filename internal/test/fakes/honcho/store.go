package honcho

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// workspace is the only boundary between memories.
type workspace struct {
	id            string
	metadata      map[string]any
	configuration map[string]any
	createdAt     time.Time
	peers         []*peer
	sessions      []*session
	messages      []*message // in order of insertion
	conclusions   []*conclusion
	rows          []*row
	deleteAt      time.Time // when the accepted deletion is due; zero: none
}

type peer struct {
	id                      string
	metadata, configuration map[string]any
	createdAt               time.Time
	card                    []string
}

func (p *peer) observed() bool {
	me, set := p.configuration["observe_me"].(bool)
	return me || !set
}

type session struct {
	id                      string
	native                  string // the internal id by which queue status names it
	metadata, configuration map[string]any
	createdAt               time.Time
	active                  bool
	purgeAt                 time.Time
	members                 []*member
	said                    int
	summary                 map[string]any
	summaryAt               time.Time
}

type member struct {
	peer         string
	observeMe    *bool
	observeOther *bool
}

type message struct {
	id, peer, session, content string
	metadata                   map[string]any
	createdAt                  time.Time
	echo                       string // created_at as the write echoes it
	tokens                     int64
	vector                     []float32
}

type conclusion struct {
	id, content, observer, observed, session, level string
	createdAt, factAt                               time.Time
	timesDerived                                    int
	sources                                         []string
	vector                                          []float32
}

// stamp is a time as Honcho writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func (w *workspace) json() map[string]any {
	return map[string]any{"id": w.id, "metadata": orEmpty(w.metadata), "configuration": orEmpty(w.configuration),
		"created_at": stamp(w.createdAt)}
}

func (p *peer) json(w string) map[string]any {
	return map[string]any{"id": p.id, "workspace_id": w, "created_at": stamp(p.createdAt),
		"metadata": orEmpty(p.metadata), "configuration": orEmpty(p.configuration)}
}

func (x *session) json(w string) map[string]any {
	return map[string]any{"id": x.id, "is_active": x.active, "workspace_id": w, "metadata": orEmpty(x.metadata),
		"configuration": orEmpty(x.configuration), "created_at": stamp(x.createdAt)}
}

func (m *message) json(w string) map[string]any {
	return map[string]any{"id": m.id, "content": m.content, "peer_id": m.peer, "session_id": m.session,
		"metadata": orEmpty(m.metadata), "created_at": stamp(m.createdAt),
		"workspace_id": w, "token_count": m.tokens}
}

func (x *conclusion) json() map[string]any {
	var session any
	if x.session != "" {
		session = x.session
	}
	return map[string]any{"id": x.id, "content": x.content, "observer_id": x.observer, "observed_id": x.observed,
		"session_id": session, "level": x.level,
		"created_at": stamp(x.createdAt)}
}

func (w *workspace) peer(id string) *peer {
	if w == nil {
		return nil
	}
	for _, p := range w.peers {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (w *workspace) session(id string) *session {
	if w == nil {
		return nil
	}
	for _, x := range w.sessions {
		if x.id == id {
			return x
		}
	}
	return nil
}

// makeWorkspace gets or creates.
func (s *Server) makeWorkspace(id string) *workspace {
	w := s.workspaces[id]
	if w == nil {
		w = &workspace{id: id, createdAt: s.now}
		s.workspaces[id] = w
	}
	return w
}

func (s *Server) makePeer(w *workspace, id string) (p *peer, made bool) {
	if p = w.peer(id); p != nil {
		return p, false
	}
	p = &peer{id: id, createdAt: s.now}
	w.peers = append(w.peers, p)
	return p, true
}

func (s *Server) makeSession(w *workspace, id string) (x *session, made bool) {
	if x = w.session(id); x != nil {
		return x, false
	}
	x = &session{id: id, native: s.id(), createdAt: s.now, active: true}
	w.sessions = append(w.sessions, x)
	return x, true
}

func (x *session) join(peer string) *member {
	for _, m := range x.members {
		if m.peer == peer {
			return m
		}
	}
	m := &member{peer: peer}
	x.members = append(x.members, m)
	return m
}

// observes reports whether the deriver works on what a peer says in a session.
func (w *workspace) observes(x *session, p *peer) bool {
	for _, m := range x.members {
		if m.peer == p.id && m.observeMe != nil {
			return *m.observeMe
		}
	}
	return p.observed()
}

// purge removes a session with what is stamped with it.
func (w *workspace) purge(x *session) {
	w.sessions = slices.DeleteFunc(w.sessions, func(o *session) bool { return o == x })
	w.messages = slices.DeleteFunc(w.messages, func(m *message) bool { return m.session == x.id })
	w.conclusions = slices.DeleteFunc(w.conclusions, func(c *conclusion) bool { return c.session == x.id })
	w.rows = slices.DeleteFunc(w.rows, func(r *row) bool { return r.session == x })
}

// nearest orders items by similarity to a query, those as near as each other by age.
func nearest[T any](query string, items []T, vector func(T) []float32) []T {
	q := embed.Text(query)
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(a, b T) int {
		x, y := embed.Cosine(q, vector(a)), embed.Cosine(q, vector(b))
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return out
}

// clone copies a JSON value.
func clone(v any) map[string]any {
	m, _ := v.(map[string]any)
	if m == nil {
		return nil
	}
	text, _ := json.Marshal(m)
	var out map[string]any
	_ = json.Unmarshal(text, &out)
	return out
}
