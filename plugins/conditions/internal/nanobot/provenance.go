package nanobot

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// provenanceItems is the default number of items on a page.
const provenanceItems = 100

// Provenance returns what the memory derived from its messages, not the messages themselves: the item with an id, those
// derived from an event, or those of a time range. An item without a time, such as a file that is always rewritten as a
// whole, counts as made now.
//
// Errors: not_found for an id that no item has, and for an event that the scope does not have.
func (p *Plugin) Provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.Provenance {
		answer := &abi.Provenance{Trace: b.Trace("state_list")}
		var at index
		if r.EventID != "" && b.Load(eventKey(r.EventID), at.members()...) == 0 {
			b.Fail(abi.NewError(abi.CodeNotFound, "event_id: the scope has no event "+strconv.Quote(r.EventID)))
			return answer
		}
		limit, after := r.Limit, int64(0)
		if limit == 0 {
			limit = provenanceItems
		}
		if r.Cursor != "" {
			after, _ = strconv.ParseInt(r.Cursor, 10, 64)
		}
		n := int64(0) // number of items checked
		for x := range m.All() {
			if n++; n <= after || !covers(&x, r, b.Now) {
				continue
			}
			if int64(len(answer.Items)) == limit {
				answer.NextCursor = sdk.Itoa(n - 1)
				break
			}
			e := evidence([]Item{x})[0]
			e.Pointer, e.Rank = "", int64(len(answer.Items)+1)
			answer.Items = append(answer.Items, abi.ProvenanceItem{Evidence: e, Native: object.Encode(x.members()...)})
		}
		if r.NativeID != "" && len(answer.Items) == 0 {
			b.Fail(abi.NewError(abi.CodeNotFound, "native_id: no item has the id "+strconv.Quote(r.NativeID)))
		}
		return answer
	})
}

// covers reports whether a request covers an item.
func covers(x *Item, r *abi.ProvenanceRequest, now string) bool {
	switch {
	case r.NativeID != "":
		return x.ID == r.NativeID
	case r.EventID != "":
		return slices.Contains(x.Events, r.EventID)
	}
	at, err := abi.ParseTime(cmp.Or(rfc(x.Updated), rfc(x.Created), now))
	from, badFrom := abi.ParseTime(r.From)
	to, badTo := abi.ParseTime(r.To)
	return err == nil && badFrom == nil && badTo == nil && !at.Before(from) && !at.After(to)
}
