package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Archive is what the person who runs a slot can do with its archive. A Host implements it, and so does a client of a
// slot's HTTP door.
type Archive interface {
	// ArchiveStats says what the archive holds.
	ArchiveStats(ctx context.Context) (*abi.ArchiveStats, error)
	// ArchivePage gives archived events in the order in which they were accepted.
	ArchivePage(ctx context.Context, request *abi.ArchiveRequest) (*abi.ArchivePage, error)
	// ArchiveAdd adds events that the archive does not have. Memory is not touched. What was forgotten is left out: it
	// is neither added nor present.
	ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (*abi.ArchiveReceipt, error)
	// ArchiveCheck reads all of the archive and says what is damaged.
	ArchiveCheck(ctx context.Context) (*abi.ArchiveCheck, error)
}

var _ Archive = (*Host)(nil)

// opArchiveAdd names ArchiveAdd in errors.
const opArchiveAdd = "archive_add"

// ArchiveStats implements Archive.
func (h *Host) ArchiveStats(ctx context.Context) (*abi.ArchiveStats, error) {
	a := &h.archive
	a.moving.RLock()
	defer a.moving.RUnlock()
	stats := &abi.ArchiveStats{On: a.on, RetentionMS: a.retention.Milliseconds()}
	note := func(oldest, newest string) {
		if stats.Oldest == "" {
			stats.Oldest = oldest
		}
		stats.Newest = newest
	}
	list, err := a.segments(ctx)
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
	err = eachRecord(ctx, a.store, tableArchive, nil, func(r state.KeyValue) error {
		var e archived
		if json.Unmarshal(r.Value, &e) != nil {
			return errArchive("an entry cannot be read")
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

// ArchivePage implements Archive.
func (h *Host) ArchivePage(ctx context.Context, request *abi.ArchiveRequest) (*abi.ArchivePage, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	limit := archivePage
	if request.Limit > 0 {
		limit = int(min(request.Limit, archivePage))
	}
	page := &abi.ArchivePage{Events: []abi.MemoryEvent{}, Last: request.After, More: true}
	for page.More && len(page.Events) < limit {
		entries, more, err := h.archive.read(ctx, page.Last, limit-len(page.Events))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			event, err := e.event()
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

func (e *archived) event() (*abi.MemoryEvent, error) {
	event := new(abi.MemoryEvent)
	if err := abi.Unmarshal(e.Event, event); err != nil {
		return nil, errArchive(fmt.Sprintf("entry %d is not an event", e.Seq))
	}
	return event, nil
}

// read returns up to limit entries with numbers beyond after that are not forgotten, and whether there may be more.
func (a *archive) read(ctx context.Context, after int64, limit int) (entries []archived, more bool, err error) {
	a.moving.RLock()
	defer a.moving.RUnlock()
	list, err := a.segments(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, info := range list {
		if info.Last <= after {
			continue
		}
		entries, err := a.ofSegment(info, after, limit)
		if err != nil || len(entries) > 0 {
			return entries, true, err
		}
	}
	for {
		open, _, err := a.open(ctx, after, a.settled(), archivePageBytes, limit)
		for _, e := range open {
			after = e.Seq
			if e.Forgotten == "" {
				entries = append(entries, e.archived)
			}
		}
		if err != nil || len(entries) > 0 || len(open) == 0 {
			return entries, len(entries) > 0, err
		}
	}
}

// ofSegment reads entries of a segment that are not forgotten. The one that was read last is kept unpacked.
func (a *archive) ofSegment(info segments.Info, after int64, limit int) (entries []archived, err error) {
	a.unpackedMu.Lock()
	defer a.unpackedMu.Unlock()
	if a.unpacked != info {
		if a.text, err = segments.Read(a.dir, info); err != nil {
			a.unpacked = segments.Info{}
			return nil, errArchive(err.Error())
		}
		a.unpacked = info
	}
	for line := range bytes.Lines(a.text) {
		if number, ok := numberOf(line); ok && number <= after {
			continue
		}
		var e archived
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, errArchive("segment " + info.Name() + ": a line cannot be read")
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

// numberOf reads the number at the beginning of an entry's line, without the rest of it.
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

// eventIdentity is the hash of an event's scope and id: what makes it the same event wherever it was recorded.
type eventIdentity [16]byte

func identityOf(e *abi.MemoryEvent) eventIdentity {
	return digestOf(e.RunID, e.UserID, e.AgentID, e.EventID)
}

// archiveAddEvents is how many events an ArchiveAdd takes at most.
const archiveAddEvents = 1000

// ArchiveAdd implements Archive.
func (h *Host) ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (_ *abi.ArchiveReceipt, err error) {
	a := &h.archive
	switch {
	case !a.on:
		return nil, abi.NewError(abi.CodeUnsupported, "the slot keeps no archive").WithReason("archive_off").
			WithHint("set memory.archive: true")
	case len(batch.Events) == 0 || len(batch.Events) > archiveAddEvents:
		return nil, inOperation(opArchiveAdd, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("events: want 1 to %d, found %d", archiveAddEvents, len(batch.Events))))
	}
	for i := range batch.Events {
		if err := batch.Events[i].Validate(); err != nil {
			e := *abi.AsError(err)
			e.Operation, e.Message = opArchiveAdd, fmt.Sprintf("events[%d].%s", i, e.Message)
			return nil, &e
		}
	}
	h.archiveAdds.Lock()
	defer h.archiveAdds.Unlock()
	known, err := a.identities(ctx)
	if err != nil {
		return nil, err
	}
	receipt := new(abi.ArchiveReceipt)
	var entries []archived
	var added []eventIdentity
	for i := range batch.Events {
		e := &batch.Events[i]
		forgotten, err := h.wasForgotten(ctx, e)
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
		entries = append(entries, archived{Event: json.RawMessage(abi.Marshal(e))})
	}
	receipt.Added = int64(len(entries))
	if len(entries) == 0 {
		return receipt, nil
	}
	var b state.Batch
	done, err := a.add(&b, entries)
	if err != nil {
		return nil, err
	}
	_, err = a.store.Commit(context.WithoutCancel(ctx), &b)
	done(err == nil)
	if err != nil {
		for _, id := range added {
			delete(known, id)
		}
		return nil, stateError(err)
	}
	return receipt, nil
}

// identities reads which events the archive has. Events that are recorded after the first call are not in it: an import
// of one of them adds it a second time, which an export leaves out. The caller holds archiveAdds.
func (a *archive) identities(ctx context.Context) (map[eventIdentity]bool, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	known = map[eventIdentity]bool{}
	err := a.each(ctx, func(_ *archived, event *abi.MemoryEvent) error {
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

// each visits all entries in order.
func (a *archive) each(ctx context.Context, visit func(entry *archived, event *abi.MemoryEvent) error) error {
	return a.eachAfter(ctx, 0, visit)
}

// archiveProblems is how many problems a check lists at most.
const archiveProblems = 100

// ArchiveCheck implements Archive.
func (h *Host) ArchiveCheck(ctx context.Context) (*abi.ArchiveCheck, error) {
	a := &h.archive
	a.moving.RLock()
	defer a.moving.RUnlock()
	check := &abi.ArchiveCheck{Problems: []string{}}
	problem := func(format string, about ...any) {
		if len(check.Problems) < archiveProblems {
			check.Problems = append(check.Problems, fmt.Sprintf(format, about...))
		}
	}
	list, err := a.segments(ctx)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	entry := func(where string, line []byte) {
		var e archived
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
		text, err := segments.Read(a.dir, info)
		if err != nil {
			problem("%s: its %d events are lost", err, info.Entries)
			last = info.Last
			continue
		}
		for line := range bytes.Lines(text) {
			entry("segment "+info.Name(), line)
		}
	}
	err = eachRecord(ctx, a.store, tableArchive, nil, func(r state.KeyValue) error {
		entry("not sealed yet", r.Value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	strays, err := segments.Strays(a.dir, list)
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "archive: "+err.Error(), err).WithReason("archive")
	}
	for _, path := range strays {
		problem("%s belongs to no segment: the archive does not use it", path)
	}
	return check, nil
}
