package host

import (
	"context"
	"slices"
)

// trimQueue removes what every follower has where no archive is kept.
func (s *Slot) trimQueue(ctx context.Context) error {
	h := s.host
	if h.archive.On || !h.queued.Load() {
		return nil
	}
	records, err := h.followRecords(ctx)
	if err != nil {
		return err
	}
	upTo := h.archive.Settled()
	for _, r := range records {
		upTo = min(upTo, r.Position)
		for _, held := range r.Held {
			upTo = min(upTo, held.From-1)
		}
	}
	return h.archive.DropQueued(ctx, upTo)
}

// boundQueue bounds what waits for followers where no archive is kept: beyond Limits.QueueBytes the oldest quarter is
// dropped, beside the write that finds it so. Each follower counts what it never gets.
func (s *Slot) boundQueue(ctx context.Context) {
	h := s.host
	if h.archive.On || h.archive.OpenBytes() <= h.limits.QueueBytes || !s.dropping.TryLock() {
		return
	}
	s.drains.Go(func() {
		defer s.dropping.Unlock()
		if err := s.dropOldest(context.WithoutCancel(ctx)); err != nil {
			h.logger.Warn("the queue of the memories that follow cannot be cut", "error", err)
		}
	})
}

// dropOldest drops what no follower is just being sent.
func (s *Slot) dropOldest(ctx context.Context) error {
	h := s.host
	oldest, err := h.archive.Oldest(ctx, h.limits.QueueBytes/4*3)
	if err != nil {
		return err
	}
	followers := s.followerList()
	for _, f := range followers {
		f.mu.Lock()
		sent, end := f.record.Position, f.pageEnd
		f.mu.Unlock()
		oldest = slices.DeleteFunc(oldest, func(number int64) bool { return sent < number && number <= end })
	}
	for _, f := range followers {
		var never int64
		at := f.position()
		for _, number := range oldest {
			if number > at {
				never++
			}
		}
		if never == 0 {
			continue
		}
		if err := f.keep(ctx, func(r *followRecord) { r.Dropped += never }); err != nil {
			return err
		}
		h.logger.Warn("events were dropped that a memory that follows does not have: it is too far behind, and there is "+
			"no archive", "provider", f.record.Provider, "events", never)
	}
	return h.archive.Drop(ctx, oldest)
}
