package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Read returns up to limit entries with numbers beyond after that are not forgotten, and whether there may be more.
func (a *Archive) Read(ctx context.Context, after int64, limit int) (entries []Entry, more bool, err error) {
	return a.readMatching(ctx, after, limit, "", nil)
}

// readMatching is Read for the entries whose JSON matches; nil means all. It tests an entry before it decodes it. If
// person is not empty, it skips segments without events of this person.
func (a *Archive) readMatching(ctx context.Context, after int64, limit int, person string,
	matches func([]byte) bool) (entries []Entry, more bool, err error) {
	a.moving.RLock()
	defer a.moving.RUnlock()
	list, err := a.Segments(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, info := range list {
		if info.Last <= after {
			continue
		}
		if person != "" {
			whose, known, err := a.peopleOf(ctx, info)
			if err != nil {
				return nil, false, err
			}
			if known && !whose.has(person) {
				continue
			}
		}
		entries, err := a.ofSegment(info, after, limit, matches)
		if err != nil || len(entries) > 0 {
			return entries, true, err
		}
	}
	for {
		open, _, err := a.open(ctx, after, a.Settled(), pageBytes, limit)
		for _, e := range open {
			after = e.Seq
			if e.Forgotten == "" && (matches == nil || matches(e.Event)) {
				entries = append(entries, e.Entry)
			}
		}
		if err != nil || len(entries) > 0 || len(open) == 0 {
			return entries, len(entries) > 0, err
		}
	}
}

// ofSegment reads matching entries of a segment that are not forgotten. The last segment stays unpacked in memory.
func (a *Archive) ofSegment(info segments.Info, after int64, limit int, matches func([]byte) bool) (entries []Entry,
	err error) {
	a.unpackedMu.Lock()
	defer a.unpackedMu.Unlock()
	if a.unpacked != info {
		if a.text, err = segments.Read(a.Dir, info); err != nil {
			a.unpacked = segments.Info{}
			return nil, errDamaged(err.Error())
		}
		a.unpacked = info
	}
	for line := range bytes.Lines(a.text) {
		if number, ok := numberOf(line); ok && number <= after {
			continue
		}
		if matches != nil && !matches(line) {
			continue
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, errDamaged("segment " + info.Name() + ": a line cannot be read")
		}
		if e.Forgotten != "" {
			continue
		}
		if entries = append(entries, e); len(entries) == limit {
			break
		}
	}
	return entries, nil
}

// numberOf reads the number at the start of an entry's line without decoding the rest.
func numberOf(line []byte) (n int64, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	for i, c := range rest {
		if c < '0' || c > '9' {
			return n, ok && i > 0
		}
		n = n*10 + int64(c-'0')
	}
	return 0, false
}

// EachAfter visits the entries with numbers beyond after, in order.
func (a *Archive) EachAfter(ctx context.Context, after int64, visit func(*Entry, *abi.MemoryEvent) error) error {
	for {
		entries, more, err := a.Read(ctx, after, pageEntries)
		if err != nil || !more {
			return err
		}
		for i := range entries {
			event, err := entries[i].Decode()
			if err != nil {
				return err
			}
			if err := visit(&entries[i], event); err != nil {
				return err
			}
			after = entries[i].Seq
		}
	}
}

// CountAfter counts the entries with numbers beyond after that are not forgotten. Inside a segment the count is an
// estimate.
func (a *Archive) CountAfter(ctx context.Context, after int64) (n int64, err error) {
	a.moving.RLock()
	defer a.moving.RUnlock()
	list, err := a.Segments(ctx)
	if err != nil {
		return 0, err
	}
	for _, info := range list {
		entries := info.Entries - info.Forgotten
		switch {
		case info.Last <= after:
		case info.First > after:
			n += entries
		default:
			n += min(entries, info.Last-after)
		}
	}
	for from := numberKey(max(after, 0)); ; {
		records, err := a.Store.Records(ctx, a.entries, nil, from, 0)
		if err != nil {
			return 0, state.ContractError(err)
		}
		for _, r := range records {
			var e Entry
			if json.Unmarshal(r.Value, &e) == nil && e.Forgotten == "" {
				n++
			}
			from = r.Key
		}
		if len(records) < state.DefaultLimit {
			return n, nil
		}
	}
}

// Decode decodes the entry's event. A forgotten entry has none.
func (e *Entry) Decode() (*abi.MemoryEvent, error) {
	event := new(abi.MemoryEvent)
	if err := abi.Unmarshal(e.Event, event); err != nil {
		return nil, errDamaged(fmt.Sprintf("entry %d is not an event", e.Seq))
	}
	return event, nil
}
