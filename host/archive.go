package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// The archive keeps every accepted event word for word. No guest reads it and no retrieval comes from it: it is for
// moving to another memory, and for the person whose words they are. An event enters it with the transaction that keeps
// its receipt. There it waits in a table; from sealBytes on the oldest entries become a segment, a compressed file.

const (
	tableArchive  state.Table = "archive"  // number(8) -> archived, JSON: what is not sealed yet
	tableSegments state.Table = "segments" // number of the first entry(8) -> segments.Info, JSON
)

const (
	// sealBytes of entries become a segment. With more, a write costs more: 256 KiB add 13 % to a record of
	// full_history at durability process, 4 MiB 40 %.
	sealBytes = 256 << 10
	// mergeBytes of small segments become one, which compresses better. Compressed it is smaller than 4 MB.
	mergeBytes = 4 << 20
	// archivePage and archivePageBytes bound a page.
	archivePage, archivePageBytes = 1000, 4 << 20
	// tendEvery is how often retention looks at the archive of a slot that nobody writes to.
	tendEvery = time.Hour
)

// archiveTime is the form of the archive's times.
const archiveTime = "2006-01-02T15:04:05.000Z07:00"

// archived is one entry: an event, and when and with which provider it was accepted.
type archived struct {
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

// archive is what a host keeps in memory of its archive.
type archive struct {
	on        bool
	retention time.Duration
	dir       string
	store     state.Store // never that of a tape
	now       func() time.Time
	warn      func(text string, about ...any)

	mu sync.Mutex
	// next is the number of the next entry; inFlight are numbers whose commit has not ended.
	next     int64
	inFlight []int64
	// openBytes is the size of what is not sealed.
	openBytes int64
	// known are the events that the archive has, once an import has needed them.
	known map[eventIdentity]bool

	// changing is held by the one that seals, merges, or lets go. moving is held for writing while entries move from the
	// table to a segment, or leave.
	changing sync.Mutex
	moving   sync.RWMutex
	// unpacked is the segment that was read last.
	unpackedMu sync.Mutex
	unpacked   segments.Info
	text       []byte

	wake, stop, ended chan struct{}
}

// line is the entry's JSON. The event's own JSON stays as it is.
func (e *archived) line() ([]byte, error) {
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

// openArchive finds what the data folder has of an archive and, where one is kept, starts the goroutine that tends it.
func (h *Host) openArchive(ctx context.Context) error {
	a := &h.archive
	a.on, a.retention = h.options.Archive, h.options.ArchiveRetention
	a.dir, a.store, a.now = filepath.Join(h.options.DataDir, "archive"), h.store, h.options.Now
	a.warn = h.logger.Warn
	list, err := a.segments(ctx)
	if err != nil {
		return err
	}
	a.next = 1
	if len(list) > 0 {
		a.next = list[len(list)-1].Last + 1
	}
	err = eachRecord(ctx, a.store, tableArchive, nil, func(r state.KeyValue) error {
		a.next = max(a.next, int64(binary.BigEndian.Uint64(r.Key))+1)
		a.openBytes += int64(len(r.Value))
		return nil
	})
	if err != nil || !a.on {
		return err
	}
	if err := segments.RemoveStrays(a.dir, list); err != nil {
		return abi.WrapError(abi.CodeUnavailable, "archive: "+err.Error(), err).WithReason("archive")
	}
	a.wake, a.stop, a.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go a.tendAll(a.stop)
	return nil
}

// close ends the tending. The store is still open.
func (a *archive) close() {
	a.mu.Lock()
	stop := a.stop
	a.stop = nil
	a.mu.Unlock()
	if stop != nil {
		close(stop)
		<-a.ended
	}
}

// commitArchived commits a batch together with events that the operation's provider accepted. It is commit alone where
// no archive is kept.
func (o *operation) commitArchived(ctx context.Context, b *state.Batch, events ...*abi.MemoryEvent) error {
	h, p := o.slot.host, o.provider
	switch {
	case h.archives() && !o.slot.noArchive && len(events) > 0:
	case b.Len() > 0:
		return o.keep(ctx, b)
	default:
		return nil
	}
	entries := make([]archived, len(events))
	for i, e := range events {
		entries[i] = archived{Provider: p.name, Namespace: p.config.Namespace, Queued: !h.archive.on,
			Event: json.RawMessage(abi.Marshal(e))}
	}
	done, err := h.archive.add(b, entries)
	if err != nil {
		return err
	}
	err = o.keep(ctx, b)
	done(err == nil)
	o.slot.wakeFollowers()
	return err
}

// archives reports whether what is recorded is kept: for the archive, or until every follower has it.
func (h *Host) archives() bool { return h.archive.on || h.queued.Load() }

func numberOfKey(key []byte) int64 { return int64(binary.BigEndian.Uint64(key)) }

// add numbers entries and puts them into a batch. done reports whether the batch was committed.
func (a *archive) add(b *state.Batch, entries []archived) (done func(committed bool), err error) {
	at := a.now().UTC().Format(archiveTime)
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
		b.PutRecord(tableArchive, numberKey(entry.Seq), line)
		size += int64(len(line))
	}
	return func(committed bool) {
		if !committed {
			size = 0
		}
		a.arrived(first, size)
	}, nil
}

// arrived ends what add began. From sealBytes on the archive is tended.
func (a *archive) arrived(first, size int64) {
	a.mu.Lock()
	a.inFlight = slices.DeleteFunc(a.inFlight, func(n int64) bool { return n == first })
	a.openBytes += size
	full := a.openBytes >= sealBytes
	a.mu.Unlock()
	if full && a.wake != nil {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// settled is the number up to which every commit has ended: nothing can still appear before it.
func (a *archive) settled() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.inFlight) > 0 {
		return slices.Min(a.inFlight) - 1
	}
	return a.next - 1
}

// segments lists the catalogue in order.
func (a *archive) segments(ctx context.Context) (list []segments.Info, err error) {
	err = eachRecord(ctx, a.store, tableSegments, nil, func(r state.KeyValue) error {
		var info segments.Info
		if json.Unmarshal(r.Value, &info) != nil {
			return errArchive("the record of a segment cannot be read")
		}
		list = append(list, info)
		return nil
	})
	return list, err
}

func errArchive(why string) *abi.Error {
	return abi.NewError(abi.CodeUnavailable, "archive: "+why).WithReason("archive").
		WithHint("memory itself is not touched; `memhost archive verify` says what is damaged, and a backup of the data " +
			"folder has it whole")
}

// tendAll seals and lets go until the host closes.
func (a *archive) tendAll(stop chan struct{}) {
	defer close(a.ended)
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		if err := a.tend(context.Background()); err != nil {
			a.warn("the archive cannot be sealed or cut, and tries again later", "error", err)
		}
		select {
		case <-stop:
			return
		case <-a.wake:
		case <-tick.C:
		}
	}
}

// tend lets go what is older than the retention and seals what is enough for a segment.
func (a *archive) tend(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	if a.retention > 0 {
		if err := a.letGo(ctx, a.now().Add(-a.retention)); err != nil {
			return err
		}
	}
	for {
		a.mu.Lock()
		full := a.openBytes >= sealBytes
		a.mu.Unlock()
		if !full {
			return nil
		}
		sealed, err := a.seal(ctx)
		if err != nil || !sealed {
			return err
		}
		if err := a.merge(ctx); err != nil {
			return err
		}
	}
}

// merge turns the small segments at the end into one, once there are mergeBytes of them.
func (a *archive) merge(ctx context.Context) error {
	list, err := a.segments(ctx)
	if err != nil {
		return err
	}
	from, size := len(list), int64(0)
	for from > 0 && list[from-1].TextBytes < mergeBytes/2 {
		from--
		size += list[from].TextBytes
	}
	if size < mergeBytes {
		return nil
	}
	small := list[from:]
	text, forgotten := make([]byte, 0, size), int64(0)
	for _, info := range small {
		part, err := segments.Read(a.dir, info)
		if err != nil {
			return nil // left as it is: a check names it
		}
		text = append(text, part...)
		forgotten += info.Forgotten
	}
	return a.replace(ctx, small, text, forgotten)
}

// replace puts one segment with text in the place of others, or none where text is empty. forgotten is how many of the
// text's lines are of forgotten events.
func (a *archive) replace(ctx context.Context, old []segments.Info, text []byte, forgotten int64) (err error) {
	var b state.Batch
	for _, info := range old {
		b.DeleteRecord(tableSegments, numberKey(info.First))
	}
	if len(text) > 0 {
		info := segments.Info{First: old[0].First, Last: old[len(old)-1].Last, Oldest: old[0].Oldest,
			Newest: old[len(old)-1].Newest, Forgotten: forgotten}
		if info, err = segments.Write(a.dir, info, text); err != nil {
			return err
		}
		if err := putSegment(&b, info); err != nil {
			return err
		}
	}
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.store.Commit(ctx, &b); err != nil {
		return err
	}
	for _, info := range old {
		if err := segments.Remove(a.dir, info); err != nil {
			return err
		}
	}
	return nil
}

// seal turns the oldest entries of the table into a segment. It is false where writes under way are in between.
func (a *archive) seal(ctx context.Context) (bool, error) {
	entries, size, err := a.open(ctx, 0, a.settled(), sealBytes, 0)
	if err != nil || size < sealBytes/2 {
		return false, err
	}
	info := segments.Info{First: entries[0].Seq, Last: entries[len(entries)-1].Seq, Oldest: entries[0].At,
		Newest: entries[len(entries)-1].At}
	var b state.Batch
	text := make([]byte, 0, size+int64(len(entries)))
	for _, e := range entries {
		text = append(append(text, e.line...), '\n')
		if e.Forgotten != "" {
			info.Forgotten++
		}
		b.DeleteRecord(tableArchive, numberKey(e.Seq))
	}
	if info, err = segments.Write(a.dir, info, text); err != nil {
		return false, err
	}
	if err := putSegment(&b, info); err != nil {
		return false, err
	}
	err = a.commitLeaving(ctx, &b, size)
	return err == nil, err
}

// commitLeaving commits a batch with which entries leave the table, in whole or in part: so many bytes less are open.
func (a *archive) commitLeaving(ctx context.Context, b *state.Batch, bytes int64) error {
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.store.Commit(ctx, b); err != nil {
		return err
	}
	a.mu.Lock()
	a.openBytes -= bytes
	a.mu.Unlock()
	return nil
}

func putSegment(b *state.Batch, info segments.Info) error {
	record, err := json.Marshal(info)
	if err == nil {
		b.PutRecord(tableSegments, numberKey(info.First), record)
	}
	return err
}

// openEntry is an entry of the table with its line.
type openEntry struct {
	archived
	line []byte
}

// open reads entries of the table with numbers beyond after, up to last: as many as limit (0: any number) and bytes
// let through, one at least.
func (a *archive) open(ctx context.Context, after, last, bytes int64, limit int) (entries []openEntry, size int64,
	err error) {
	for from := numberKey(after); ; {
		records, err := a.store.Records(ctx, tableArchive, nil, from, 0)
		if err != nil {
			return nil, 0, stateError(err)
		}
		for _, r := range records {
			e := openEntry{line: r.Value}
			if json.Unmarshal(r.Value, &e.archived) != nil {
				return nil, 0, errArchive("an entry cannot be read")
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

// letGo removes what was archived before a time: segments of which everything is older, and open entries.
func (a *archive) letGo(ctx context.Context, before time.Time) error {
	list, err := a.segments(ctx)
	if err != nil {
		return err
	}
	var b state.Batch
	var gone []segments.Info
	for _, info := range list {
		if olderThan(info.Newest, before) {
			gone = append(gone, info)
			b.DeleteRecord(tableSegments, numberKey(info.First))
		}
	}
	entries, _, err := a.open(ctx, 0, a.settled(), sealBytes, 0)
	if err != nil {
		return err
	}
	var size int64
	for _, e := range entries {
		if olderThan(e.At, before) {
			size += int64(len(e.line))
			b.DeleteRecord(tableArchive, numberKey(e.Seq))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.store.Commit(ctx, &b); err != nil {
		return err
	}
	a.mu.Lock()
	a.openBytes -= size
	a.known = nil
	a.mu.Unlock()
	for _, info := range gone {
		if err := segments.Remove(a.dir, info); err != nil {
			return err
		}
	}
	return nil
}

func olderThan(at string, before time.Time) bool {
	t, err := time.Parse(time.RFC3339Nano, at)
	return err == nil && t.Before(before)
}
