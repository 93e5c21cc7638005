package host

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
)

// BackfillStop stops a backfill and keeps what it filled; Backfill resumes it. With Discard it also resets the scopes
// that were filled and drops the backfill; the answer lists what could not be reset. Discard needs the provider to be
// loaded, and otherwise fails with conflict, reason stopped: see BackfillDiscard.
func (s *Slot) BackfillStop(ctx context.Context, r *report.BackfillStop) (*report.Backfill, error) {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	f := s.theBackfill()
	if f == nil {
		return s.stopUnloaded(ctx, r)
	}
	if f.work.Record().Role == report.RoleShadow { // it remains a shadow
		f.work.GiveUpTurn()
		return f.backfill(ctx)
	}
	within, cancel := context.WithTimeout(ctx, backfillStop)
	defer cancel()
	f.work.End(within)
	var remains []string
	if r.Discard {
		var err error
		if remains, err = f.discard(ctx); err != nil {
			f.work.Start() // continue the backfill; the caller may try again
			return nil, inOperation(opBackfill, err)
		}
	} else if err := f.work.KeepStopped(ctx); err != nil {
		f.work.Start()
		return nil, inOperation(opBackfill, err)
	}
	s.followers.remove(f)
	answer, err := f.backfill(ctx)
	if err != nil {
		return nil, err
	}
	answer.Remains = remains
	s.manifestChanged(ctx)
	return answer, f.close(ctx)
}

// stopUnloaded is BackfillStop for a backfill whose provider is not loaded.
func (s *Slot) stopUnloaded(ctx context.Context, r *report.BackfillStop) (*report.Backfill, error) {
	status, err := s.BackfillStatus(ctx)
	switch {
	case err != nil:
		return nil, err
	case status.State == report.FollowerNone:
		return nil, errNoBackfill()
	case r.Discard:
		return nil, refuseBackfill(abi.CodeConflict, "stopped", "the backfill of "+status.Provider+" is stopped, and its "+
			"provider is not loaded", "`memhost swap "+status.Provider+" --backfill` loads it; then discard it")
	}
	return status, nil
}

// BackfillDiscard is BackfillStop with Discard for an UnfinishedBackfill. If the backend does not answer, it keeps its
// data, and Remains says so.
func (s *Slot) BackfillDiscard(ctx context.Context, config ProviderConfig) (*report.Backfill, error) {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	p, err := s.host.loadProvider(ctx, config)
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	key := p.followerKey()
	record, err := s.host.follow.Record(ctx, key)
	if err == nil && (record == nil || record.Role != report.RoleBackfill || s.followers.with(key) != nil) {
		err = errNoBackfill()
	}
	var f *follower
	if err == nil {
		f, err = s.newFollower(ctx, p, follow.Config{Record: *record})
	}
	if err != nil {
		_ = p.close(context.WithoutCancel(ctx))
		return nil, inOperation(opBackfill, err)
	}
	defer func() { _ = f.close(context.WithoutCancel(ctx)) }()
	if err := f.Open(ctx); err != nil {
		p.logger.Warn("a backend whose backfill is thrown away does not answer", "provider", p.name, "error", err)
	}
	answer, err := s.stoppedBackfill(ctx, key, record)
	if err == nil {
		answer.Remains, err = f.discard(ctx)
	}
	if err != nil {
		return nil, inOperation(opBackfill, err)
	}
	return answer, nil
}

// discard resets the scopes that the follower's provider has, and drops the follower. remains lists what could not be
// reset.
func (f *follower) discard(ctx context.Context) (remains []string, err error) {
	var scopes []abi.MemoryScope
	err = f.slot.host.eachScope(ctx, f.provider(), func(r *scopeRecord) { scopes = append(scopes, r.memoryScope()) })
	if err != nil {
		return nil, err
	}
	remains = []string{}
	for _, scope := range scopes {
		receipt, err := f.inner.ResetScope(ctx, bareScope(scope))
		switch {
		case abi.CodeOf(err) == abi.CodeReadOnly:
			return nil, err
		case err != nil:
			remains = append(remains, fmt.Sprintf("run %q, user %q: %s", scope.RunID, scope.PersonaID,
				abi.AsError(err).Message))
		case receipt.Status != abi.ResetDone:
			remains = append(remains, fmt.Sprintf("run %q, user %q: reset %s %v", scope.RunID, scope.PersonaID,
				receipt.Status, receipt.Remains))
		}
	}
	if err := f.work.Drop(ctx); err != nil {
		return nil, err
	}
	if err := f.slot.host.endFollowing(ctx); err != nil {
		return nil, err
	}
	if _, left := f.slot.host.scrub(ctx); left != "" {
		remains = append(remains, left)
	}
	return remains, nil
}
