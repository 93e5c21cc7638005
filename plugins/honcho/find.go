package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// maxSessions is how many sessions are looked through for an event whose session is not known.
const maxSessions = 300

// messagesOf lists the messages of an event in a session. Not more than the event has: its own marks say so.
//
// Source: Honcho POST .../messages/list with {"filters": {"metadata": {"mh_event": ...}}}, a typed containment.
func (s *settings) messagesOf(c *sdk.Call, n *native, session, event string) ([]message, error) {
	body := filters(func(e *jsontext.Encoder) {
		within(e, "metadata")
		field(e, keyEvent, label(event))
		e.ObjEnd()
	})
	var found []message
	for number := int64(1); ; number++ {
		raw, head, err := s.list(c, request{route: "messages_list", workspace: n.workspace, session: session, body: body}, number, pageSize, false)
		if err != nil {
			return nil, err
		}
		items, err := readMessages(raw)
		if err != nil {
			return nil, unusable("messages_list", 200, nil, "is no list of messages: "+err.Error())
		}
		for i := range items {
			if items[i].event != event || items[i].workspace != n.workspace || items[i].session != session {
				return nil, breach("messages_list", "a message of another event, session or workspace", items[i].raw)
			}
		}
		if len(items) == 0 { // as in every session but the event's own
			c.Reuse(head.body)
			return found, nil
		}
		if found = append(found, items...); number >= head.pages {
			return found, nil
		}
	}
}

// sessionsOf goes through the scope's sessions until visit is done with them. complete is false where there were more than are looked through, or the
// call's time ran out.
func (s *settings) sessionsOf(c *sdk.Call, n *native, visit func(session string) (done bool, err error)) (complete bool, err error) {
	seen := map[string]bool{}
	for _, peer := range s.members(n) {
		for number := int64(1); ; number++ {
			ids, head, err := s.sessions(c, n, peer, number)
			if err != nil {
				return false, err
			}
			for _, id := range ids {
				if seen[id] {
					continue
				}
				if seen[id] = true; len(seen) > maxSessions || c.Remaining() < lookUpMS {
					return false, nil
				}
				if done, err := visit(id); done || err != nil {
					return true, err
				}
			}
			if number >= head.pages || len(ids) == 0 {
				break
			}
		}
	}
	return true, nil
}

// findEvent tells which pieces of an event Honcho has. The markers of an earlier write say in which session; without them all are looked through, since
// messages can be listed by session only.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	n := s.native(c)
	var found []message
	look := func(session string) (done bool, err error) {
		found, err = s.messagesOf(c, n, session, r.EventID)
		return len(found) > 0, err
	}
	for _, m := range parseMarkers(r.Markers) {
		if m.event == r.EventID {
			if _, err := look(m.session); err != nil {
				return nil, err
			}
			return s.answerFound(n, r, found), nil
		}
	}
	complete, err := s.sessionsOf(c, n, look)
	if err != nil {
		return nil, err
	}
	answer := s.answerFound(n, r, found)
	if answer.Found == "absent" && !complete {
		answer.Found = "unknown"
	}
	return answer, nil
}

// answerFound sorts an event's messages by piece and names what is missing. The marker is that of a receipt that may have been lost.
func (s *settings) answerFound(n *native, r *abi.FindEventRequest, found []message) *abi.FindEventAnswer {
	if len(found) == 0 {
		return &abi.FindEventAnswer{Found: "absent"}
	}
	a := &abi.FindEventAnswer{Found: "present"}
	all := 0
	m := marker{sentAt: r.SentAt, session: found[0].session, event: r.EventID}
	for i := range found {
		a.NativeIDs = append(a.NativeIDs, found[i].id)
		all = max(all, found[i].pieces)
		if s.observed(n, found[i].peer) {
			m.rows++
			m.tokens += found[i].tokens
		}
	}
	a.Markers = []string{m.String()}
	there := make([]bool, min(all, maxPieces))
	for i := range found {
		if at := found[i].piece; at >= 0 && at < len(there) {
			there[at] = true
		}
	}
	var missing []int
	for i, ok := range there {
		if !ok {
			missing = append(missing, i)
		}
	}
	if a.Missing = rangesOf(missing); len(missing) > 0 {
		a.Found = "partial"
	}
	return a
}

// maxPieces bounds what is believed of an event's number of pieces: a request has 16 MiB.
const maxPieces = 1 << 20

// breach is the error of an item that is another scope's.
//
//go:noinline
func breach(route, what string, item abi.Raw) *abi.Error {
	e := abi.NewError(abi.CodeIsolationBreach, "Honcho answered "+route+" with "+what)
	e.Route, e.Native = route, nativeError(200, item)
	return e
}
