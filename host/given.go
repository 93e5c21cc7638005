package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
)

// BackfillEvents brings the events from which another provider is to be filled, instead of from the archive: for
// example those of a file, in the order in which they should be remembered. They stay in the data folder until a
// Backfill with Given has delivered them, or is discarded. Present in the receipt counts events that were given before.
// Forgotten events are skipped and counted neither as added nor as present.
//
// Errors: conflict with reason backfill while given events are being delivered; those of ArchiveAdd.
func (s *Slot) BackfillEvents(ctx context.Context, r *report.BackfillEvents) (*report.ArchiveReceipt, error) {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if err := s.canFollow(); err != nil {
		return nil, inOperation(opBackfillEvents, err)
	}
	used, err := s.host.usesGiven(ctx)
	if err != nil {
		return nil, inOperation(opBackfillEvents, err)
	}
	if used {
		return nil, inOperation(opBackfillEvents, abi.NewError(abi.CodeConflict,
			"a backfill is under way, or stopped, that is filled from a file").WithReason("backfill").
			WithHint("one at a time: `memhost swap PROVIDER --backfill` goes on with it, `memhost backfill discard` throws it "+
				"away"))
	}
	if r.First {
		if err := s.host.given.Clear(ctx); err != nil {
			return nil, inOperation(opBackfillEvents, err)
		}
	}
	if len(r.Events) == 0 {
		return new(report.ArchiveReceipt), nil
	}
	receipt, err := s.host.given.ArchiveAdd(ctx, &abi.EventBatch{Events: r.Events})
	if err != nil {
		return nil, inOperation(opBackfillEvents, err)
	}
	return receipt, nil
}

const opBackfillEvents = "backfill_events"

// canBegin rejects a backfill that has no source of events. A backfill from given events needs no archive.
func (s *Slot) canBegin(ctx context.Context, config ProviderConfig, given bool) error {
	used, err := s.host.usesGiven(ctx)
	if err != nil {
		return inOperation(opBackfill, err)
	}
	if !given && !used && !s.host.archive.On {
		return refuseBackfill(abi.CodeUnsupported, "archive_off", "the slot keeps no archive to fill from",
			"set memory.archive: true; what was recorded before is not in it. `memhost swap "+config.Name+
				" --backfill FILE` fills it from a file")
	}
	if !given || used {
		return nil
	}
	stats, err := s.host.given.ArchiveStats(ctx)
	if err != nil {
		return inOperation(opBackfill, err)
	}
	if stats.Events == 0 {
		return refuseBackfill(abi.CodeInvalidArgument, "nothing_given", "no event was given to fill from",
			"what was forgotten is not taken")
	}
	return nil
}

// usesGiven reports whether a backfill is filled from given events.
func (h *Host) usesGiven(ctx context.Context) (bool, error) {
	records, err := h.follow.Records(ctx)
	return anyGiven(records), err
}

func anyGiven(records map[follow.Key]follow.Record) bool {
	for _, r := range records {
		if r.Given {
			return true
		}
	}
	return false
}

// resumeFollowing restores what an earlier process left for followers. A backfill from given events also receives
// everything that is recorded from the first moment on.
func (h *Host) resumeFollowing(ctx context.Context) error {
	records, err := h.follow.Records(ctx)
	if err != nil || h.fleet.Shared() {
		return err
	}
	h.follow.Resume(records)
	for _, r := range records {
		if r.Role == report.RoleShadow && !h.archive.On {
			h.away.Store(true)
		}
	}
	if !anyGiven(records) {
		return h.given.Clear(ctx)
	}
	h.queued.Store(!h.archive.On)
	return nil
}

// endFollowing removes what was queued for a follower that has ended.
func (h *Host) endFollowing(ctx context.Context) error {
	records, err := h.follow.Records(ctx)
	if err != nil {
		return err
	}
	if !anyGiven(records) {
		err = h.given.Clear(ctx)
	}
	if len(records) > 0 || err != nil {
		return err
	}
	h.queued.Store(false)
	return h.dropQueue(ctx)
}

// dropQueue removes everything that is queued for followers.
func (h *Host) dropQueue(ctx context.Context) error {
	for last := int64(-1); h.archive.OpenBytes() != last; {
		last = h.archive.OpenBytes()
		if err := h.archive.DropQueued(ctx, h.archive.Settled()); err != nil {
			return err
		}
	}
	return nil
}
