package honcho

import (
	"net/http"
	"slices"
	"strconv"
)

// handler serves a route for a key that may use it.
type handler struct {
	level level
	serve func(q *request) answer
}

func (s *Server) routes() {
	for pattern, h := range map[string]handler{
		"POST /v3/keys":            {admin, (*request).keys},
		"POST /v3/workspaces":      {creating, (*request).createWorkspace},
		"POST /v3/workspaces/list": {admin, (*request).listWorkspaces},
	} {
		s.handle(pattern, h)
	}
	for pattern, serve := range map[string]func(*request) answer{
		"PUT ":                               (*request).putWorkspace,
		"DELETE ":                            (*request).deleteWorkspace,
		"GET /queue/status":                  (*request).queueStatus,
		"POST /peers":                        (*request).createPeer,
		"POST /peers/list":                   (*request).listPeers,
		"POST /peers/{p}/sessions":           (*request).peerSessions,
		"GET /peers/{p}/card":                (*request).getCard,
		"PUT /peers/{p}/card":                (*request).putCard,
		"GET /peers/{p}/context":             (*request).peerContext,
		"POST /peers/{p}/representation":     (*request).representation,
		"POST /peers/{p}/chat":               (*request).chat,
		"POST /peers/{p}/search":             (*request).search,
		"POST /search":                       (*request).search,
		"POST /chat":                         (*request).workspaceChat,
		"POST /sessions/{s}/search":          (*request).search,
		"POST /sessions":                     (*request).createSession,
		"POST /sessions/list":                (*request).listSessions,
		"PUT /sessions/{s}":                  (*request).putSession,
		"DELETE /sessions/{s}":               (*request).deleteSession,
		"GET /sessions/{s}/context":          (*request).sessionContext,
		"GET /sessions/{s}/summaries":        (*request).summaries,
		"GET /sessions/{s}/peers":            (*request).sessionPeers,
		"POST /sessions/{s}/peers":           (*request).addPeers,
		"GET /sessions/{s}/peers/{p}/config": (*request).peerConfig,
		"PUT /sessions/{s}/peers/{p}/config": (*request).putPeerConfig,
		"POST /sessions/{s}/messages":        (*request).createMessages,
		"POST /sessions/{s}/messages/list":   (*request).listMessages,
		"GET /sessions/{s}/messages/{m}":     (*request).getMessage,
		"PUT /sessions/{s}/messages/{m}":     (*request).putMessage,
		"POST /conclusions":                  (*request).createConclusions,
		"POST /conclusions/list":             (*request).listConclusions,
		"POST /conclusions/query":            (*request).queryConclusions,
		"DELETE /conclusions/{c}":            (*request).deleteConclusion,
		"POST /schedule_dream":               (*request).dream,
	} {
		method, path := pattern[:indexByte(pattern, ' ')], pattern[indexByte(pattern, ' ')+1:]
		s.handle(method+" /v3/workspaces/{w}"+path, handler{inside, serve})
	}
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

func itoa(n int) string { return strconv.Itoa(n) }

func (s *Server) handle(pattern string, h handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, ours := w.(*capture)
		if !ours {
			return // only looked up
		}
		c.q.http = r
		if a, may := c.q.allowed(h.level); !may {
			c.a = a
			return
		}
		c.a = h.serve(c.q)
	})
}

func (q *request) keys() answer {
	if q.options.Keys == nil {
		return refuse(405, "Feature is disabled")
	}
	return refuse(422, "At least one of workspace_id, peer_id, or session_id must be provided")
}

func (q *request) createWorkspace() answer {
	id := q.text("id")
	if a, good := checkID(id, "body", "id"); !good {
		return a
	}
	if q.stale(id) {
		return ok(q.gone[id].was.json()) // the cache still has it, with its old metadata
	}
	if w := q.workspaces[id]; w != nil {
		return ok(w.json())
	}
	w := q.makeWorkspace(id)
	w.metadata, w.configuration = clone(q.body["metadata"]), clone(q.body["configuration"])
	return answer{201, w.json()}
}

func (q *request) listWorkspaces() answer {
	var all []*workspace
	for _, w := range q.workspaces {
		all = append(all, w)
	}
	found, bad := filtered(all, q.body["filters"], "Workspace", []string{"id", "created_at"},
		func(w *workspace) map[string]any {
			return map[string]any{"id": w.id, "created_at": w.createdAt, "metadata": w.metadata}
		})
	if bad != nil {
		return *bad
	}
	return paged(q, found, func(w *workspace) any { return w.json() })
}

func (q *request) putWorkspace() answer {
	id := q.path("w")
	if !idPattern.MatchString(id) || q.stale(id) {
		return unexpected
	}
	w := q.makeWorkspace(id)
	if m := clone(q.body["metadata"]); m != nil {
		w.metadata = m
	}
	return ok(w.json())
}

// stale reports whether the API believes in a workspace that is gone.
func (q *request) stale(id string) bool {
	g, cached := q.gone[id]
	return cached && q.workspaces[id] == nil && q.now.Before(g.at.Add(q.options.Mood.CacheTTL))
}

func (q *request) deleteWorkspace() answer {
	id := q.path("w")
	w := q.workspaces[id]
	switch {
	case q.stale(id):
		return unexpected
	case w == nil:
		return refuse(404, "Workspace %s not found", id)
	case slices.ContainsFunc(w.sessions, func(x *session) bool { return x.active }):
		return refuse(409, "Cannot delete workspace '%s': active session(s) remain. Delete all sessions first.", id)
	}
	if w.deleteAt.IsZero() {
		w.deleteAt = q.now
	}
	return answer{202, map[string]any{"message": "Workspace deletion accepted"}}
}

func (q *request) createPeer() answer {
	id := q.text("id")
	if a, good := checkID(id, "body", "id"); !good {
		return a
	}
	if q.stale(q.path("w")) {
		return refuse(409, "Unable to create or get peers: ['%s']", id)
	}
	p, made := q.makePeer(q.makeWorkspace(q.path("w")), id)
	if m := clone(q.body["metadata"]); m != nil {
		p.metadata = m
	}
	if c := clone(q.body["configuration"]); c != nil {
		p.configuration = c
	}
	if made {
		return answer{201, p.json(q.path("w"))}
	}
	return ok(p.json(q.path("w")))
}

func (q *request) listPeers() answer {
	var all []*peer
	if w := q.workspaces[q.path("w")]; w != nil {
		all = w.peers
	}
	found, bad := filtered(all, q.body["filters"], "Peer", []string{"id", "created_at"}, func(p *peer) map[string]any {
		return map[string]any{"id": p.id, "created_at": p.createdAt, "metadata": p.metadata}
	})
	if bad != nil {
		return *bad
	}
	return paged(q, found, func(p *peer) any { return p.json(q.path("w")) })
}

func (q *request) filterSessions(all []*session) answer {
	found, bad := filtered(all, q.body["filters"], "Session", []string{"id", "created_at", "is_active"},
		func(x *session) map[string]any {
			return map[string]any{"id": x.id, "created_at": x.createdAt, "is_active": x.active, "metadata": x.metadata}
		})
	if bad != nil {
		return *bad
	}
	return paged(q, found, func(x *session) any { return x.json(q.path("w")) })
}

func (q *request) listSessions() answer {
	var all []*session
	if w := q.workspaces[q.path("w")]; w != nil {
		for _, x := range w.sessions {
			if x.active {
				all = append(all, x)
			}
		}
	}
	return q.filterSessions(all)
}

// peerSessions lists inactive ones, too.
func (q *request) peerSessions() answer {
	var all []*session
	if w := q.workspaces[q.path("w")]; w != nil {
		for _, x := range w.sessions {
			if slices.ContainsFunc(x.members, func(m *member) bool { return m.peer == q.path("p") }) {
				all = append(all, x)
			}
		}
	}
	return q.filterSessions(all)
}

func (q *request) createSession() answer {
	id := q.text("id")
	if a, good := checkID(id, "body", "id"); !good {
		return a
	}
	peers, _ := q.body["peers"].(map[string]any)
	observers := 0
	for _, p := range peers {
		if c, _ := p.(map[string]any); c["observe_others"] == true {
			observers++
		}
	}
	if observers > 10 {
		return refuse(400, "Cannot create session %s with %d observers. Maximum allowed is 10 observers per session. "+
			"Observers are peers with 'observe_others' set to true.", id, observers)
	}
	w := q.makeWorkspace(q.path("w"))
	x, made := q.makeSession(w, id)
	if !x.active {
		return refuse(404, "Session %s not found in workspace %s", id, w.id)
	}
	if m := clone(q.body["metadata"]); m != nil {
		x.metadata = m
	}
	for name, c := range peers {
		q.makePeer(w, name)
		if config, _ := c.(map[string]any); !slices.ContainsFunc(x.members, func(m *member) bool {
			return m.peer == name
		}) {
			x.join(name).configure(config)
		}
	}
	if made {
		return answer{201, x.json(w.id)}
	}
	return ok(x.json(w.id))
}

func (m *member) configure(c map[string]any) {
	if v, set := c["observe_me"].(bool); set {
		m.observeMe = &v
	}
	if v, set := c["observe_others"].(bool); set {
		m.observeOther = &v
	}
}

func (q *request) putSession() answer {
	w := q.makeWorkspace(q.path("w"))
	x, _ := q.makeSession(w, q.path("s"))
	if m := clone(q.body["metadata"]); m != nil {
		x.metadata = m
	}
	return ok(x.json(w.id))
}

func (q *request) deleteSession() answer {
	x := q.workspaces[q.path("w")].session(q.path("s"))
	if x == nil || !x.active {
		return refuse(404, "Session %s not found in workspace %s", q.path("s"), q.path("w"))
	}
	x.active, x.purgeAt = false, q.now
	return answer{202, map[string]any{"message": "Session deleted successfully"}}
}

func (q *request) addPeers() answer {
	w := q.makeWorkspace(q.path("w"))
	x, _ := q.makeSession(w, q.path("s"))
	for name := range q.body {
		q.makePeer(w, name)
		x.join(name)
	}
	return ok(x.json(w.id))
}

func (q *request) sessionPeers() answer {
	w := q.workspaces[q.path("w")]
	var all []*peer
	if x := w.session(q.path("s")); x != nil {
		for _, m := range x.members {
			all = append(all, w.peer(m.peer))
		}
	}
	return paged(q, all, func(p *peer) any { return p.json(q.path("w")) })
}

func (q *request) peerConfig() answer {
	x := q.workspaces[q.path("w")].session(q.path("s"))
	if x == nil {
		return refuse(404, "Session %s not found in workspace %s", q.path("s"), q.path("w"))
	}
	m := x.join(q.path("p"))
	a := map[string]any{"observe_me": nil, "observe_others": nil}
	if m.observeMe != nil {
		a["observe_me"] = *m.observeMe
	}
	if m.observeOther != nil {
		a["observe_others"] = *m.observeOther
	}
	return ok(a)
}

func (q *request) putPeerConfig() answer {
	x := q.workspaces[q.path("w")].session(q.path("s"))
	if x == nil {
		return refuse(404, "Session %s not found in workspace %s", q.path("s"), q.path("w"))
	}
	x.join(q.path("p")).configure(q.body)
	return answer{204, nil}
}

func (q *request) dream() answer {
	if kind := q.text("dream_type"); kind != "omni" && kind != "card_refresh" {
		return wrong("enum", "Input should be 'omni' or 'card_refresh'", kind,
			map[string]any{"expected": "'omni' or 'card_refresh'"}, "body", "dream_type")
	}
	return answer{204, nil} // for a peer that does not exist, too
}
