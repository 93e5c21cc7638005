package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenanceItems is the default number of turns on a page.
const provenanceItems = 100

// provenance returns turns as they are stored: one by its key, that of an event, or those of a time range, newest
// first. A turn is its own source.
//
// Errors: not_found for a key or an event without a turn.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.Provenance{Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list"}}
	key, what := r.NativeID, "native_id: no turn has the id "+strconv.Quote(r.NativeID)
	switch {
	case r.EventID != "":
		held, _, err := c.Get(eventKey(r.EventID))
		if err != nil {
			return nil, err
		}
		key, what = string(held), "event_id: the scope has no event "+strconv.Quote(r.EventID)
	case r.NativeID == "":
		return answer, turnsOf(c, r, answer)
	}
	if len(key) == turnKeyLength && strings.HasPrefix(key, turnPrefix) {
		stored, version, err := c.Get(key)
		if err != nil {
			return nil, err
		}
		if version != 0 {
			return answer, addTurn(answer, key, stored)
		}
	}
	return nil, abi.NewError(abi.CodeNotFound, what)
}

// turnsOf adds the turns of a range of time.
func turnsOf(c *sdk.Call, r *abi.ProvenanceRequest, answer *abi.Provenance) error {
	from, err := abi.ParseTime(r.From)
	if err != nil {
		return err // the host has checked it
	}
	to, err := abi.ParseTime(r.To)
	if err != nil {
		return err
	}
	limit := r.Limit
	if limit == 0 {
		limit = provenanceItems
	}
	after := max(timeKey(to), r.Cursor)
	bytes := 0
	for more := true; more; {
		var items []sdk.Item
		if items, more, err = c.List(abi.StateListRequest{Prefix: turnPrefix, After: after, Limit: limit + 1 -
			int64(len(answer.Items)), Values: true}); err != nil {
			return err
		}
		for _, item := range items {
			if item.Key > timeKey(from)+"0" { // older than all turns at that time
				return nil
			}
			if int64(len(answer.Items)) == limit || bytes > 0 && bytes+len(item.Value) > pageBytes {
				answer.NextCursor = after
				return nil
			}
			if err := addTurn(answer, item.Key, item.Value); err != nil {
				return err
			}
			after, bytes = item.Key, bytes+len(item.Value)
		}
	}
	return nil
}

func addTurn(to *abi.Provenance, key string, stored []byte) error {
	var e abi.MemoryEvent
	if abi.Unmarshal(stored, &e) != nil {
		return unreadable(key)
	}
	to.Items = append(to.Items, abi.ProvenanceItem{Evidence: abi.Evidence{Rank: int64(len(to.Items) + 1), NativeID: key,
		NativeType: "turn", CreatedAt: e.Timestamp, TimeBasis: abi.TimeEvent, SourceEventIDs: []string{e.EventID}},
		Native: append(abi.Raw(nil), stored...)})
	return nil
}
