package follow

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// A backfill may be filled from given events, those of a file, instead of the archive. They are in a separate archive.
// For the follower they come before everything else: their numbers there are increased by the negative givenBase. After
// the last of them it continues with what the archive, or the queue, has beyond Record.From, which was recorded since
// the backfill started.
//
//	given 1, 2, 3       givenBase+1, givenBase+2, givenBase+3
//	archived 412, 413   412, 413 if From is 411

const givenBase int64 = -1 << 40

// read returns up to limit entries for the follower with numbers beyond after, and whether there may be more.
func (s *Store) read(ctx context.Context, r *Record, after int64, limit int) (entries []archive.Entry, more bool,
	err error) {
	if r.Given && after < 0 {
		entries, _, err = s.Given.Read(ctx, after-givenBase, limit)
		for i := range entries {
			entries[i].Seq += givenBase
		}
		if err != nil || len(entries) > 0 {
			return entries, true, err
		}
	}
	return s.Archive.Read(ctx, max(after, r.From), limit)
}

// countAfter counts the entries that the follower has not handled, as archive.CountAfter does.
func (s *Store) countAfter(ctx context.Context, r *Record) (n int64, err error) {
	if r.Given && r.Position < 0 {
		if n, err = s.Given.CountAfter(ctx, r.Position-givenBase); err != nil {
			return 0, err
		}
	}
	archived, err := s.Archive.CountAfter(ctx, r.archived())
	return n + archived, err
}

// archived is the number up to which the follower needs nothing from the archive.
func (r *Record) archived() int64 { return max(r.Position, r.From) }

// wasErased reports whether a reset erased an event. Given events were brought after the resets up to GivenErased.
func (r *Record) wasErased(erasures []archive.Erasure, number int64, event *abi.MemoryEvent) bool {
	for _, e := range erasures {
		if (number >= 0 || e.Number > r.GivenErased) && e.Covers(number, event) {
			return true
		}
	}
	return false
}

// Each visits the events that the follower has not handled, in order. erased means that a reset erased the event.
func (s *Store) Each(ctx context.Context, r *Record, visit func(event *abi.MemoryEvent, erased bool) error) error {
	erasures, err := s.Archive.Erasures(ctx)
	if err != nil {
		return err
	}
	for after := r.Position; ; {
		entries, more, err := s.read(ctx, r, after, PageEvents)
		if err != nil || !more {
			return err
		}
		for i := range entries {
			event, err := entries[i].Decode()
			if err != nil {
				return err
			}
			after = entries[i].Seq
			if err := visit(event, r.wasErased(erasures, after, event)); err != nil {
				return err
			}
		}
	}
}
