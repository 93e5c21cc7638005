package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// errAdd adds the operation archive_add to an error.
func errAdd(e *abi.Error) error {
	e.Operation = "archive_add"
	return e
}

// ArchiveStats implements host.Archive.
func (a *Archive) ArchiveStats(ctx context.Context) (*report.ArchiveStats, error) {
	a.moving.RLock()
	defer a.moving.RUnlock()
	stats := &report.ArchiveStats{On: a.On, RetentionMS: a.Retention.Milliseconds()}
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
func (a *Archive) ArchivePage(ctx context.Context, request *report.ArchiveRequest) (*report.ArchivePage, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	limit := pageEntries
	if request.Limit > 0 {
		limit = int(min(request.Limit, pageEntries))
	}
	page := &report.ArchivePage{Events: []abi.MemoryEvent{}, Last: request.After, More: true}
	wanted := newWanted(request)
	for page.More && len(page.Events) < limit {
		entries, more, err := a.readMatching(ctx, page.Last, limit-len(page.Events), wanted.person, wanted.may)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			event, err := e.Decode()
			if err != nil {
				return nil, err
			}
			page.Last = e.Seq
			if wanted.has(event) {
				page.Events = append(page.Events, *event)
			}
		}
		page.More = more
		if request.Scope == nil { // one read only, whatever it returned: a page is short at the end of a segment
			break
		}
	}
	return page, nil
}

// wanted selects the events that an ArchiveRequest asks for.
type wanted struct {
	person string            // whose events they are; empty means anybody's
	may    func([]byte) bool // a quick test of an entry's JSON; nil if all entries have to be decoded
	scope  *abi.MemoryScope
	ids    map[string]bool // nil means all
}

func newWanted(request *report.ArchiveRequest) *wanted {
	w := &wanted{scope: request.Scope}
	if w.scope == nil {
		return w
	}
	w.person = w.scope.PersonaID
	list := request.EventIDs
	if request.EventID != "" {
		list = []string{request.EventID}
	}
	for _, id := range list {
		if w.ids == nil {
			w.ids = map[string]bool{}
		}
		w.ids[id] = true
	}
	w.may = mayHave(w.person)
	if len(list) == 1 {
		w.may = mayHave(list[0])
	}
	return w
}

// mayHave returns a quick test of an entry's JSON for an id; nil if all entries have to be decoded. JSON leaves these
// characters as they are.
func mayHave(id string) func([]byte) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" -_.:", r)
	}
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return nil
	}
	quoted := []byte(`"` + id + `"`)
	return func(text []byte) bool { return bytes.Contains(text, quoted) }
}

// has reports whether an event is wanted.
func (w *wanted) has(e *abi.MemoryEvent) bool {
	s := w.scope
	return s == nil || (w.ids == nil || w.ids[e.EventID]) && e.RunID == s.RunID && e.UserID == s.PersonaID &&
		(s.AgentID == "" || e.AgentID == s.AgentID)
}

// contents are hashes of archived events. The set is small enough to hold for a whole archive.
type contents struct {
	upTo int64 // number of the last entry that was read
	// ids are hashes of scope and id, which identify an event wherever it was recorded. texts are hashes of everything
	// in an event; an id has several if it was recorded with several providers.
	ids, texts map[[16]byte]bool
}

func newContents() *contents {
	return &contents{ids: map[[16]byte]bool{}, texts: map[[16]byte]bool{}}
}

// has reports whether c has an event with the same scope and id, and whether it has one with the same content.
//
// Errors: metadata that is not JSON.
func (c *contents) has(e *abi.MemoryEvent) (id, text bool, err error) {
	name, content, err := hashesOf(e)
	return c.ids[name], c.texts[content], err
}

func (c *contents) add(e *abi.MemoryEvent) error {
	id, text, err := hashesOf(e)
	if err == nil {
		c.ids[id], c.texts[text] = true, true
	}
	return err
}

func hashesOf(e *abi.MemoryEvent) (id, text [16]byte, err error) {
	name, _ := json.Marshal([]string{e.RunID, e.UserID, e.AgentID, e.EventID}) // strings can always be marshaled
	sum := sha256.Sum256(name)
	content, err := delivery.HashOf(e)
	return [16]byte(sum[:16]), [16]byte(content[:16]), err
}

// MaxAdd is the most events that one ArchiveAdd accepts.
const MaxAdd = 1000

// ArchiveAdd implements host.Archive.
func (a *Archive) ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (_ *report.ArchiveReceipt, err error) {
	switch {
	case !a.On:
		return nil, abi.NewError(abi.CodeUnsupported, "the slot keeps no archive").WithReason("archive_off").
			WithHint("set memory.archive: true")
	case len(batch.Events) == 0 || len(batch.Events) > MaxAdd:
		return nil, errAdd(abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("events: want 1 to %d, found %d", MaxAdd, len(batch.Events))))
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
	known, err := a.contents(ctx)
	if err != nil {
		return nil, err
	}
	receipt, added := new(report.ArchiveReceipt), newContents()
	var entries []Entry
	for i := range batch.Events {
		e := &batch.Events[i]
		forgotten, err := a.Forgotten(ctx, e)
		if err != nil {
			return nil, err
		}
		if forgotten {
			continue
		}
		knownID, knownText, err := known.has(e)
		addedID, addedText, _ := added.has(e)
		switch {
		case err != nil:
			return nil, errAdd(abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("events[%d].metadata: %s", i, err)))
		case knownText || addedText:
			receipt.Present++
			continue
		case knownID || addedID:
			return nil, errAdd(abi.NewError(abi.CodeConflict, fmt.Sprintf(
				"events[%d].event_id: %.80q was archived before with other content", i, e.EventID)).
				WithReason("event_content").
				WithHint("none of these events was added. An event does not change: give other content an id of its own"))
		}
		if err := added.add(e); err != nil {
			return nil, err
		}
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
		return nil, state.ContractError(err)
	}
	return receipt, nil
}

// contents returns the archive's contents: it reads everything the first time, and then only what was added since. The
// caller holds adding.
func (a *Archive) contents(ctx context.Context) (*contents, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known == nil {
		known = newContents()
	}
	err := a.EachAfter(ctx, known.upTo, func(entry *Entry, event *abi.MemoryEvent) error {
		if err := known.add(event); err != nil {
			return err
		}
		known.upTo = entry.Seq
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

// maxProblems is the most problems that a check lists.
const maxProblems = 100

// ArchiveCheck implements host.Archive.
func (a *Archive) ArchiveCheck(ctx context.Context) (*report.ArchiveCheck, error) {
	a.changing.Lock() // a segment that is being created has a file before it has a record
	defer a.changing.Unlock()
	a.moving.RLock()
	defer a.moving.RUnlock()
	check := &report.ArchiveCheck{Problems: []string{}}
	problem := func(format string, about ...any) {
		if len(check.Problems) < maxProblems {
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
