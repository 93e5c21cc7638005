// Package archive keeps every accepted event verbatim. Guests cannot read it and retrievals do not use it: it exists
// for moving to another memory, and for the person whose words it holds. An event enters the archive in the transaction
// that stores its receipt. Events first wait in a table; once it has SealBytes, the oldest entries become a segment, a
// compressed file.
//
// The same table is the queue of followers: if no archive is kept, it holds an event until every follower has it.
package archive

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Tables of the archive.
const (
	TableEntries  state.Table = "archive"        // number(8) -> Entry, JSON: entries that are not sealed yet
	tableSegments state.Table = "segments"       // number of the first entry(8) -> segments.Info, JSON
	tablePeople   state.Table = "segment_people" // number of the first entry(8) -> whose events it has (people.go)

	// Given events have the same tables under other names (Options.Given).
	tableGiven         state.Table = "given"
	tableGivenSegments state.Table = "given_segments"
	tableGivenPeople   state.Table = "given_segment_people"
)

// Tables returns the archive's tables. Like the segment files, they belong to the data folder.
func Tables() []state.Table {
	return []state.Table{TableEntries, tableSegments, tablePeople, tableErased, tableGiven, tableGivenSegments,
		tableGivenPeople}
}

const (
	// SealBytes is how many bytes of entries become a segment. Larger values make writes slower: 256 KiB add 13 % to a
	// record of full_history at durability process, 4 MiB 40 %.
	SealBytes = 256 << 10
	// mergeBytes of small segments are merged into one, which compresses better. The compressed result is below 4 MB.
	mergeBytes = 4 << 20
	// pageEntries and pageBytes bound a page.
	pageEntries, pageBytes = 1000, 4 << 20
	// tendEvery is how often retention runs on the archive of an idle slot.
	tendEvery = time.Hour
	// tryAgain is how long the archive waits after sealing failed, for example on a full disk.
	tryAgain = time.Minute
)

// Entry is an event, with the time when it was accepted and the provider that accepted it.
type Entry struct {
	Seq       int64  `json:"seq"`
	At        string `json:"at"`
	Provider  string `json:"provider,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Queued means that no archive is kept, and the entry is removed once every follower has it.
	Queued bool `json:"queued,omitempty"`
	// Forgotten is when the event was forgotten. Only number and times are left of such an entry.
	Forgotten string          `json:"forgotten,omitempty"`
	Event     json.RawMessage `json:"event,omitempty"`
}

// Options configure an Archive. All fields except Retention are required.
type Options struct {
	// On means that an archive is kept. Otherwise the table is only a queue for followers.
	On bool
	// Given means that it holds the events that were given for a backfill, in its own tables, until Clear.
	Given bool
	// Retention is how long an entry is kept; 0 means forever.
	Retention time.Duration
	// Dir is the folder of the segments. Store is the data folder's own store, never that of a tape.
	Dir   string
	Store state.Store
	Now   func() time.Time
	Warn  func(text string, about ...any)
	// Forgotten reports whether an event was forgotten, and so must not be imported again.
	Forgotten func(ctx context.Context, e *abi.MemoryEvent) (bool, error)
}

// Archive is the archive of a data folder. Open creates it.
type Archive struct {
	Options
	// entries, catalogue and whose are the names of its tables.
	entries, catalogue, whose state.Table

	mu sync.Mutex
	// next is the number of the next entry; inFlight has the numbers whose commit has not ended.
	next     int64
	inFlight []int64
	// openBytes is the size of the unsealed entries.
	openBytes int64
	// known is the archive's content, loaded when an import first needs it. It is reset to nil when entries are
	// removed.
	known *contents

	// changing is held while sealing, merging or removing. moving is held for writing while entries move from the table
	// to a segment, or are removed.
	changing sync.Mutex
	moving   sync.RWMutex
	// unpacked is the segment that was read last.
	unpackedMu sync.Mutex
	unpacked   segments.Info
	text       []byte

	adding  sync.Mutex // one ArchiveAdd at a time
	erasing sync.Mutex // one reset at a time is recorded

	wake, stop, ended chan struct{}
	// leaving is called with entries that retention is about to remove (Start).
	leaving func(ctx context.Context, last int64, entries func() ([]Entry, error)) error
}

// Open reads the archive of the data folder. Start starts its maintenance.
func Open(ctx context.Context, o Options) (*Archive, error) {
	a := &Archive{Options: o, next: 1, entries: TableEntries, catalogue: tableSegments, whose: tablePeople}
	if o.Given {
		a.entries, a.catalogue, a.whose = tableGiven, tableGivenSegments, tableGivenPeople
	}
	list, err := a.Segments(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		a.next = list[len(list)-1].Last + 1
	}
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		a.next = max(a.next, numberOfKey(r.Key)+1)
		a.openBytes += int64(len(r.Value))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !a.Given { // a reset refers to entries that may have been removed since
		erasures, err := a.Erasures(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range erasures {
			a.GoOnAfter(e.UpTo)
		}
	}
	if !a.On {
		return a, nil
	}
	if err := segments.RemoveStrays(a.Dir, list); err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "archive: "+err.Error(), err).WithReason("archive")
	}
	a.wake = make(chan struct{}, 1)
	return a, nil
}

// Start starts the goroutine that seals entries and applies the retention, if an archive is kept. leaving, which may be
// nil, is called before retention removes entries: it gets the number of the last of them, and may read those that are
// not forgotten.
func (a *Archive) Start(leaving func(ctx context.Context, last int64, entries func() ([]Entry, error)) error) {
	if !a.On {
		return
	}
	a.leaving = leaving
	stop, ended := make(chan struct{}), make(chan struct{})
	a.mu.Lock()
	a.stop, a.ended = stop, ended
	a.mu.Unlock()
	go a.tendAll(stop, ended)
}

// GoOnAfter makes the next entries use numbers beyond one that an earlier process assigned, so that numbers stay unique
// after entries were removed.
func (a *Archive) GoOnAfter(number int64) {
	a.mu.Lock()
	a.next = max(a.next, number+1)
	a.mu.Unlock()
}

// line is the entry's JSON. The event's own JSON is copied verbatim.
func (e *Entry) line() ([]byte, error) {
	head := *e
	head.Event = json.RawMessage("0")
	text, err := json.Marshal(&head)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-len("0}")], e.Event...)
	return append(text, '}'), nil
}

func numberKey(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Close stops the maintenance. It does not close the store.
func (a *Archive) Close() {
	a.mu.Lock()
	stop := a.stop
	a.stop = nil
	a.mu.Unlock()
	if stop != nil {
		close(stop)
		<-a.ended
	}
}

func numberOfKey(key []byte) int64 { return int64(binary.BigEndian.Uint64(key)) }

// Add numbers entries and adds them to a batch. The caller must call done after the commit, with its result.
func (a *Archive) Add(b *state.Batch, entries []Entry) (done func(committed bool), err error) {
	at := a.Now().UTC().Format(report.TimeFormat)
	a.mu.Lock()
	first := a.next
	a.next += int64(len(entries))
	a.inFlight = append(a.inFlight, first)
	a.mu.Unlock()
	var size int64
	for i := range entries {
		entry := &entries[i]
		entry.Seq, entry.At = first+int64(i), at
		line, err := entry.line()
		if err != nil {
			a.noteArrival(first, 0)
			return nil, err
		}
		b.PutRecord(a.entries, numberKey(entry.Seq), line)
		size += int64(len(line))
	}
	return func(committed bool) {
		if !committed {
			size = 0
		}
		a.noteArrival(first, size)
	}, nil
}

// noteArrival completes an Add. From SealBytes on it triggers maintenance.
func (a *Archive) noteArrival(first, size int64) {
	a.mu.Lock()
	a.inFlight = slices.DeleteFunc(a.inFlight, func(n int64) bool { return n == first })
	a.openBytes += size
	full := a.openBytes >= SealBytes
	a.mu.Unlock()
	if full && a.wake != nil {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// Settled is the number up to which every commit has ended, so that no entry can still appear before it.
func (a *Archive) Settled() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.inFlight) > 0 {
		return slices.Min(a.inFlight) - 1
	}
	return a.next - 1
}

// Segments lists the catalogue in order.
func (a *Archive) Segments(ctx context.Context) ([]segments.Info, error) {
	return catalogue(ctx, a.Store, a.catalogue)
}

// Missing returns which of the archive's files are missing; empty if none.
func (a *Archive) Missing(ctx context.Context) (string, error) {
	list, err := a.Segments(ctx)
	if err != nil {
		return "", err
	}
	missing := segments.Missing(a.Dir, list)
	if len(missing) == 0 {
		return "", nil
	}
	var events int64
	for _, info := range missing {
		events += info.Entries
	}
	return fmt.Sprintf("%d of the %d files in %s are missing, with %d events, the first of them %s", len(missing), len(list),
		a.Dir, events, missing[0].Name()), nil
}

// SegmentsOf lists the catalogue of an archive that is not open: of the archive itself, or with given of the events
// that were brought for another memory.
func SegmentsOf(ctx context.Context, store state.Store, given bool) ([]segments.Info, error) {
	if given {
		return catalogue(ctx, store, tableGivenSegments)
	}
	return catalogue(ctx, store, tableSegments)
}

func catalogue(ctx context.Context, store state.Store, table state.Table) (list []segments.Info, err error) {
	err = state.EachRecord(ctx, store, table, nil, func(r state.KeyValue) error {
		var info segments.Info
		if json.Unmarshal(r.Value, &info) != nil {
			return errDamaged("the record of a segment cannot be read")
		}
		list = append(list, info)
		return nil
	})
	return list, err
}

func errDamaged(why string) *abi.Error {
	e := abi.NewError(abi.CodeUnavailable, "archive: "+why).WithReason("archive").
		WithHint("memory itself is not touched; `memhost archive verify` says what is damaged, and a backup of the data " +
			"folder has it whole")
	e.Retryable = false
	return e
}

// openEntry is an unsealed entry and its line.
type openEntry struct {
	Entry
	line []byte
}

// open reads unsealed entries with numbers beyond after, up to last: at least one, and at most limit entries (0 means
// no limit) and this many bytes.
func (a *Archive) open(ctx context.Context, after, last, bytes int64, limit int) (entries []openEntry, size int64,
	err error) {
	for from := numberKey(after); ; {
		records, err := a.Store.Records(ctx, a.entries, nil, from, 0)
		if err != nil {
			return nil, 0, state.ContractError(err)
		}
		for _, r := range records {
			e := openEntry{line: r.Value}
			if json.Unmarshal(r.Value, &e.Entry) != nil {
				return nil, 0, errDamaged("an entry cannot be read")
			}
			full := len(entries) > 0 && size+int64(len(r.Value)) > bytes || limit > 0 && len(entries) == limit
			if e.Seq > last || full {
				return entries, size, nil
			}
			entries, size, from = append(entries, e), size+int64(len(r.Value)), r.Key
		}
		if len(records) < state.DefaultLimit {
			return entries, size, nil
		}
	}
}

// Scrub makes the store erase deleted data from its files, and returns the copies that are out of the store's reach.
// Its store is never that of a tape.
//
// Errors: those of the store if it failed to erase something; unsupported if it cannot erase.
func (a *Archive) Scrub(ctx context.Context) (outside []string, err error) {
	s, ok := a.Store.(state.Scrubber)
	if !ok {
		return nil, abi.NewError(abi.CodeUnsupported, "the store cannot overwrite what was deleted")
	}
	return s.Outside(), s.Scrub(context.WithoutCancel(ctx))
}
