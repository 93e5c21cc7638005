package archive

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// Forget removes matching events of a person from the archive, and returns them. Each is replaced by a line with its number and
// times:
//
//	{"seq":17,"at":"2026-03-02T08:00:01.000Z","forgotten":"2026-04-01T10:00:00.000Z"}
//
// A segment with matching events is rewritten, under a new digest and name. After an error or a crash, the same request
// continues. note, which may be nil, is called before events are removed; if it fails, they are kept.
//
// Errors: those of the store and the folder, and unavailable for a damaged segment, whose content is unknown.
func (a *Archive) Forget(ctx context.Context, userID string, matches func(*abi.MemoryEvent) bool,
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
	at := a.Now().UTC().Format(report.TimeFormat)
	for _, info := range list {
		whose, known, failed := a.peopleOf(ctx, info)
		var more []*abi.MemoryEvent
		switch {
		case failed != nil:
		case !known:
			more, failed = a.forgetInSegment(ctx, info, nil, nil, at, matches, note)
		case whose.has(userID):
			more, failed = a.forgetInSegment(ctx, info, whose, mayHave(userID), at, matches, note)
		}
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

// forgetInSegment is Forget for one segment. list has the segment's people, and may is a quick test of a line, or nil. If
// the people are not known, list and may are nil, and it stores them. The caller holds changing.
func (a *Archive) forgetInSegment(ctx context.Context, info segments.Info, list personSet, may func([]byte) bool, at string,
	matches func(*abi.MemoryEvent) bool, note func([]*abi.MemoryEvent) error) (erased []*abi.MemoryEvent, err error) {
	text, err := segments.Read(a.Dir, info)
	if err != nil {
		return nil, errDamaged(err.Error())
	}
	rest, forgotten, whose := make([]byte, 0, len(text)), info.Forgotten, personSet{}
	for line := range bytes.Lines(text) {
		if may != nil && !may(line) {
			rest = append(rest, line...)
			continue
		}
		left, event, gone, err := forgetLine(line, at, matches)
		if err != nil {
			return nil, errDamaged("segment " + info.Name() + ": " + err.Error())
		}
		switch {
		case gone:
			erased, forgotten = append(erased, event), forgotten+1
			left = append(left, '\n')
		case event != nil:
			whose.add(event.UserID)
		}
		rest = append(rest, left...)
	}
	if whose = whose.sorted(); list != nil {
		whose = list // the forgotten person may stay in it: the segment would be read in vain
	}
	if len(erased) == 0 {
		if list != nil {
			return nil, nil
		}
		var b state.Batch
		b.PutRecord(a.whose, numberKey(info.First), whose.encode())
		_, err = a.Store.Commit(ctx, &b)
		return nil, state.ContractError(err)
	}
	if err := note(erased); err != nil {
		return nil, err
	}
	return erased, state.ContractError(a.replace(context.WithoutCancel(ctx), []segments.Info{info}, rest, forgotten,
		whose))
}

// forgetOpen is Forget for unsealed entries. The caller holds changing.
func (a *Archive) forgetOpen(ctx context.Context, at string, matches func(*abi.MemoryEvent) bool,
	note func([]*abi.MemoryEvent) error) (erased []*abi.MemoryEvent, err error) {
	var smaller int64
	var b state.Batch
	err = state.EachRecord(ctx, a.Store, a.entries, nil, func(r state.KeyValue) error {
		left, event, gone, err := forgetLine(r.Value, at, matches)
		if err != nil {
			return errDamaged(err.Error())
		}
		if gone {
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

// forgetLine returns the replacement of a line: the line itself if its event does not match, else its tombstone. event
// is nil if it was forgotten before; gone reports that the line's event is to be removed.
func forgetLine(line []byte, at string, matches func(*abi.MemoryEvent) bool) (left []byte, event *abi.MemoryEvent,
	gone bool, err error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, nil, false, err
	}
	if e.Forgotten != "" {
		return line, nil, false, nil
	}
	event, err = e.Decode()
	if err != nil {
		return nil, nil, false, err
	}
	if !matches(event) {
		return line, event, false, nil
	}
	left, err = json.Marshal(&Entry{Seq: e.Seq, At: e.At, Forgotten: at})
	return left, event, true, err
}
