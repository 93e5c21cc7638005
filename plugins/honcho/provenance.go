package main

import (
	"strconv"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenance tells where memory came from, as far as Honcho exposes it: the conclusions of a range of time; a conclusion with those derived from it; the
// messages of an event. From a conclusion only its session is known, not its messages.
//
// Errors: invalid_argument for a cursor that is not ours.
// Source: Honcho POST .../conclusions/list, filters on created_at, id and source_ids (a passthrough of columns, undocumented).
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	n := s.native(c)
	number := int64(1)
	if r.Cursor != "" {
		if number, err = strconv.ParseInt(r.Cursor, 10, 64); err != nil || number < 1 {
			return nil, abi.NewError(abi.CodeInvalidArgument, "cursor: not one of an earlier answer")
		}
	}
	size := r.Limit
	if size < 1 || size > pageSize {
		size = pageSize
	}
	answer := &abi.Provenance{Trace: s.trace()}
	answer.Trace.NativeOperation = "conclusions_list"
	switch {
	case r.EventID != "":
		answer.Trace.NativeOperation = "messages_list"
		return answer, s.ofEvent(c, n, r.EventID, answer)
	case r.NativeID != "":
		return answer, s.ofConclusion(c, n, r.NativeID, number, size, answer)
	}
	return answer, s.conclusionsInto(c, n, answer, number, size, func(e *jsontext.Encoder) {
		within(e, "created_at")
		if r.From != "" {
			field(e, "gte", r.From)
		}
		if r.To != "" {
			field(e, "lte", r.To)
		}
		e.ObjEnd()
	})
}

// ofEvent gives the messages of an event, wherever they are.
func (s *settings) ofEvent(c *sdk.Call, n *native, event string, into *abi.Provenance) error {
	complete, err := s.sessionsOf(c, n, func(session string) (bool, error) {
		found, err := s.messagesOf(c, n, session, event)
		for i := range found {
			found[i].describe(added(into, found[i].raw))
		}
		return len(found) > 0, err
	})
	if err == nil && !complete {
		into.Trace.Warnings = append(into.Trace.Warnings, "sessions_ceiling: the scope has more sessions than are looked through for one event")
	}
	return err
}

// ofConclusion gives a conclusion and those that name it as their source. Honcho takes "*" for any id, so only what can be an id is asked for.
func (s *settings) ofConclusion(c *sdk.Call, n *native, id string, number, size int64, into *abi.Provenance) error {
	if !isNativeID(id) {
		into.Trace.Warnings = append(into.Trace.Warnings, "not_native: no id of Honcho looks like this")
		return nil
	}
	if number == 1 {
		if err := s.conclusionsInto(c, n, into, 1, 1, func(e *jsontext.Encoder) { field(e, "id", id) }); err != nil {
			return err
		}
	}
	return s.conclusionsInto(c, n, into, number, size, func(e *jsontext.Encoder) {
		within(e, "source_ids")
		e.FieldStart("contains")
		e.ArrStart()
		e.Str(id)
		e.ArrEnd()
		e.ObjEnd()
	})
}

// conclusionsInto adds a page of the user's conclusions that meet a further condition.
func (s *settings) conclusionsInto(c *sdk.Call, n *native, into *abi.Provenance, number, size int64, condition func(*jsontext.Encoder)) error {
	r := request{route: "conclusions_list", workspace: n.workspace, body: filters(func(e *jsontext.Encoder) {
		n.about(e)
		condition(e)
	})}
	items, head, err := s.list(c, r, number, size, false)
	if err != nil {
		return err
	}
	found, err := readConclusions(items)
	if err != nil {
		return unusable(r.route, 200, nil, "is no list of conclusions: "+err.Error())
	}
	derived := instant{text: into.Trace.LastDerivedAt}
	for i := range found {
		x := &found[i]
		if x.observer != n.user || x.observed != n.user {
			return breach(r.route, "a conclusion about another peer", x.raw)
		}
		if len(into.Items) > 0 && into.Items[0].Evidence.NativeID == x.id {
			continue // the one that was asked for
		}
		x.describe(added(into, x.raw))
		derived.replace(x.createdAt, time.Time.After)
	}
	into.Trace.LastDerivedAt, into.NextCursor = derived.text, ""
	if number < head.pages {
		into.NextCursor = sdk.Itoa(number + 1)
	}
	return nil
}

// added is the evidence of a further item.
func added(into *abi.Provenance, native abi.Raw) *abi.Evidence {
	into.Items = append(into.Items, abi.ProvenanceItem{Native: native})
	e := &into.Items[len(into.Items)-1].Evidence
	e.Rank = int64(len(into.Items))
	return e
}

// isNativeID tells whether a text can be an id of Honcho: letters, digits, "_" and "-".
func isNativeID(id string) bool {
	for i := range len(id) {
		if !sdk.AlphaNumeric(id[i]) && id[i] != '_' && id[i] != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 512
}
