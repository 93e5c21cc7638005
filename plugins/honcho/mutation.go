package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

var mutationNames = []string{"conclusion_create", "conclusion_delete", "card_set", "session_delete", "dream",
	"derive_again"}

// nativeMutation changes what Honcho has derived. A conclusion cannot be edited, a message neither edited nor deleted,
// a peer not deleted.
//
//	conclusion_create {content, session_id?}                   always of level explicit; duplicates are not recognised
//	conclusion_delete {id}                                     no_change if the scope has no such conclusion
//	card_set          {lines}
//	session_delete    {session_id}                             accepted, carried out by the deriver
//	dream             {dream_type, session_id?, rebuild?}      scheduled; Honcho silently drops a duplicate
//	derive_again      {event_id, session_id?}                  sends the user's messages once more, in a second session
func nativeMutation(b *backend, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	m := &mutation{backend: b, params: params{given: r.Params},
		receipt: &abi.MutationReceipt{Status: "applied", NativeIDs: []string{}, Trace: b.trace(r.Name)}}
	var err error
	switch r.Name {
	case "conclusion_create":
		err = m.createConclusion()
	case "conclusion_delete":
		err = m.deleteConclusion()
	case "card_set":
		err = m.setCard()
	case "session_delete":
		err = m.deleteSession()
	case "dream":
		err = m.dream()
	case "derive_again":
		err = m.deriveAgain()
	default:
		err = unknownName("mutation", r.Name, mutationNames)
	}
	if err != nil {
		return nil, err
	}
	return m.receipt, nil
}

// mutation is one native mutation.
type mutation struct {
	*backend
	params  params
	receipt *abi.MutationReceipt
}

// finishParams finishes the reading of parameters.
func (m *mutation) finishParams(known ...string) error {
	m.params.rejectUnknown(known...)
	return m.params.err
}

func (m *mutation) createConclusion() error {
	content, _ := sanitize(m.params.need("content"))
	session := optionalSession(m.native, &m.params)
	if err := m.finishParams("content", "session_id"); err != nil {
		return err
	}
	one := append(wire.Object{"content", content}, m.about("session_id", session)...)
	r := request{route: "conclusions_create", body: wire.Object{"conclusions", []wire.Object{one}}.JSON()}
	answer, err := m.send(r)
	if err != nil {
		return err
	}
	if m.receipt.NativeIDs, err = readList(answer.body, readID); err != nil {
		return unreadable(r, answer.body, "list of conclusions", err)
	}
	return nil
}

func (m *mutation) deleteConclusion() error {
	id := m.params.need("id")
	if err := m.finishParams("id"); err != nil {
		return err
	}
	m.receipt.Status = "no_change"
	gone, err := m.backend.deleteConclusion(id)
	if gone {
		m.receipt.Status, m.receipt.NativeIDs = "applied", []string{id}
	}
	return err
}

// deleteConclusion first checks whether the conclusion belongs to the scope, because a fixed workspace holds those of
// others.
func (b *backend) deleteConclusion(id string) (gone bool, err error) {
	if !isNativeID(id) {
		return false, nil
	}
	r := request{route: "conclusions_list", body: filters(b.byPeople("id", id))}
	ids, _, err := idsOf(b, r, 1, 1)
	if err != nil || len(ids) != 1 || ids[0] != id {
		return false, err
	}
	return b.remove(request{route: "conclusion_delete", conclusion: id})
}

func (m *mutation) setCard() error {
	lines := []string{}
	m.params.read("lines", &lines)
	if len(m.params.given["lines"]) == 0 {
		m.params.wrong("lines", "missing")
	}
	if err := m.finishParams("lines"); err != nil {
		return err
	}
	m.receipt.NativeIDs = []string{m.user}
	_, err := m.send(request{route: "card_put", peer: m.user, body: wire.Object{"peer_card", lines}.JSON()})
	return err
}

func (m *mutation) deleteSession() error {
	session := m.session(m.params.need("session_id"))
	if err := m.finishParams("session_id"); err != nil {
		return err
	}
	gone, err := m.backend.deleteSession(session)
	m.receipt.NativeIDs = []string{session}
	if !gone {
		m.receipt.Status = "no_change"
	}
	return err
}

// deleteSession deletes a session by its native id. Its conclusions and queue rows are deleted with it, so readiness no
// longer expects any.
func (b *backend) deleteSession(session string) (gone bool, err error) {
	rows, err := b.queueOfPeers(session)
	if err != nil {
		return false, err
	}
	gone, err = b.remove(request{route: "session_delete", session: session})
	if err != nil || !gone {
		return false, err
	}
	p, err := readPosted(b.Call)
	if err != nil {
		return true, err
	}
	p.rows = max(0, p.rows-rows.total)
	if err := p.write(b.Call); err != nil {
		return true, err
	}
	return true, b.Put(sessionPrefix+session, nil, sdk.AnyVersion)
}

func (m *mutation) dream() error {
	body := wire.Object{"observer", m.user, "dream_type", m.params.need("dream_type"),
		"session_id", optionalSession(m.native, &m.params),
		"rebuild", m.params.value("rebuild", wirejson.Bool, "true or false")}
	if err := m.finishParams("dream_type", "session_id", "rebuild"); err != nil {
		return err
	}
	m.receipt.NativeIDs = []string{m.user}
	_, err := m.send(request{route: "dream", body: body.JSON()})
	return err
}

func (m *mutation) deriveAgain() error {
	event, session := m.params.need("event_id"), m.params.text("session_id")
	if err := m.finishParams("event_id", "session_id"); err != nil {
		return err
	}
	_, stored, err := m.backend.deriveAgain(event, session)
	if m.receipt.Status = "no_change"; len(stored) > 0 {
		m.receipt.Status = "applied"
	}
	for i := range stored {
		m.receipt.NativeIDs = append(m.receipt.NativeIDs, stored[i].id)
	}
	return err
}

// deriveAgain repeats an event's observed messages, because Honcho has no call that derives a message again. The copies
// go into a separate session, so that neither the prompt's messages nor a summary has them twice; message search may
// find both. It returns the copies and their session, and no copies if Honcho does not have the event or observes none
// of its speakers.
func (b *backend) deriveAgain(event, session string) (into string, stored []message, err error) {
	found, _, err := b.search(event, session)
	if err != nil || len(found) == 0 {
		return "", nil, err
	}
	w, err := newWriter(b)
	if err != nil {
		return "", nil, err
	}
	var pieces []piece
	for _, message := range found {
		if b.observed(message.peer) {
			pieces = append(pieces, piece{event: event, number: message.piece, observed: true, body: wire.Object{
				"peer_id", message.peer, "content", message.content, "created_at", message.createdAt,
				"metadata", wire.At(message.raw, "metadata")}})
		}
	}
	native := found[0].session
	if session == "" {
		session = native
	}
	into = b.again(native)
	for len(pieces) > 0 {
		n := min(len(pieces), postLimit)
		some, failed := w.post(into, pieces[:n])
		if failed != nil {
			return into, stored, failed
		}
		stored, pieces = append(stored, some...), pieces[n:]
		w.count(into, session, int64(n))
	}
	if len(stored) == 0 {
		return into, nil, nil
	}
	w.writtenSessions[native] = "" // conclusions from now on count for it
	return into, stored, w.close()
}

// optionalSession returns the native id of the session parameter, nil if it is not set.
func optionalSession(n *native, p *params) any {
	if id := p.text("session_id"); id != "" {
		return n.session(id)
	}
	return nil
}
