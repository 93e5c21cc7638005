package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget deletes memories that forgotten events alone support. All of the cube is listed: after async extraction MemOS
// keeps an event's id in the sources only, which cannot be filtered.
//
// Errors: backend (not_deleted) where MemOS still has what it said to have deleted.
func forget(b *backend, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	out := &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"memory": {}},
		DerivedMayRemain: []string{"MemOS's own logs, which hold every prompt and request"},
		Trace:            b.trace("POST /product/delete_memory")}
	if b.searchMode == searchMixture {
		out.DerivedMayRemain = append(out.DerivedMayRemain, "the search history of mode mixture in MemOS's Redis")
	}
	ids, mixed, all, err := b.meant(r)
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

// meant finds the memories that a request covers; mixed counts those that have other sources too. all: the whole cube
// was listed.
func (b *backend) meant(r *abi.ForgetRequest) (ids []string, mixed int, all bool, err error) {
	for page := int64(1); page <= inventoryPages; page++ {
		groups, a, err := b.list(listing{cube: b.cube, page: page, size: inventorySize})
		if err != nil {
			return nil, 0, false, err
		}
		more := false
		for _, g := range groups {
			more = more || g.total > page*inventorySize && len(g.items) > 0
			for _, m := range g.items {
				whole, part := m.meant(r)
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

// meant reports whether a request covers a memory: as a whole, or some of the events behind it.
func (m *item) meant(r *abi.ForgetRequest) (whole, part bool) {
	if slices.Contains(r.NativeIDs, m.id) || r.SessionID != "" && m.sessionID == sessionOf(r.SessionID) {
		return true, true
	}
	if r.From != "" {
		return m.meantByTime(r)
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

// meantByTime is meant for a time range. After async extraction the event's time is only in the sources.
func (m *item) meantByTime(r *abi.ForgetRequest) (whole, part bool) {
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
