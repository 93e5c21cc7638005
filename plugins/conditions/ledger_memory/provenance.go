package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// provenance lists entries of the current branch with their sources: the one with an id, those of an event of the
// slot, or those first seen in a range of time.
//
// Errors: not_found for an id or an event that is not there.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return withLedger(c, func(l *ledger) *abi.Provenance {
		b, v := l.onView("")
		answer := &abi.Provenance{Trace: l.s.trace("view")}
		switch {
		case r.NativeID != "":
			e := v.entryOf(r.NativeID)
			if !l.traceable(e) {
				l.Fail(abi.NewError(abi.CodeNotFound,
					"native_id: the branch "+b.Name+" has no entry "+strconv.Quote(r.NativeID)))
				return nil
			}
			addItem(answer, e)
		case r.EventID != "":
			for _, e := range l.fromEvent(v, r.EventID) {
				addItem(answer, e)
			}
		default:
			l.inRange(v, r, answer)
		}
		return answer
	})
}

func addItem(to *abi.Provenance, e *entry) {
	to.Items = append(to.Items, abi.ProvenanceItem{Evidence: e.evidence("", int64(len(to.Items)+1)),
		Native: e.encode()})
}

// traceable returns an entry if it exists and may be shown.
func (l *ledger) traceable(e *entry) bool { return e != nil && e.active() && l.mayShow(e) }

// fromEvent returns the entries that come from an event of the slot, each once.
func (l *ledger) fromEvent(v *view, id string) []*entry {
	known, version := l.Get(sourceKey(id))
	if version == 0 {
		l.Fail(abi.NewError(abi.CodeNotFound, "event_id: the scope has no event "+strconv.Quote(id)))
	}
	_, commitID, _ := strings.Cut(string(known), " ")
	if !isID(commitID) {
		return nil
	}
	var found []*entry
	for _, eventID := range l.theCommit(commitID).Events {
		e := v.entryOf(eventID)
		if l.traceable(e) && !slices.ContainsFunc(found, func(x *entry) bool { return x.Lineage == e.Lineage }) {
			found = append(found, e)
		}
	}
	return found
}

// inRange returns the active entries first seen in a time range, most recently changed first.
func (l *ledger) inRange(v *view, r *abi.ProvenanceRequest, answer *abi.Provenance) {
	from, to, limit := state.InSeconds(r.From), state.InSeconds(r.To), int(r.Limit)
	if limit == 0 {
		limit = 100
	}
	page := abi.StateListRequest{Prefix: v.prefix + itemPart, Values: true, Limit: pageItems}
	if r.Cursor != "" {
		page.After = page.Prefix + r.Cursor
	}
	last := ""
	for item := range l.Items(page) {
		e := l.unpack(item.Key, item.Value)
		if l.mayShow(e) && e.CreatedAt >= from && (to == "" || e.CreatedAt <= to) {
			if len(answer.Items) == limit {
				answer.NextCursor = last
				return
			}
			addItem(answer, e)
		}
		last = strings.TrimPrefix(item.Key, page.Prefix)
	}
}
