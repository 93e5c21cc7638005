package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

var mutationNames = []string{"conclusion_create", "conclusion_delete", "card_set", "session_delete", "dream"}

// nativeMutation changes what Honcho has derived. A conclusion cannot be edited, a message neither edited nor deleted, a peer not deleted.
//
//	conclusion_create {content, session_id?}                   always of level explicit; Honcho does not recognise a duplicate
//	conclusion_delete {id}                                     no_change where the scope has no such conclusion
//	card_set          {lines}
//	session_delete    {session_id}                             accepted, carried out by the deriver
//	dream             {dream_type, session_id?, rebuild?}      scheduled; Honcho drops a duplicate in silence
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	m := &mutation{settings: s, call: c, native: s.native(c), params: params{given: r.Params},
		receipt: &abi.MutationReceipt{Status: "applied", NativeIDs: []string{}, Trace: s.trace()}}
	m.receipt.Trace.NativeOperation = r.Name
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
	default:
		e := abi.NewError(abi.CodeInvalidArgument, "name: no native mutation of honcho")
		if near := abi.Nearest(r.Name, mutationNames); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return m.receipt, nil
}

// mutation is one native mutation.
type mutation struct {
	settings *settings
	call     *sdk.Call
	native   *native
	params   params
	receipt  *abi.MutationReceipt
}

// checked ends the reading of parameters.
func (m *mutation) checked(known ...string) error {
	m.params.only(known...)
	return m.params.err
}

func (m *mutation) createConclusion() error {
	content, _ := sanitize(m.params.need("content"))
	session := m.params.text("session_id")
	if err := m.checked("content", "session_id"); err != nil {
		return err
	}
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("conclusions")
	e.ArrStart()
	e.ObjStart()
	field(&e, "content", content)
	m.native.about(&e)
	if session != "" {
		field(&e, "session_id", m.native.session(session))
	}
	e.ObjEnd()
	e.ArrEnd()
	e.ObjEnd()
	answer, err := m.settings.send(m.call, request{route: "conclusions_create", workspace: m.native.workspace, body: e.Bytes()})
	if err != nil {
		return err
	}
	made, err := readList(answer.body)
	if err == nil {
		m.receipt.NativeIDs, err = readIDs(made)
	}
	if err != nil {
		return unusable("conclusions_create", answer.status, answer.body, "is no list of conclusions: "+err.Error())
	}
	return nil
}

// deleteConclusion asks first whether the conclusion is the scope's: a fixed workspace holds others'.
func (m *mutation) deleteConclusion() error {
	id := m.params.need("id")
	if err := m.checked("id"); err != nil {
		return err
	}
	r := request{route: "conclusions_list", workspace: m.native.workspace, body: filters(func(e *jsontext.Encoder) {
		field(e, "observed_id", m.native.user)
		field(e, "id", id)
	})}
	m.receipt.Status = "no_change"
	if !isNativeID(id) {
		return nil
	}
	ids, _, err := m.settings.listIDs(m.call, r, 1, 1, false)
	if err != nil || !slices.Equal(ids, []string{id}) {
		return err
	}
	gone, err := m.settings.remove(m.call, request{route: "conclusion_delete", workspace: m.native.workspace, conclusion: id})
	if gone {
		m.receipt.Status, m.receipt.NativeIDs = "applied", []string{id}
	}
	return err
}

func (m *mutation) setCard() error {
	lines := m.params.texts("lines")
	if _, given := m.params.given["lines"]; !given {
		m.params.wrong("lines", "missing")
	}
	if err := m.checked("lines"); err != nil {
		return err
	}
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("peer_card")
	e.ArrStart()
	for _, line := range lines {
		e.Str(line)
	}
	e.ArrEnd()
	e.ObjEnd()
	_, err := m.settings.send(m.call, request{route: "card_put", workspace: m.native.workspace, peer: m.native.user, body: e.Bytes()})
	m.receipt.NativeIDs = []string{m.native.user}
	return err
}

func (m *mutation) deleteSession() error {
	session := m.native.session(m.params.need("session_id"))
	if err := m.checked("session_id"); err != nil {
		return err
	}
	gone, err := m.settings.remove(m.call, request{route: "session_delete", workspace: m.native.workspace, session: session})
	if m.receipt.NativeIDs = []string{session}; !gone {
		m.receipt.Status = "no_change"
	}
	return err
}

func (m *mutation) dream() error {
	kind := m.params.need("dream_type")
	session := m.params.text("session_id")
	var e jsontext.Encoder
	e.ObjStart()
	field(&e, "observer", m.native.user)
	field(&e, "dream_type", kind)
	if session != "" {
		field(&e, "session_id", m.native.session(session))
	}
	m.params.copy(&e, jsontext.Bool, "true or false", "rebuild")
	e.ObjEnd()
	if err := m.checked("dream_type", "session_id", "rebuild"); err != nil {
		return err
	}
	_, err := m.settings.send(m.call, request{route: "dream", workspace: m.native.workspace, body: e.Bytes()})
	m.receipt.NativeIDs = []string{m.native.user}
	return err
}
