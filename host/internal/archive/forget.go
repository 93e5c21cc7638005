package archive

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Forget removes matching events from the archive, and returns them. Each is replaced by a line with its number and
// times:
//
//	{"seq":17,"at":"2026-03-02T08:00:01.000Z","forgotten":"2026-04-01T10:00:00.000Z"}
//
// A segment with matching events is rewritten, under a new digest and name. After an error or a crash, the same request
// continues. note, which may be nil, is called before events are removed; if it fails, they are kept.
//
// Errors: those of the store and the folder, and unavailable for a damaged segment, whose content is unknown.
func (a *Archive) Forget(ctx context.Context, matches func(*abi.MemoryEvent) bool,
	note func([]*abi.MemoryEvent) error) (erased []*abi.MemoryEvent, err error) {
	if note == nil {
		note = func([]*abi.MemoryEvent) error { return nil }
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	list, err := a.Segments(ctx)
	if err != nil {
		return nil, err
	}
	if err := segments.RemoveStrays(a.Dir, list); err != nil { // left over if the process ended while removing a segment
		return nil, err
	}
	a.forgetUnpacked()
	defer a.forgetUnpacked()
	at := a.Now().UTC().Format(timeForm)
	for _, info := range list {
		more, failed := a.forgetInSegment(ctx, info, at, matches, note)
		erased, err = append(erased, more...), Graver(err, failed) // a damaged segment must not keep events in the others
	}
	more, failed := a.forgetOpen(ctx, at, matches, note)
	return append(erased, more...), Graver(err, failed)
}

// Graver picks which of two errors to return. Damage to the archive does not stop the rest, so any other error wins.
func Graver(one, other error) error {
	damaged := func(err error) bool { return abi.AsError(err).Reason == "archive" }
	if one == nil || other != nil && damaged(one) && !damaged(other) {
		return other
	}
	return one
}

// forgetUnpacked drops the text of the archive that is cached in memory.
func (a *Archive) forgetUnpacked() {
	a.unpackedMu.Lock()
	a.unpacked, a.text = segments.Info{}, nil
	a.unpackedMu.Unlock()
	a.mu.Lock()
	a.known = nil
	a.mu.Unlock()
}

// forgetInSegment is Forget for one segment. The caller holds changing.
func (a *Archive) forgetInSegment(ctx context.Context, info segments.Info, at string,
	matches func(*abi.MemoryEvent) bool, note func([]*abi.MemoryEvent) error) (erased []*abi.MemoryEvent, err error) {
	text, err := segments.Read(a.Dir, info)
	if err != nil {
		return nil, errDamaged(err.Error())
	}
	kept, forgotten := make([]byte, 0, len(text)), info.Forgotten
	for line := range bytes.Lines(text) {
		left, event, err := forgetLine(line, at, matches)
		if err != nil {
			return nil, errDamaged("segment " + info.Name() + ": " + err.Error())
		}
		if event != nil {
			erased, forgotten = append(erased, event), forgotten+1
			left = append(left, '\n')
		}
		kept = append(kept, left...)
	}
	if len(erased) == 0 {
		return nil, nil
	}
	if err := note(erased); err != nil {
		return nil, err
	}
	return erased, state.ContractError(a.replace(context.WithoutCancel(ctx), []segments.Info{info}, kept, forgotten))
}

// forgetOpen is Forget for unsealed entries. The caller holds changing.
func (a *Archive) forgetOpen(ctx context.Context, at string, matches func(*abi.MemoryEvent) bool,
	note func([]*abi.MemoryEvent) error) (erased []*abi.MemoryEvent, err error) {
	var smaller int64
	var b state.Batch
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		left, event, err := forgetLine(r.Value, at, matches)
		if err != nil {
			return errDamaged(err.Error())
		}
		if event != nil {
			erased = append(erased, event)
			smaller += int64(len(r.Value) - len(left))
			b.PutRecord(a.entries, r.Key, left)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(erased) == 0 {
		return nil, nil
	}
	if err := note(erased); err != nil {
		return nil, err
	}
	if err := a.commitLeaving(context.WithoutCancel(ctx), &b, smaller); err != nil {
		return nil, state.ContractError(err)
	}
	return erased, nil
}

// forgetLine returns the replacement of a line: the line itself if its event does not match, else its tombstone, along
// with the removed event.
func forgetLine(line []byte, at string, matches func(*abi.MemoryEvent) bool) (left []byte, gone *abi.MemoryEvent,
	err error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, nil, err
	}
	if e.Forgotten != "" {
		return line, nil, nil
	}
	event, err := e.Decode()
	if err != nil {
		return nil, nil, err
	}
	if !matches(event) {
		return line, nil, nil
	}
	left, err = json.Marshal(&Entry{Seq: e.Seq, At: e.At, Forgotten: at})
	return left, event, err
}
