package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/state"
)

// An event that a follower does not have for certain, or that it refuses, is open: listed in tableFollowOpen, tried
// again, and asked about before a backfill takes its turn.

// Outcomes of open events.
const (
	openUncertain = "uncertain"
	openRefused   = "refused"
	openLost      = "lost"
)

// noteOpen keeps that an event is open.
func (f *follower) noteOpen(ctx context.Context, e archivedEvent, answer *abi.ReceiptOrError) error {
	open := abi.OpenEvent{EventID: e.event.EventID, Scope: f.provider().memoryScopeOf(e.event),
		Outcome: openUncertain}
	if answer.Error != nil {
		open.Outcome, open.Why = openRefused, fmt.Sprintf("%s: %s", answer.Error.Code, answer.Error.Message)
	} else if len(answer.Receipt.Warnings) > 0 {
		open.Why = answer.Receipt.Warnings[0]
	}
	var b state.Batch
	b.PutRecord(tableFollowOpen, f.openKey(e.number), abi.Marshal(&open))
	return f.host.commit(ctx, &b)
}

// followLook is what is open at a follower, by the ledger.
type followLook struct {
	// unseen events were delivered, and the provider still works on them; open ones are uncertain, lost or refused, of
	// which so many are listed in tableFollowOpen.
	unseen, listed int64
	open           []abi.OpenEvent
	// again are the numbers of listed events that are to be delivered once more.
	again []int64
}

// look reads what is open.
func (f *follower) look(ctx context.Context) (*followLook, error) {
	p := f.provider()
	if p == nil {
		return new(followLook), nil
	}
	look := &followLook{}
	listed := map[string]bool{} // by ledger key
	f.mu.Lock()
	refused := f.retryRefused
	f.mu.Unlock()
	err := f.host.eachOpen(ctx, f.key, func(number int64, open *abi.OpenEvent) error {
		entry, key, err := f.ledgerOf(ctx, open)
		if err != nil {
			return err
		}
		listed[key] = true
		look.listed++
		if open.Outcome != openRefused || refused {
			look.again = append(look.again, number)
		}
		if entry == nil || entry.uncertain() || entry.state != deliveryReceived {
			look.open = append(look.open, *open)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	owners := map[scopeKey]*scopeRecord{}
	err = f.host.eachRecord(ctx, tableUnseen, nil, func(r state.KeyValue) error {
		return f.lookAt(ctx, look, r, owners, listed)
	})
	return look, err
}

// lookAt adds an event that the ledger lists as not seen to a look, if it is the follower's.
func (f *follower) lookAt(ctx context.Context, look *followLook, r state.KeyValue, owners map[scopeKey]*scopeRecord,
	listed map[string]bool) error {
	p := f.provider()
	key, is, ok := parseListEntry(r.Value)
	if p == nil || !ok || is == outstandingMarked || listed[string(r.Key)] {
		return nil
	}
	owner, known := owners[key]
	if !known {
		var err error
		if owner, err = f.host.scopeRecordOf(ctx, key); err != nil {
			return err
		}
		owners[key] = owner
	}
	if owner == nil || !p.owns(owner) || generationSpace(key, owner.Generation) != state.Space(r.Key) {
		return nil
	}
	id := string(r.Key[len(state.Space{}):])
	if is == outstandingLost {
		look.open = append(look.open, abi.OpenEvent{EventID: id, Scope: owner.memoryScope(), Outcome: openLost,
			Why: "the backend took it and does not have it: record it again"})
		return nil
	}
	look.unseen++
	return nil
}

// ledgerOf is the ledger's record of an open event with its key; nil if there is none.
func (f *follower) ledgerOf(ctx context.Context, open *abi.OpenEvent) (*ledgerEntry, string, error) {
	sc, err := f.provider().scopeOf(open.Scope)
	if err != nil {
		return nil, "", err
	}
	generation, err := f.host.currentGeneration(ctx, sc)
	if err != nil {
		return nil, "", err
	}
	space := sc.space(generation)
	entry, err := f.host.ledgerRecord(ctx, space, open.EventID)
	return entry, string(ledgerKey(space, open.EventID)), err
}

// again delivers the listed open events once more. What is still open stays on the list.
func (f *follower) again(ctx context.Context, look *followLook) error {
	erasures, err := f.host.archive.Erasures(ctx)
	if err != nil {
		return err
	}
	for _, number := range look.again {
		outcome, err := f.retry(ctx, number, erasures)
		if err != nil {
			return err
		}
		if outcome != outcomeDone && outcome != outcomeLeftOut {
			continue
		}
		var b state.Batch
		b.DeleteRecord(tableFollowOpen, f.openKey(number))
		if err := f.host.commit(ctx, &b); err != nil {
			return err
		}
		err = f.keep(ctx, func(r *followRecord) {
			if outcome == outcomeDone {
				r.Done++
			} else {
				r.LeftOut++
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retry delivers an open event once more. One that was forgotten or erased since is left out.
func (f *follower) retry(ctx context.Context, number int64, erasures []archive.Erasure) (followOutcome, error) {
	entries, _, err := f.host.archive.Read(ctx, number-1, 1)
	if err != nil || len(entries) == 0 || entries[0].Seq != number {
		return outcomeLeftOut, err
	}
	scopes, leftOut, err := f.sortOut(entries, erasures)
	if err != nil || leftOut > 0 {
		return outcomeLeftOut, err
	}
	answers, err := f.send(ctx, scopes[0])
	if errors.Is(err, errHeld) {
		return outcomeOpen, nil
	}
	if err != nil {
		return outcomeOpen, err
	}
	outcome, _ := f.judge(scopes[0][0].event, &answers[0], followTries)
	return outcome, nil
}
