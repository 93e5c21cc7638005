package host

import (
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// Values of tableTrimmed: why an event that the ledger does not know may have been recorded before.
const (
	trimmedByRetention byte = 1 // retention has dropped receipts
	trimmedByLoss      byte = 2 // the backend had the scope before this data folder had
)

const (
	warnScopeExisted = "scope_existed: the backend had this scope before the data folder did: an event that the " +
		"folder does not know is looked up before it is sent"
	warnNotLookedUp = "scope_existed: the backend had this scope before the data folder did, and " +
		"memory.lookup_existing is off: what the folder does not know is sent, and what was recorded before is doubled"
	warnMayDouble = "delivery_unverified: the backend had this scope before the data folder did, and %s: if the " +
		"event " +
		"was recorded before, it is stored twice now"
)

// noteExisted adds to a batch that the backend had a scope before this data folder was first used with it: the folder
// is new or was lost, and another one may have recorded events. A control without a backend has its scopes from its
// configuration.
func (o *operation) noteExisted(b *state.Batch, receipt *abi.SetupReceipt) {
	first := o.scope.record.Since == ""
	if !first || receipt.Existed == nil || !*receipt.Existed || len(o.provider.module.Manifest.Origins) == 0 {
		return
	}
	space := o.state.Space()
	b.PutRecord(tableTrimmed, space[:], []byte{trimmedByLoss})
	warning := warnScopeExisted
	if o.provider.config.NoLookup {
		warning = warnNotLookedUp
	}
	receipt.Warnings = append(receipt.Warnings, warning)
}

// lookUp finds out about an event that the ledger does not know, where it may have been recorded before. After
// retention has dropped receipts it counts as sent, with an unknown outcome. Where another data folder may have
// recorded it the backend is asked: known is its record when the backend has all of it, w.resume is set when it has a
// part. If the backend cannot tell, the event is sent, since this host never sent it, and the receipt says that it may
// be there twice: nothing is lost.
//
// Errors: those of find_event, and nothing was sent.
func (o *operation) lookUp(ctx context.Context, w *pendingWrite) (known *ledgerEntry, err error) {
	space := o.state.Space()
	why, err := o.slot.host.store.Record(ctx, tableTrimmed, space[:])
	if err != nil {
		return nil, stateError(err)
	}
	if len(why) == 0 {
		return nil, nil
	}
	lost, canAsk := why[0] == trimmedByLoss, o.provider.has(abi.OpFindEvent)
	// Sent perhaps, at any time before.
	perhaps := &ledgerEntry{hash: w.hash, state: deliverySent, sentAt: time.UnixMilli(0),
		session: w.event.SessionID}
	switch {
	case lost && o.provider.config.NoLookup:
		w.warning = fmt.Sprintf(warnMayDouble, "memory.lookup_existing is off")
		return nil, nil
	case lost && !canAsk:
		w.warning = fmt.Sprintf(warnMayDouble, "the provider cannot look events up (no find_event)")
		return nil, nil
	case !canAsk:
		return nil, nil
	case !lost:
		return perhaps, nil // the host has sent events that it no longer knows
	}
	found, err := o.findEvent(ctx, w.event.EventID, w.event.SessionID, perhaps)
	if err != nil {
		return nil, err
	}
	switch found.Found {
	case foundPresent:
		perhaps.sentAt = o.slot.host.now()
		known = o.provider.found(w.event.EventID, perhaps, found)
		var b state.Batch
		putLedger(&b, o.scope, space, w.event.EventID, known)
		return known, o.commitArchived(ctx, &b, w.event)
	case foundPartial:
		w.resume = &abi.Resume{Missing: found.Missing, Markers: []string{}}
	case foundUnknown:
		w.warning = fmt.Sprintf(warnMayDouble, "the backend cannot tell whether it has the event")
	}
	return nil, nil
}
