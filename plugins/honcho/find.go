package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// maxSessions is the maximum number of sessions searched for an event whose session is not known.
const maxSessions = 300

// messagesOf lists the messages of an event in a session, at most as many as the event has according to its own
// metadata.
//
// Source: Honcho POST .../messages/list with {"filters": {"metadata": {"mh_event": ...}}}, a typed containment.
func (b *backend) messagesOf(session, event string) (found []message, err error) {
	r := request{route: "messages_list", session: session,
		body: filters(wire.Object{"metadata", wire.Object{keyEvent, label(event)}})}
	for number := int64(1); ; number++ {
		items, head, err := pageOf(b, r, number, pageSize, readMessage)
		if err != nil {
			return nil, err
		}
		for _, m := range items {
			if m.event != event || m.workspace != b.workspace || m.session != session {
				return nil, breach("messages_list", "a message of another event, session or workspace", m.raw)
			}
		}
		if len(items) == 0 { // the usual result, except in the event's own session
			b.Reuse(head.body)
			return found, nil
		}
		found = append(found, items...)
		if number >= head.pages {
			return found, nil
		}
	}
}

// sessionsOf calls visit for the scope's sessions until visit returns true. complete is false if there were more
// sessions than the maximum, or the call's time ran out.
func (b *backend) sessionsOf(visit func(session string) (done bool, err error)) (complete bool, err error) {
	seen := map[string]bool{}
	for _, peer := range b.members() {
		for number := int64(1); ; number++ {
			ids, head, err := b.sessions(peer, number)
			if err != nil {
				return false, err
			}
			for _, id := range ids {
				if seen[id] {
					continue
				}
				if seen[id] = true; len(seen) > maxSessions || b.Remaining() < lookUpMS {
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

// findEvent returns which pieces of an event Honcho has. The markers of an earlier write name the session. Without
// markers it searches the event's session first, then all others: messages can be listed only by session.
func findEvent(b *backend, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	markers := parseMarkers(r.Markers)
	if i := slices.IndexFunc(markers, func(m marker) bool { return m.event == r.EventID }); i >= 0 {
		found, err := b.messagesOf(markers[i].session, r.EventID)
		return b.answerFound(r, found), err
	}
	found, complete, err := b.search(r.EventID, r.SessionID)
	answer := b.answerFound(r, found)
	if answer.Found == "absent" && !complete {
		answer.Found = "unknown"
	}
	return answer, err
}

// search looks for an event's messages: first in the named session, then in all. complete is false if some sessions
// were not searched.
func (b *backend) search(event, session string) (found []message, complete bool, err error) {
	if session != "" {
		found, err = b.messagesOf(b.session(session), event)
		if err != nil || len(found) > 0 {
			return found, true, err
		}
	}
	complete, err = b.sessionsOf(func(session string) (done bool, err error) {
		found, err = b.messagesOf(session, event)
		return len(found) > 0, err
	})
	return found, complete, err
}

// answerFound sorts an event's messages by piece and lists the missing ones. The marker is the one that a lost receipt
// would have had.
func (b *backend) answerFound(r *abi.FindEventRequest, found []message) *abi.FindEventAnswer {
	if len(found) == 0 {
		return &abi.FindEventAnswer{Found: "absent"}
	}
	a := &abi.FindEventAnswer{Found: "present"}
	all, there := int64(0), map[int64]bool{}
	lost := marker{sentAt: r.SentAt, session: found[0].session, event: r.EventID}
	for _, m := range found {
		a.NativeIDs = append(a.NativeIDs, m.id)
		all, there[m.piece] = max(all, m.pieces), true
		if b.observed(m.peer) {
			lost.rows++
			lost.tokens += m.tokens
		}
	}
	a.Markers = []string{lost.String()}
	var missing []int
	for i := range min(all, maxPieces) {
		if !there[i] {
			missing = append(missing, int(i))
		}
	}
	if a.Missing = rangesOf(missing); len(missing) > 0 {
		a.Found = "partial"
	}
	return a
}

// maxPieces is the largest number of pieces per event that is accepted: a request has 16 MiB.
const maxPieces = 1 << 20
