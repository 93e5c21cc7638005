package follow

import (
	"context"
	"errors"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// Where no archive is kept, an event waits for its followers alone, in the archive's table.

// trim removes from the queue what every follower has.
func (s *Store) trim(ctx context.Context) error {
	if s.Archive.On {
		return nil
	}
	records, err := s.Records(ctx)
	if err != nil {
		return err
	}
	upTo := s.Archive.Settled()
	for _, r := range records {
		upTo = min(upTo, r.archived())
		for _, held := range r.Held {
			upTo = min(upTo, max(held.From-1, r.From))
		}
	}
	return s.Archive.DropQueued(ctx, upTo)
}

// gaps counts the events that a backfill never gets, and asks about before it serves. A shadow's operator has read of
// them in its report.
func (r *Record) gaps() int64 {
	if r.Role != abi.RoleBackfill {
		return 0
	}
	return r.Dropped
}

// LetGo counts what followers do not have of entries that the archive's retention is about to remove, of which last is
// the number of the last one. Retention is a promise to the persons whose words they are: it holds nothing back for a
// memory that is late.
func (s *Store) LetGo(ctx context.Context, last int64, entries func() ([]archive.Entry, error)) error {
	records, err := s.Records(ctx)
	if err != nil {
		return err
	}
	erasures, err := s.Archive.Erasures(ctx)
	if err != nil {
		return err
	}
	for key, r := range records {
		if r.archived() >= last && len(r.Held) == 0 {
			continue
		}
		gone, err := entries()
		if err != nil {
			return err
		}
		if err := s.letGo(ctx, key, &r, gone, erasures); err != nil {
			return err
		}
	}
	return nil
}

// letGo is LetGo for one follower.
func (s *Store) letGo(ctx context.Context, key Key, r *Record, gone []archive.Entry,
	erasures []archive.Erasure) error {
	s.runningMu.Lock()
	f := s.running[key]
	s.runningMu.Unlock()
	var never int64
	change := func(r *Record) error {
		var err error
		never, err = r.lose(gone, erasures, f)
		return err
	}
	if f == nil {
		if err := change(r); err != nil || never == 0 {
			return err
		}
		if err := s.put(ctx, key, r); err != nil || r.Role == abi.RoleShadow { // nobody asks about it any more
			return err
		}
	} else {
		var failed error
		if err := f.keep(ctx, func(r *Record) { failed = change(r) }); err != nil || failed != nil || never == 0 {
			return errors.Join(err, failed)
		}
	}
	s.Logger.Warn("the archive's retention removed events that a memory that follows does not have", "provider",
		r.Provider, "role", r.Role, "events", never)
	return nil
}

// lose counts in the record what the follower never gets of entries that are removed. A page that is being delivered
// does not need them any more.
func (r *Record) lose(gone []archive.Entry, erasures []archive.Erasure, f *Follower) (never int64, err error) {
	delivered := r.archived()
	if f != nil {
		f.mu.Lock()
		delivered = max(delivered, f.pageEnd)
		f.mu.Unlock()
	}
	for i := range gone {
		e := &gone[i]
		event, err := e.Decode()
		if err != nil {
			return never, err
		}
		imported := r.Role == abi.RoleShadow && e.Provider == "" && e.Seq > r.FillTo
		if imported || r.wasErased(erasures, e.Seq, event) {
			continue
		}
		if e.Seq > delivered || r.unhold(e.Seq, event) {
			never++
		}
	}
	r.Dropped += never
	return never, nil
}

// TooLong reports whether more waits for followers than QueueBytes.
func (s *Store) TooLong() bool { return !s.Archive.On && s.Archive.OpenBytes() > s.QueueBytes }

// Cut drops the oldest quarter of what waits, but for what a follower is just being sent. Each follower counts what it
// never gets. One call at a time.
func (s *Store) Cut(ctx context.Context, followers []*Follower) error {
	oldest, err := s.Archive.Oldest(ctx, s.QueueBytes/4*3)
	if err != nil {
		return err
	}
	for _, f := range followers {
		f.mu.Lock()
		sent, end := f.record.archived(), f.pageEnd
		f.mu.Unlock()
		oldest = slices.DeleteFunc(oldest, func(number int64) bool { return sent < number && number <= end })
	}
	for _, f := range followers {
		var never int64
		record := f.Record()
		at := record.archived()
		for _, number := range oldest {
			if number > at {
				never++
			}
		}
		if never == 0 {
			continue
		}
		if err := f.keep(ctx, func(r *Record) { r.Dropped += never }); err != nil {
			return err
		}
		s.Logger.Warn("events were dropped that a memory that follows does not have: it is too far behind, and there is "+
			"no archive", "provider", f.record.Provider, "events", never)
	}
	return s.Archive.Drop(ctx, oldest)
}
