package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// An event is open if the follower refuses it, or may not have it. It is listed in tableOpen, retried, and looked up
// before a backfill starts to serve.

// Outcomes of listed events, besides Lost.
const (
	openUncertain = "uncertain"
	openRefused   = "refused"
)

// noteOpen records that an event is open.
func (f *Follower) noteOpen(ctx context.Context, e archivedEvent, answer *abi.ReceiptOrError) error {
	scope, err := f.memory.Scope(e.event)
	if err != nil {
		return err
	}
	open := report.OpenEvent{EventID: e.event.EventID, Scope: scope, Outcome: openUncertain}
	if answer.Error != nil {
		open.Outcome, open.Why = openRefused, fmt.Sprintf("%s: %s", answer.Error.Code, answer.Error.Message)
	} else if len(answer.Receipt.Warnings) > 0 {
		open.Why = answer.Receipt.Warnings[0]
	}
	var b state.Batch
	b.PutRecord(tableOpen, openKey(f.key, e.number), abi.Marshal(&open))
	return f.store.Commit(ctx, &b)
}

// openWork is what is open at a follower, according to the memory's ledger.
type openWork struct {
	// unseen counts events that were delivered and are still being processed. open has those that are uncertain, lost
	// or refused; listed those in tableOpen.
	unseen       int64
	open, listed []report.OpenEvent
	// again has the numbers of listed events to deliver once more.
	again []int64
}

// readOpenWork reads which events are open.
func (f *Follower) readOpenWork(ctx context.Context) (*openWork, error) {
	numbers, listed, err := f.store.openEvents(ctx, f.key)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	refused := f.retryRefused
	f.mu.Unlock()
	l := &openWork{listed: listed}
	for i, number := range numbers {
		if listed[i].Outcome != openRefused || refused {
			l.again = append(l.again, number)
		}
	}
	l.open, l.unseen, err = f.memory.Outstanding(ctx, listed)
	return l, err
}

// again delivers the listed open events once more. Those that are still open stay on the list.
func (f *Follower) again(ctx context.Context, numbers []int64) error {
	erasures, err := f.store.Archive.Erasures(ctx)
	if err != nil {
		return err
	}
	for _, number := range numbers {
		result, err := f.retry(ctx, number, erasures)
		if err != nil {
			return err
		}
		if result != outcomeDone && result != outcomeLeftOut {
			continue
		}
		var b state.Batch
		b.DeleteRecord(tableOpen, openKey(f.key, number))
		if err := f.store.Commit(ctx, &b); err != nil {
			return err
		}
		err = f.keep(ctx, func(r *Record) {
			if result == outcomeDone {
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

// retry delivers an open event once more. It skips one that was forgotten or erased since.
func (f *Follower) retry(ctx context.Context, number int64, erasures []archive.Erasure) (outcome, error) {
	record := f.Record()
	entries, _, err := f.store.read(ctx, &record, number-1, 1)
	if err != nil || len(entries) == 0 || entries[0].Seq != number {
		return outcomeLeftOut, err
	}
	scopes, leftOut, err := f.sortOut(entries, erasures)
	if err != nil || leftOut > 0 {
		return outcomeLeftOut, err
	}
	answers, err := f.send(ctx, scopes[0].events)
	if errors.Is(err, errHeld) {
		return outcomeOpen, nil
	}
	if err != nil {
		return outcomeOpen, err
	}
	result, _ := f.judge(&answers[0], mostTries)
	f.tally.add(result)
	return result, nil
}
