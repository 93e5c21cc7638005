package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenance lists entries of the current branch with their sources: the one with an id, those of an event of the slot, or those first seen in a range of time.
//
// Errors: not_found for an id or an event that is not there.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	b, v, err := l.onView("")
	if err != nil {
		return nil, err
	}
	answer := &abi.Provenance{Trace: l.s.trace("view")}
	switch {
	case r.NativeID != "":
		e, err := l.entryOf(v, r.NativeID)
		if err != nil {
			return nil, err
		}
		if e == nil || !l.mayShow(e) || e.ForgottenAt != "" {
			return nil, abi.NewError(abi.CodeNotFound, "native_id: the branch "+b.Name+" has no entry "+strconv.Quote(r.NativeID))
		}
		answer.Items = append(answer.Items, item(e, 1))
		return answer, nil
	case r.EventID != "":
		return answer, l.fromEvent(v, r.EventID, answer)
	}
	return answer, l.inRange(v, r, answer)
}

func item(e *entry, rank int64) abi.ProvenanceItem {
	return abi.ProvenanceItem{Evidence: e.evidence("", rank), Native: e.encode()}
}

// fromEvent lists what an event of the slot has brought about.
func (l *ledger) fromEvent(v *view, id string, answer *abi.Provenance) error {
	known, version, err := l.Get(sourceKey(id))
	if err != nil {
		return err
	}
	if version == 0 {
		return abi.NewError(abi.CodeNotFound, "event_id: the scope has no event "+strconv.Quote(id))
	}
	_, commitID, _ := strings.Cut(string(known), " ")
	if !isID(commitID) {
		return nil
	}
	k, err := l.theCommit(commitID)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, eventID := range k.Events {
		e, err := l.entryOf(v, eventID)
		if err != nil {
			return err
		}
		if e != nil && l.mayShow(e) && e.ForgottenAt == "" && !seen[e.Lineage] {
			seen[e.Lineage] = true
			answer.Items = append(answer.Items, item(e, int64(len(answer.Items)+1)))
		}
	}
	return nil
}

// inRange lists the active entries first seen in a range of time, the last touched first.
func (l *ledger) inRange(v *view, r *abi.ProvenanceRequest, answer *abi.Provenance) error {
	from, to := inSeconds(r.From), inSeconds(r.To)
	limit := int(r.Limit)
	if limit == 0 {
		limit = 100
	}
	page := abi.StateListRequest{Prefix: v.prefix + "item/", Values: true, Limit: pageItems}
	if r.Cursor != "" {
		page.After = page.Prefix + r.Cursor
	}
	for {
		items, more, err := l.List(page)
		if err != nil {
			return err
		}
		for _, i := range items {
			e, err := unpack(i.Value)
			if err != nil {
				return damaged(i.Key)
			}
			if l.mayShow(e) && e.CreatedAt >= from && (to == "" || e.CreatedAt <= to) {
				if len(answer.Items) == limit {
					answer.NextCursor = strings.TrimPrefix(page.After, page.Prefix)
					return nil
				}
				answer.Items = append(answer.Items, item(e, int64(len(answer.Items)+1)))
			}
			page.After = i.Key
		}
		if !more {
			return nil
		}
	}
}
