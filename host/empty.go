package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/delivery"
)

// This file is about events that arrived, but of which the backend kept nothing: its model gave an invalid answer, its
// embedder failed, or there was nothing to remember. From outside these look alike. So the ledger keeps such events as
// empty, readiness lists them, and the caller or the configuration decides whether they are sent again.

// Values of ProviderConfig.RetryEmpty.
const (
	RetryNever = "never"
	RetryOnce  = "once"
)

const (
	warnSentAgain = "sent_again: the backend kept nothing of it the first time, and got it once more"
	warnEmptyMore = "empty_more: the backend kept nothing of %d more events"
	warnEmpty     = "kept_nothing: the backend kept nothing of %d events; memhost readiness --retry sends them again"
)

// maxEmptyIDs is the maximum number of empty events in one response.
const maxEmptyIDs = 1000

// retries reports whether an empty event should be sent again when a caller records it again.
func (p *Provider) retries(known *delivery.Entry) bool {
	switch known.State {
	case delivery.Again:
		return true
	case delivery.Empty:
		return p.config.RetryEmpty == RetryOnce && !slices.Contains(known.Receipt.Warnings, warnSentAgain)
	}
	return false
}

// listEmpty adds the scope's empty events to a readiness response.
func (o *operation) listEmpty(ctx context.Context, ready *abi.BackendReadiness) error {
	ids, count, err := o.slot.host.ledger.EmptyIDs(ctx, o.state.Space(), maxEmptyIDs)
	if err != nil || count == 0 {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(ready.EventIDs.Empty, id) {
			ready.EventIDs.Empty = append(ready.EventIDs.Empty, id)
		}
	}
	ready.Warnings = append(ready.Warnings, fmt.Sprintf(warnEmpty, count))
	if more := count - len(ids); more > 0 {
		ready.Warnings = append(ready.Warnings, fmt.Sprintf(warnEmptyMore, more))
	}
	return nil
}

// retry marks all empty events of a scope for another attempt. Then it sends them, and the failed and lost ones, if they
// are in the archive. The others are sent when a caller records them again; until then readiness lists them as failed or
// lost.
//
// Errors: read_only if the scope is read-only; errors of the store and the archive. If sending fails, the event stays
// marked.
func (s *Slot) retry(ctx context.Context, scope abi.MemoryScope) error {
	wanted, err := s.noteRetry(ctx, scope)
	if err != nil || len(wanted) == 0 || !s.host.archive.On {
		return err
	}
	var events []*abi.MemoryEvent
	err = s.host.archive.EachAfter(ctx, 0, func(_ *archive.Entry, e *abi.MemoryEvent) error {
		if wanted[e.EventID] && e.RunID == scope.RunID && e.UserID == scope.PersonaID {
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range events {
		s.deliver(ctx, abi.OpRecordEvent, []*abi.MemoryEvent{e}, true)
	}
	return nil
}

// noteRetry marks the empty events in the ledger. It returns the ids of all events that are to be sent again.
func (s *Slot) noteRetry(ctx context.Context, scope abi.MemoryScope) (wanted map[string]bool, err error) {
	ctx, o, err := s.begin(ctx, abi.OpReadiness)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	sc, err := o.provider.scopeOf(scope)
	if err != nil {
		return nil, err
	}
	if err = o.at(ctx, sc); err != nil {
		return nil, err
	}
	permit, err := o.admit(ctx, sc)
	if err != nil {
		return nil, err
	}
	if permit == nil {
		return nil, inOperation(abi.OpReadiness, s.refusal("nothing is sent again"))
	}
	defer permit.Release()
	empty, err := s.host.ledger.Empty(ctx, sc.key, o.state.Space())
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(empty.Again(), maxAmended) {
		o.amend(ctx, empty, some...)
	}
	unseen, err := s.host.ledger.Unseen(ctx, sc.key, o.state.Space()) // with those that were marked now
	if err != nil {
		return nil, err
	}
	wanted = map[string]bool{}
	for _, id := range unseen.Missing() {
		wanted[id] = true
	}
	return wanted, nil
}
