package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget deletes memories that only forgotten events support. It lists the whole cube, because after async extraction
// MemOS keeps an event's id only in the sources, which cannot be filtered by.
//
// Errors: backend (not_deleted) if MemOS still has a memory that it reported as deleted.
func forget(b *backend, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	out := &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"memory": {}},
		DerivedMayRemain: []string{"MemOS's own logs, which hold every prompt and request"},
		Trace:            b.trace("POST /product/delete_memory")}
	if b.searchMode == searchMixture {
		out.DerivedMayRemain = append(out.DerivedMayRemain, "the search history of mode mixture in MemOS's Redis")
	}
	ids, mixed, all, err := b.findCovered(r)
	if err == nil && len(ids) > 0 {
		_, err = b.deleteAll(ids)
	}
	if err != nil {
		return nil, err
	}
	out.Removed["memory"], out.Trace.NativeIDs = append(out.Removed["memory"], ids...), ids
	if mixed > 0 {
		out.DerivedMayRemain = append(out.DerivedMayRemain, "memories that MemOS made from these events and others: "+
			sdk.Itoa(mixed))
	}
	if !all {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "memories behind the first "+
			sdk.Itoa(inventoryPages*inventorySize)+" of the cube, which were not looked at")
	}
	return out, nil
}

// findCovered finds the memories that a request covers; mixed counts those that have other sources too. all: the whole
// cube was listed.
func (b *backend) findCovered(r *abi.ForgetRequest) (ids []string, mixed int, all bool, err error) {
	for page := int64(1); page <= inventoryPages; page++ {
		groups, a, err := b.list(listing{cube: b.cube, page: page, size: inventorySize})
		if err != nil {
			return nil, 0, false, err
		}
		more := false
		for _, g := range groups {
			more = more || g.total > page*inventorySize && len(g.items) > 0
			for _, m := range g.items {
				whole, part := m.coveredBy(r)
				if whole && !slices.Contains(ids, m.id) {
					ids = append(ids, strings.Clone(m.id))
				} else if part && !whole {
					mixed++
				}
			}
		}
		if !more {
			return ids, mixed, true, nil
		}
		b.Reuse(a.body)
	}
	return ids, mixed, false, nil
}

// coveredBy reports whether a request covers a memory: as a whole, or some of the events behind it.
func (m *item) coveredBy(r *abi.ForgetRequest) (whole, part bool) {
	if slices.Contains(r.NativeIDs, m.id) || r.SessionID != "" && m.sessionID == sessionOf(r.SessionID) {
		return true, true
	}
	if r.From != "" {
		return m.coveredByTime(r)
	}
	events := m.events()
	for _, id := range events {
		part = part || slices.Contains(r.EventIDs, id)
		whole = part
	}
	for _, id := range events {
		whole = whole && slices.Contains(r.EventIDs, id)
	}
	return whole, part
}

// coveredByTime is coveredBy for a time range. After async extraction the event's time is only in the sources.
func (m *item) coveredByTime(r *abi.ForgetRequest) (whole, part bool) {
	times := []string{}
	for _, s := range m.sources {
		if s.chatTime != "" {
			times = append(times, s.chatTime)
		}
	}
	if len(times) == 0 {
		times = append(times, m.eventTime)
	}
	whole = true
	for _, at := range times {
		is := sdk.Forgets(r, "", at)
		whole, part = whole && is, part || is
	}
	return whole, part
}
