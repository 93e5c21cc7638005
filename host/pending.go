package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
)

// This file polls the backend on the host's own initiative, so that memory becomes complete even if no caller asks.

// The pause between two polls of a scope with outstanding events: the first, and the longest, up to which it doubles.
const (
	pollPause    = time.Second
	pollPauseMax = time.Minute
)

// polls are the scopes to poll, each with the time of the next poll.
type polls map[scopeKey]*nextPoll

type nextPoll struct {
	at      time.Time
	pause   time.Duration
	waiting int // number of outstanding events at the last poll
}

// pollOutstanding polls those scopes of a provider that have outstanding events and are due, so that pending ends even
// if no caller asks. A failed poll is repeated after its pause.
func (s *Slot) pollOutstanding(ctx context.Context, p *Provider, due polls) {
	h := s.host
	waiting := map[scopeKey]int{}
	err := h.ledger.EachOutstanding(ctx, func(_ []byte, scope delivery.Scope, is delivery.Outstanding) error {
		if is == delivery.OutstandingQueued || is == delivery.OutstandingPending {
			waiting[scope]++
		}
		return nil
	})
	if err != nil {
		p.logger.Debug("the outstanding events cannot be read", "error", err)
		return
	}
	for key := range due {
		if waiting[key] == 0 {
			delete(due, key)
		}
	}
	now := h.now()
	for key, n := range waiting {
		next := due[key]
		switch {
		case next == nil:
			due[key] = &nextPoll{at: now.Add(pollPause), pause: pollPause, waiting: n}
			continue
		case n > next.waiting: // there are new ones: poll again soon
			next.waiting, next.pause = n, pollPause
			if soon := now.Add(pollPause); soon.Before(next.at) {
				next.at = soon
			}
		}
		if ctx.Err() != nil {
			return
		}
		if now.Before(next.at) {
			continue
		}
		if err := s.poll(ctx, p, key); err != nil {
			p.logger.Debug("a look at outstanding events", "error", err)
		}
		next.pause = min(2*next.pause, pollPauseMax)
		next.at, next.waiting = h.now().Add(next.pause), n
	}
}

// poll checks the events of one scope, if the scope belongs to the provider.
func (s *Slot) poll(ctx context.Context, p *Provider, key scopeKey) error {
	record, err := s.host.scopeRecordOf(ctx, key)
	if err != nil || record == nil || !p.owns(record) {
		return err
	}
	if p.has(abi.OpReadiness) {
		_, err := s.lookReady(ctx, &abi.ReadinessRequest{Scope: record.memoryScope()})
		return err
	}
	return s.settleUncertain(ctx, record.memoryScope())
}

// settleUncertain asks the backend about the events of a scope whose outcome is unknown.
func (s *Slot) settleUncertain(ctx context.Context, scope abi.MemoryScope) (err error) {
	ctx, o, err := s.begin(ctx, abi.OpFindEvent)
	if err != nil {
		return err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return err
	}
	if err = o.at(ctx, sc); err != nil {
		return err
	}
	u, err := s.host.ledger.Unseen(ctx, sc.key, o.state.Space())
	if err == nil {
		o.askUncertain(ctx, u)
	}
	return err
}
