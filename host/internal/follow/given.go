package follow

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// A backfill may be filled from given events, those of a file, instead of the archive. They wait in an archive of their
// own. To the follower they are numbered before everything else: givenBase is added to their numbers there. After the
// last of them it goes on with what the archive, or the queue, has beyond Record.From: what was recorded since it
// began.
//
//	given 1, 2, 3       givenBase+1, givenBase+2, givenBase+3
//	archived 412, 413   412, 413, where From is 411

const givenBase int64 = -1 << 40

// read returns up to limit entries of the follower with numbers beyond after, and whether there may be more.
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

// countAfter counts the entries that the follower has not dealt with, as archive.CountAfter does.
func (s *Store) countAfter(ctx context.Context, r *Record) (n int64, err error) {
	if r.Given && r.Position < 0 {
		if n, err = s.Given.CountAfter(ctx, r.Position-givenBase); err != nil {
			return 0, err
		}
	}
	archived, err := s.Archive.CountAfter(ctx, r.archived())
	return n + archived, err
}

// archived is the number up to which it needs nothing of the archive.
func (r *Record) archived() int64 { return max(r.Position, r.From) }

// wasErased reports whether a reset erased an event. Given events were given after the resets up to GivenErased.
func (r *Record) wasErased(erasures []archive.Erasure, number int64, event *abi.MemoryEvent) bool {
	for _, e := range erasures {
		if (number >= 0 || e.Number > r.GivenErased) && e.Covers(number, event) {
			return true
		}
	}
	return false
}

// Each visits what the follower has not dealt with, in order. erased: a reset erased it.
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
