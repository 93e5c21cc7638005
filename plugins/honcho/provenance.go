package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// provenance reports where memory came from, as far as Honcho exposes it: the conclusions of a time range; a conclusion
// with those derived from it; the messages of an event. Of a conclusion only the session is known, not the messages.
//
// Errors: invalid_argument for a cursor that is not ours.
// Source: Honcho POST .../conclusions/list, filters on created_at, id and source_ids (a passthrough of columns,
// undocumented).
func provenance(b *backend, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	number := int64(1)
	if r.Cursor != "" {
		var err error
		if number, err = strconv.ParseInt(r.Cursor, 10, 64); err != nil || number < 1 {
			return nil, abi.NewError(abi.CodeInvalidArgument, "cursor: not one of an earlier answer")
		}
	}
	size := r.Limit
	if size < 1 || size > pageSize {
		size = pageSize
	}
	answer := &abi.Provenance{Trace: b.trace("conclusions_list")}
	switch {
	case r.EventID != "":
		return answer, b.ofEvent(r.EventID, answer)
	case r.NativeID != "":
		return answer, b.ofConclusion(r.NativeID, number, size, answer)
	}
	return answer, b.conclusionsInto(answer, number, size,
		"created_at", wire.Object{"gte", wire.Some(r.From), "lte", wire.Some(r.To)})
}

// ofEvent returns the messages of an event, in whatever session they are.
func (b *backend) ofEvent(event string, into *abi.Provenance) error {
	into.Trace.NativeOperation = "messages_list"
	complete, err := b.sessionsOf(func(session string) (bool, error) {
		found, err := b.messagesOf(session, event)
		for _, m := range found {
			add(into, m.evidence(), m.raw)
		}
		return len(found) > 0, err
	})
	if err == nil && !complete {
		into.Trace.Warnings = append(into.Trace.Warnings, "sessions_ceiling: the scope has more sessions than are "+
			"looked through for one event")
	}
	return err
}

// ofConclusion returns a conclusion and those that list it as their source. Honcho treats "*" as any id, so only valid
// ids are requested.
func (b *backend) ofConclusion(id string, number, size int64, into *abi.Provenance) error {
	if !isNativeID(id) {
		into.Trace.Warnings = append(into.Trace.Warnings, "not_native: no id of Honcho looks like this")
		return nil
	}
	if number == 1 {
		if err := b.conclusionsInto(into, 1, 1, "id", id); err != nil {
			return err
		}
	}
	return b.conclusionsInto(into, number, size, "source_ids", wire.Object{"contains", []string{id}})
}

// conclusionsInto adds a page of the people's conclusions that meet a further condition, given as name and value.
func (b *backend) conclusionsInto(into *abi.Provenance, number, size int64, condition ...any) error {
	r := request{route: "conclusions_list", body: filters(b.byPeople(condition...))}
	found, head, err := pageOf(b, r, number, size, readConclusion)
	if err != nil {
		return err
	}
	var derived span
	derived.add(into.Trace.LastDerivedAt)
	for _, x := range found {
		if !b.ofPeople(&x) {
			return breach(r.route, "a conclusion about another peer", x.raw)
		}
		if len(into.Items) > 0 && into.Items[0].Evidence.NativeID == x.id {
			continue // the requested one
		}
		add(into, x.evidence(), x.raw)
		derived.add(x.createdAt)
	}
	into.Trace.LastDerivedAt, into.NextCursor = derived.newest, ""
	if number < head.pages {
		into.NextCursor = sdk.Itoa(number + 1)
	}
	return nil
}

// add puts a further item into an answer.
func add(into *abi.Provenance, e abi.Evidence, native abi.Raw) {
	e.Rank = int64(len(into.Items) + 1)
	into.Items = append(into.Items, abi.ProvenanceItem{Evidence: e, Native: native})
}

// isNativeID reports whether a text can be an id of Honcho: letters, digits, "_" and "-".
func isNativeID(id string) bool {
	for i := range len(id) {
		if !sdk.AlphaNumeric(id[i]) && id[i] != '_' && id[i] != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 512
}
