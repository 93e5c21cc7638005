package follow

import (
	"context"
	"errors"
	"slices"

	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
)

// If no archive is kept, the archive's table only holds events until all followers have them.

// trim removes from the queue the events that every follower has.
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

// gaps counts the events that a backfill never gets, which it asks about before it serves. For a shadow, the operator
// sees the number in the report.
func (r *Record) gaps() int64 {
	if r.Role != report.RoleBackfill {
		return 0
	}
	return r.Dropped
}

// LetGo counts what followers miss of entries that the archive's retention is about to remove; last is the number of
// the last entry. Retention is a promise to the people whose words the archive holds, so it does not wait for a slow
// memory.
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
func (s *Store) letGo(ctx context.Context, key Key, r *Record, dropped []archive.Entry,
	erasures []archive.Erasure) error {
	s.runningMu.Lock()
	f := s.running[key]
	s.runningMu.Unlock()
	var never int64
	change := func(r *Record) error {
		var err error
		never, err = r.lose(dropped, erasures, f)
		return err
	}
	if f == nil {
		if err := change(r); err != nil || never == 0 {
			return err
		}
		if err := s.put(ctx, key, r); err != nil || r.Role == report.RoleShadow { // no one asks about a shadow's gaps
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

// lose updates the record with the removed entries that the follower never gets. A page that is being delivered no
// longer needs them.
func (r *Record) lose(dropped []archive.Entry, erasures []archive.Erasure, f *Follower) (never int64, err error) {
	delivered := r.archived()
	if f != nil {
		f.mu.Lock()
		delivered = max(delivered, f.pageEnd)
		f.mu.Unlock()
	}
	for i := range dropped {
		e := &dropped[i]
		event, err := e.Decode()
		if err != nil {
			return never, err
		}
		imported := r.Role == report.RoleShadow && e.Provider == "" && e.Seq > r.FillTo
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

// TooLong reports whether the queue for followers exceeds QueueBytes.
func (s *Store) TooLong() bool { return !s.Archive.On && s.Archive.OpenBytes() > s.QueueBytes }

// Cut drops the oldest quarter of the queue, except what a follower is currently being sent. Each follower counts what
// it misses. Only one call may run at a time.
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
