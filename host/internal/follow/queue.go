package follow

import (
	"context"
	"slices"
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
		upTo = min(upTo, r.Position)
		for _, held := range r.Held {
			upTo = min(upTo, held.From-1)
		}
	}
	return s.Archive.DropQueued(ctx, upTo)
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
		sent, end := f.record.Position, f.pageEnd
		f.mu.Unlock()
		oldest = slices.DeleteFunc(oldest, func(number int64) bool { return sent < number && number <= end })
	}
	for _, f := range followers {
		var never int64
		at := f.Record().Position
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
