package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// errAdd names ArchiveAdd in an error.
func errAdd(e *abi.Error) error {
	e.Operation = "archive_add"
	return e
}

// ArchiveStats implements host.Archive.
func (a *Archive) ArchiveStats(ctx context.Context) (*abi.ArchiveStats, error) {
	a.moving.RLock()
	defer a.moving.RUnlock()
	stats := &abi.ArchiveStats{On: a.On, RetentionMS: a.Retention.Milliseconds()}
	note := func(oldest, newest string) {
		if stats.Oldest == "" {
			stats.Oldest = oldest
		}
		stats.Newest = newest
	}
	list, err := a.Segments(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range list {
		stats.Segments++
		stats.Events += info.Entries - info.Forgotten
		stats.SegmentBytes += info.FileBytes
		stats.TextBytes += info.TextBytes
		note(info.Oldest, info.Newest)
	}
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		var e Entry
		if json.Unmarshal(r.Value, &e) != nil {
			return errDamaged("an entry cannot be read")
		}
		stats.OpenBytes += int64(len(r.Value))
		if e.Forgotten == "" {
			stats.Events++
			stats.OpenEvents++
			note(e.At, e.At)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// ArchivePage implements host.Archive.
func (a *Archive) ArchivePage(ctx context.Context, request *abi.ArchiveRequest) (*abi.ArchivePage, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	limit := pageEntries
	if request.Limit > 0 {
		limit = int(min(request.Limit, pageEntries))
	}
	page := &abi.ArchivePage{Events: []abi.MemoryEvent{}, Last: request.After, More: true}
	for page.More && len(page.Events) < limit {
		entries, more, err := a.Read(ctx, page.Last, limit-len(page.Events))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			event, err := e.Decode()
			if err != nil {
				return nil, err
			}
			page.Last = e.Seq
			if askedFor(request, event) {
				page.Events = append(page.Events, *event)
			}
		}
		page.More = more
		if request.EventID == "" { // one look, whatever it gave: a page is small where a segment ends
			break
		}
	}
	return page, nil
}

// askedFor reports whether an event belongs to a page.
func askedFor(request *abi.ArchiveRequest, e *abi.MemoryEvent) bool {
	s := request.Scope
	return s == nil || e.EventID == request.EventID && e.RunID == s.RunID && e.UserID == s.PersonaID &&
		(s.AgentID == "" || e.AgentID == s.AgentID)
}

// eventIdentity is the hash of an event's scope and id: what makes it the same event wherever it was recorded.
type eventIdentity [16]byte

func identityOf(e *abi.MemoryEvent) eventIdentity {
	name, _ := json.Marshal([]string{e.RunID, e.UserID, e.AgentID, e.EventID}) // of strings: no error
	sum := sha256.Sum256(name)
	return eventIdentity(sum[:16])
}

// AddMost is how many events an ArchiveAdd takes at most.
const AddMost = 1000

// ArchiveAdd implements host.Archive.
func (a *Archive) ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (_ *abi.ArchiveReceipt, err error) {
	switch {
	case !a.On:
		return nil, abi.NewError(abi.CodeUnsupported, "the slot keeps no archive").WithReason("archive_off").
			WithHint("set memory.archive: true")
	case len(batch.Events) == 0 || len(batch.Events) > AddMost:
		return nil, errAdd(abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("events: want 1 to %d, found %d", AddMost, len(batch.Events))))
	}
	for i := range batch.Events {
		if err := batch.Events[i].Validate(); err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("events[%d].%s", i, e.Message)
			return nil, errAdd(&e)
		}
	}
	a.adding.Lock()
	defer a.adding.Unlock()
	known, err := a.identities(ctx)
	if err != nil {
		return nil, err
	}
	receipt := new(abi.ArchiveReceipt)
	var entries []Entry
	var added []eventIdentity
	for i := range batch.Events {
		e := &batch.Events[i]
		forgotten, err := a.Forgotten(ctx, e)
		if err != nil {
			return nil, err
		}
		id := identityOf(e)
		if forgotten {
			continue
		}
		if known[id] {
			receipt.Present++
			continue
		}
		known[id] = true
		added = append(added, id)
		entries = append(entries, Entry{Event: json.RawMessage(abi.Marshal(e))})
	}
	receipt.Added = int64(len(entries))
	if len(entries) == 0 {
		return receipt, nil
	}
	var b state.Batch
	done, err := a.Add(&b, entries)
	if err != nil {
		return nil, err
	}
	_, err = a.Store.Commit(context.WithoutCancel(ctx), &b)
	done(err == nil)
	if err != nil {
		for _, id := range added {
			delete(known, id)
		}
		return nil, state.ContractError(err)
	}
	return receipt, nil
}

// identities reads which events the archive has. Events that are recorded after the first call are not in it: an import
// of one of them adds it a second time, which an export leaves out. The caller holds adding.
func (a *Archive) identities(ctx context.Context) (map[eventIdentity]bool, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	known = map[eventIdentity]bool{}
	err := a.EachAfter(ctx, 0, func(_ *Entry, event *abi.MemoryEvent) error {
		known[identityOf(event)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.known = known
	a.mu.Unlock()
	return known, nil
}

// problemsMost is how many problems a check lists at most.
const problemsMost = 100

// ArchiveCheck implements host.Archive.
func (a *Archive) ArchiveCheck(ctx context.Context) (*abi.ArchiveCheck, error) {
	a.changing.Lock() // a segment that is being made has a file before it has a record
	defer a.changing.Unlock()
	a.moving.RLock()
	defer a.moving.RUnlock()
	check := &abi.ArchiveCheck{Problems: []string{}}
	problem := func(format string, about ...any) {
		if len(check.Problems) < problemsMost {
			check.Problems = append(check.Problems, fmt.Sprintf(format, about...))
		}
	}
	list, err := a.Segments(ctx)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	entry := func(where string, line []byte) {
		var e Entry
		event := new(abi.MemoryEvent)
		readable := json.Unmarshal(line, &e) == nil
		if readable && e.Forgotten == "" {
			readable = abi.Unmarshal(e.Event, event) == nil
		}
		switch {
		case !readable:
			problem("%s: entry after %d cannot be read", where, last)
		case e.Seq <= last:
			problem("%s: entry %d follows entry %d", where, e.Seq, last)
		case e.Forgotten != "" && len(e.Event) > 0:
			problem("%s: entry %d is marked as forgotten and still has its event", where, e.Seq)
		case e.Forgotten != "":
			last = e.Seq
		case event.Validate() != nil:
			problem("%s: entry %d is not a valid event", where, e.Seq)
		default:
			check.Events++
			last = e.Seq
		}
	}
	for _, info := range list {
		if err := ctx.Err(); err != nil {
			return nil, abi.WrapError(abi.CodeTimeout, "the check was ended", err)
		}
		check.Segments++
		text, err := segments.Read(a.Dir, info)
		if err != nil {
			problem("%s: its %d events are lost", err, info.Entries)
			last = info.Last
			continue
		}
		for line := range bytes.Lines(text) {
			entry("segment "+info.Name(), line)
		}
	}
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		entry("not sealed yet", r.Value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	strays, err := segments.Strays(a.Dir, list)
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "archive: "+err.Error(), err).WithReason("archive")
	}
	for _, path := range strays {
		problem("%s belongs to no segment: the archive does not use it", path)
	}
	return check, nil
}
