package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Bounds of a page of messages.
const (
	provenanceItems = 100
	provenanceBytes = 1 << 20
)

// provenance returns messages as they are stored: one by its number, those of an event, or those of a time range, in
// the order of recording. A message's source is its event.
//
// Errors: not_found for a number or an event without messages.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	st := state.Of(c)
	reader := newReader(st, s, sdk.ContextOf(s.config, c.Scope), "")
	answer := &abi.Provenance{Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list"}}
	switch {
	case r.NativeID != "":
		n := numberOf(r.NativeID)
		if n < 1 || n > readCollection(st).messages || !reader.add(answer, n, n) {
			st.Fail(abi.NewError(abi.CodeNotFound, "native_id: no message has the id "+strconv.Quote(r.NativeID)))
		}
	case r.EventID != "":
		x := eventEntry{last: -1}
		if st.Load(eventKey(r.EventID), x.members()...) == 0 {
			st.Fail(abi.NewError(abi.CodeNotFound, "event_id: the scope has no event "+strconv.Quote(r.EventID)))
		}
		reader.add(answer, x.first, x.last)
	default:
		reader.inRange(answer, r)
	}
	return answer, st.Err()
}

// add adds those of the messages with these numbers that exist, and reports whether there were any.
func (r *reader) add(to *abi.Provenance, first, last int64) bool {
	before := len(to.Items)
	for n := first; n <= last; n++ {
		if m := r.message(n); m != nil {
			addMessage(to, n, &m.message)
		}
	}
	return len(to.Items) > before
}

// inRange adds a page of the messages of a range of time. The cursor is the number of the last one looked at.
func (r *reader) inRange(to *abi.Provenance, q *abi.ProvenanceRequest) {
	from, until, limit := timeOf(q.From), timeOf(q.To), q.Limit
	if limit == 0 {
		limit = provenanceItems
	}
	after, _ := strconv.ParseInt(q.Cursor, 10, 64)
	bytes := 0
	for entry := range r.Entries(messageLog, max(0, after)+1, readCollection(r.State).messages) {
		var m message
		if object.Decode(entry.Data, m.members()...) != nil {
			r.Fail(state.Unreadable(nativeID(entry.Seq)))
			return
		}
		if at := timeOf(m.timestamp); m.eventID == "" || at.Before(from) || at.After(until) {
			continue
		}
		if int64(len(to.Items)) == limit || bytes > 0 && bytes+len(entry.Data) > provenanceBytes {
			to.NextCursor = sdk.Itoa(entry.Seq - 1)
			return
		}
		bytes += len(entry.Data)
		addMessage(to, entry.Seq, &m)
	}
}

func addMessage(to *abi.Provenance, n int64, m *message) {
	to.Items = append(to.Items, abi.ProvenanceItem{Evidence: abi.Evidence{Rank: int64(len(to.Items) + 1),
		NativeID: nativeID(n), NativeType: "message", Text: m.document(), CreatedAt: m.timestamp,
		TimeBasis: abi.TimeEvent, SourceEventIDs: []string{m.eventID}}, Native: object.Encode(m.members()...)})
}
