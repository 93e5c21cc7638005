// Package archive keeps every accepted event word for word. No guest reads it and no retrieval comes from it: it is for
// moving to another memory, and for the person whose words they are. An event enters it with the transaction that keeps
// its receipt. There it waits in a table; from SealBytes on the oldest entries become a segment, a compressed file.
//
// The same table serves as the queue of followers: where no archive is kept, it holds an event until every follower has
// it.
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
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Tables of the archive.
const (
	TableEntries  state.Table = "archive"  // number(8) -> Entry, JSON: what is not sealed yet
	tableSegments state.Table = "segments" // number of the first entry(8) -> segments.Info, JSON

	// Given events have tables of the same form (Options.Given).
	tableGiven         state.Table = "given"
	tableGivenSegments state.Table = "given_segments"
)

// Tables are those of the archive: with the segments' files they belong to the data folder.
func Tables() []state.Table {
	return []state.Table{TableEntries, tableSegments, tableErased, tableGiven, tableGivenSegments}
}

const (
	// SealBytes of entries become a segment. With more, a write costs more: 256 KiB add 13 % to a record of
	// full_history at durability process, 4 MiB 40 %.
	SealBytes = 256 << 10
	// mergeBytes of small segments become one, which compresses better. Compressed it is smaller than 4 MB.
	mergeBytes = 4 << 20
	// pageEntries and pageBytes bound a page.
	pageEntries, pageBytes = 1000, 4 << 20
	// tendEvery is how often retention looks at the archive of a slot that nobody writes to.
	tendEvery = time.Hour
	// tryAgain is how long the archive waits when it could not be sealed, as on a full disk.
	tryAgain = time.Minute
)

// timeForm is the form of the archive's times.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// Entry is one entry: an event, and when and with which provider it was accepted.
type Entry struct {
	Seq       int64  `json:"seq"`
	At        string `json:"at"`
	Provider  string `json:"provider,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Queued: no archive is kept, and the entry is removed once every follower has it.
	Queued bool `json:"queued,omitempty"`
	// Forgotten is when the event was forgotten: then nothing but number and times is left of the entry.
	Forgotten string          `json:"forgotten,omitempty"`
	Event     json.RawMessage `json:"event,omitempty"`
}

// Options configure an Archive. All but Retention are required.
type Options struct {
	// On: an archive is kept. Where it is off the table is a queue for followers only.
	On bool
	// Given: it holds the events that were given for a backfill, in tables of its own, until Clear.
	Given bool
	// Retention is how long an entry is kept; 0 means for ever.
	Retention time.Duration
	// Dir is the folder of the segments. Store is the data folder's own, never that of a tape.
	Dir   string
	Store state.Store
	Now   func() time.Time
	Warn  func(text string, about ...any)
	// Forgotten reports whether an event was forgotten, and so is not to come back by an import.
	Forgotten func(ctx context.Context, e *abi.MemoryEvent) (bool, error)
}

// Archive is the archive of a data folder. Open makes one.
type Archive struct {
	Options
	// entries and catalogue are its tables.
	entries, catalogue state.Table

	mu sync.Mutex
	// next is the number of the next entry; inFlight are numbers whose commit has not ended.
	next     int64
	inFlight []int64
	// openBytes is the size of what is not sealed.
	openBytes int64
	// known is what the archive has, once an import has needed it. It is nil again when something has left.
	known *contents

	// changing is held by the one that seals, merges, or lets go. moving is held for writing while entries move from the
	// table to a segment, or leave.
	changing sync.Mutex
	moving   sync.RWMutex
	// unpacked is the segment that was read last.
	unpackedMu sync.Mutex
	unpacked   segments.Info
	text       []byte

	adding  sync.Mutex // one ArchiveAdd at a time
	erasing sync.Mutex // one reset at a time is noted

	wake, stop, ended chan struct{}
	// leaving is told of entries that retention is about to remove (Start).
	leaving func(ctx context.Context, last int64, entries func() ([]Entry, error)) error
}

// Open finds what the data folder has of an archive. Start lets it be tended.
func Open(ctx context.Context, o Options) (*Archive, error) {
	a := &Archive{Options: o, next: 1, entries: TableEntries, catalogue: tableSegments}
	if o.Given {
		a.entries, a.catalogue = tableGiven, tableGivenSegments
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
	if !a.Given { // a reset is of numbers that may have left since
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

// Start starts the goroutine that seals and lets go, where an archive is kept. leaving, which may be nil, is called
// before retention removes entries: it gets the number of the last of them, and may read those that are not forgotten.
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

// GoOnAfter lets the next entries have numbers beyond one that an earlier process has given: what is known by a number
// stays true though the entries have left.
func (a *Archive) GoOnAfter(number int64) {
	a.mu.Lock()
	a.next = max(a.next, number+1)
	a.mu.Unlock()
}

// line is the entry's JSON. The event's own JSON stays as it is.
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

// Close ends the tending. The store is still open.
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

// Add numbers entries and puts them into a batch. done reports whether the batch was committed.
func (a *Archive) Add(b *state.Batch, entries []Entry) (done func(committed bool), err error) {
	at := a.Now().UTC().Format(timeForm)
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
			a.arrived(first, 0)
			return nil, err
		}
		b.PutRecord(a.entries, numberKey(entry.Seq), line)
		size += int64(len(line))
	}
	return func(committed bool) {
		if !committed {
			size = 0
		}
		a.arrived(first, size)
	}, nil
}

// arrived ends what Add began. From SealBytes on the archive is tended.
func (a *Archive) arrived(first, size int64) {
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

// Settled is the number up to which every commit has ended: nothing can still appear before it.
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

// Missing says which of the archive's files are not there; empty: none.
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

// SegmentsOf lists the catalogue that a store has of an archive that is not open: the archive, or with given the events
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

// openEntry is an entry of the table with its line.
type openEntry struct {
	Entry
	line []byte
}

// open reads entries of the table with numbers beyond after, up to last: as many as limit (0: any number) and bytes
// let through, one at least.
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

// Scrub lets the store remove what was deleted from its files, and names the copies that stay out of the store's reach.
// Its store is never that of a tape.
//
// Errors: those of the store, when something is left that it could have removed; unsupported when it can remove nothing.
func (a *Archive) Scrub(ctx context.Context) (outside []string, err error) {
	s, ok := a.Store.(state.Scrubber)
	if !ok {
		return nil, abi.NewError(abi.CodeUnsupported, "the store cannot overwrite what was deleted")
	}
	return s.Outside(), s.Scrub(context.WithoutCancel(ctx))
}
