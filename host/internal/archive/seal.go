package archive

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// tendAll runs Tend until the host closes. After a failure it retries in a minute, however much is recorded in that
// time.
func (a *Archive) tendAll(stop, ended chan struct{}) {
	defer close(ended)
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		wake, again := a.wake, (<-chan time.Time)(nil)
		if err := a.tend(context.Background(), stop); err != nil {
			a.Warn("the archive cannot be sealed or cut, and tries again later", "error", err)
			wake, again = nil, time.After(tryAgain)
		}
		select {
		case <-stop:
			// A command that only adds events ends before they are noticed. Its segment is sealed here.
			if err := a.tend(context.Background(), stop); err != nil {
				a.Warn("the archive cannot be sealed or cut, and tries again at the next start", "error", err)
			}
			return
		case <-wake:
		case <-again:
		case <-tick.C:
		}
	}
}

// Tend removes what is older than the retention, and seals entries once there are enough for a segment.
func (a *Archive) Tend(ctx context.Context) error { return a.tend(ctx, nil) }

// tend is Tend. It ends after one segment when stop is closed. After a large import there is much to seal: those who
// forget, and the end of the host, wait for one segment and not for all.
func (a *Archive) tend(ctx context.Context, stop <-chan struct{}) error {
	if err := a.cut(ctx); err != nil {
		return err
	}
	for {
		if sealed, err := a.sealNext(ctx); err != nil || !sealed {
			return err
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// cut removes the files of failed attempts, and what is older than the retention.
func (a *Archive) cut(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	list, err := a.Segments(ctx)
	if err != nil {
		return err
	}
	if err := segments.RemoveStrays(a.Dir, list); err != nil {
		return err
	}
	if a.Retention == 0 {
		return nil
	}
	return a.letGo(ctx, a.Now().Add(-a.Retention))
}

// sealNext seals a segment, and merges the small ones before it. It returns false if there is too little for one.
func (a *Archive) sealNext(ctx context.Context) (sealed bool, err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.mu.Lock()
	full := a.openBytes >= SealBytes
	a.mu.Unlock()
	if !full {
		return false, nil
	}
	if sealed, err = a.seal(ctx); err == nil && sealed {
		err = a.merge(ctx)
	}
	return sealed, err
}

// merge merges the small segments at the end, once they have mergeBytes in total.
func (a *Archive) merge(ctx context.Context) error {
	list, err := a.Segments(ctx)
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
		part, err := segments.Read(a.Dir, info)
		if err != nil {
			return nil // keep it: a check reports it
		}
		text = append(text, part...)
		forgotten += info.Forgotten
	}
	whose, known, err := a.peopleOfAll(ctx, small)
	if err != nil {
		return err
	}
	if !known {
		whose = nil
	}
	return a.replace(ctx, small, text, forgotten, whose)
}

// replace replaces segments by one that contains text, or by none if text is empty. forgotten is how many of the text's
// lines belong to forgotten events, whose are the people of the others; nil if they are not known.
func (a *Archive) replace(ctx context.Context, old []segments.Info, text []byte, forgotten int64, whose personSet) (
	err error) {
	var b state.Batch
	for _, info := range old {
		a.dropSegment(&b, info)
	}
	var info segments.Info
	if len(text) > 0 {
		info = segments.Info{First: old[0].First, Last: old[len(old)-1].Last, Oldest: old[0].Oldest,
			Newest: old[len(old)-1].Newest, Forgotten: forgotten}
		if info, err = segments.Write(a.Dir, info, text); err != nil {
			return err
		}
		if err := a.putSegment(&b, info, whose); err != nil {
			return err
		}
	}
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.Store.Commit(ctx, &b); err != nil {
		a.dropUnused(info, err)
		return err
	}
	for _, info := range old {
		if err := segments.Remove(a.Dir, info); err != nil {
			return err
		}
	}
	return nil
}

// seal turns the oldest entries of the table into a segment. It returns false if unfinished writes are in between.
func (a *Archive) seal(ctx context.Context) (bool, error) {
	entries, size, err := a.open(ctx, 0, a.Settled(), SealBytes, 0)
	if err != nil || size < SealBytes/2 {
		return false, err
	}
	info := segments.Info{First: entries[0].Seq, Last: entries[len(entries)-1].Seq, Oldest: entries[0].At,
		Newest: entries[len(entries)-1].At}
	var b state.Batch
	text, whose, readable := make([]byte, 0, size+int64(len(entries))), make(personSet, 0, len(entries)), true
	for _, e := range entries {
		text = append(append(text, e.line...), '\n')
		b.DeleteRecord(a.entries, numberKey(e.Seq))
		if e.Forgotten != "" {
			info.Forgotten++
			continue
		}
		event, err := e.Decode()
		if err != nil { // a check reports it
			readable = false
			continue
		}
		whose.add(event.UserID)
	}
	if whose = whose.sorted(); !readable {
		whose = nil
	}
	if info, err = segments.Write(a.Dir, info, text); err != nil {
		return false, err
	}
	if err := a.putSegment(&b, info, whose); err != nil {
		return false, err
	}
	if err = a.commitLeaving(ctx, &b, size); err != nil {
		a.dropUnused(info, err)
	}
	return err == nil, err
}

// dropUnused removes a segment's file if its record was not committed, for example on a full disk. If the outcome is
// uncertain the file stays until the next Tend. The zero Info has no file.
func (a *Archive) dropUnused(info segments.Info, failed error) {
	if info.FileBytes > 0 && !errors.Is(failed, state.ErrUncertain) {
		_ = segments.Remove(a.Dir, info) // otherwise the next Tend removes it
	}
}

// commitLeaving commits a batch that moves entries out of the table, and subtracts their size from openBytes.
func (a *Archive) commitLeaving(ctx context.Context, b *state.Batch, bytes int64) error {
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.Store.Commit(ctx, b); err != nil {
		return err
	}
	a.mu.Lock()
	a.openBytes -= bytes
	a.mu.Unlock()
	return nil
}

func (a *Archive) putSegment(b *state.Batch, info segments.Info, whose personSet) error {
	record, err := json.Marshal(info)
	if err != nil {
		return err
	}
	b.PutRecord(a.catalogue, numberKey(info.First), record)
	if whose != nil {
		b.PutRecord(a.whose, numberKey(info.First), whose.encode())
	}
	return nil
}

// dropSegment removes what the store has about a segment.
func (a *Archive) dropSegment(b *state.Batch, info segments.Info) {
	b.DeleteRecord(a.catalogue, numberKey(info.First))
	b.DeleteRecord(a.whose, numberKey(info.First))
}

// letGo removes what was archived before a time: open entries, and segments whose entries are all older.
func (a *Archive) letGo(ctx context.Context, before time.Time) error {
	list, err := a.Segments(ctx)
	if err != nil {
		return err
	}
	var b state.Batch
	var removed []segments.Info
	for _, info := range list {
		if olderThan(info.Newest, before) {
			removed = append(removed, info)
			a.dropSegment(&b, info)
		}
	}
	entries, _, err := a.open(ctx, 0, a.Settled(), SealBytes, 0)
	if err != nil {
		return err
	}
	var size int64
	var open []Entry
	for _, e := range entries {
		if olderThan(e.At, before) {
			size += int64(len(e.line))
			b.DeleteRecord(a.entries, numberKey(e.Seq))
			open = append(open, e.Entry)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := a.tellLeaving(ctx, removed, open); err != nil {
		return err
	}
	a.moving.Lock()
	defer a.moving.Unlock()
	if _, err := a.Store.Commit(ctx, &b); err != nil {
		return err
	}
	a.mu.Lock()
	a.openBytes -= size
	a.known = nil
	a.mu.Unlock()
	for _, info := range removed {
		if err := segments.Remove(a.Dir, info); err != nil {
			return err
		}
	}
	return nil
}

// tellLeaving calls leaving for segments and open entries.
func (a *Archive) tellLeaving(ctx context.Context, list []segments.Info, open []Entry) error {
	if a.leaving == nil {
		return nil
	}
	last := int64(0)
	for _, info := range list {
		last = info.Last
	}
	for _, e := range open {
		last = e.Seq
	}
	return a.leaving(ctx, last, func() (all []Entry, err error) {
		for _, info := range list {
			entries, err := a.ofSegment(info, 0, 0, nil)
			if err != nil { // damaged: these entries are lost anyway
				a.Warn("events that a memory may not have leave the archive uncounted", "error", err)
				continue
			}
			all = append(all, entries...)
		}
		for _, e := range open {
			if e.Forgotten == "" {
				all = append(all, e)
			}
		}
		return all, nil
	})
}

func olderThan(at string, before time.Time) bool {
	t, err := time.Parse(time.RFC3339Nano, at)
	return err == nil && t.Before(before)
}

// OpenBytes is the size of the unsealed entries.
func (a *Archive) OpenBytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.openBytes
}

// Oldest returns the numbers of the oldest open entries: as many as must be removed to leave at most rest bytes.
func (a *Archive) Oldest(ctx context.Context, rest int64) (numbers []int64, err error) {
	entries, _, err := a.open(ctx, 0, a.Settled(), max(1, a.OpenBytes()-rest), 0)
	for _, e := range entries {
		numbers = append(numbers, e.Seq)
	}
	return numbers, err
}

// Drop removes open entries by their numbers, in order.
func (a *Archive) Drop(ctx context.Context, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	var b state.Batch
	var size int64
	for _, number := range numbers {
		stored, err := a.Store.Record(ctx, a.entries, numberKey(number))
		if err != nil {
			return state.ContractError(err)
		}
		size += int64(len(stored))
		b.DeleteRecord(a.entries, numberKey(number))
	}
	return state.ContractError(a.commitLeaving(ctx, &b, size))
}

// DropQueued removes entries up to a number that were kept only for followers.
func (a *Archive) DropQueued(ctx context.Context, upTo int64) error {
	entries, _, err := a.open(ctx, 0, upTo, SealBytes, 0)
	if err != nil {
		return err
	}
	var b state.Batch
	var size int64
	for _, e := range entries {
		if e.Queued {
			size += int64(len(e.line))
			b.DeleteRecord(a.entries, numberKey(e.Seq))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return state.ContractError(a.commitLeaving(ctx, &b, size))
}

// Clear removes every entry and segment.
func (a *Archive) Clear(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	list, err := a.Segments(ctx)
	if err != nil {
		return err
	}
	var b state.Batch
	for _, info := range list {
		a.dropSegment(&b, info)
	}
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		b.DeleteRecord(a.entries, r.Key)
		return nil
	})
	if err != nil || b.Len() == 0 {
		return err
	}
	if err := a.commitLeaving(context.WithoutCancel(ctx), &b, a.OpenBytes()); err != nil {
		return state.ContractError(err)
	}
	a.forgetUnpacked()
	return segments.RemoveStrays(a.Dir, nil)
}
