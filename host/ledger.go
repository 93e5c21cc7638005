package host

import (
	"context"
	"crypto/sha256"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/schema"
	"github.com/memhost/memhost/internal/state"
)

// contentHash identifies what an event says, whatever the form of its JSON was.
type contentHash [32]byte

// hashEvent hashes an event's encoding, which is the same for equal events, metadata in canonical form.
func hashEvent(e *abi.MemoryEvent) (contentHash, error) {
	canonical := e
	if len(e.Metadata) > 0 {
		c := *e
		c.Metadata = make(map[string]abi.Raw, len(e.Metadata))
		for key, value := range e.Metadata {
			v, err := schema.CanonicalJSON(value)
			if err != nil {
				return contentHash{}, err
			}
			c.Metadata[key] = v
		}
		canonical = &c
	}
	return sha256.Sum256(abi.Marshal(canonical)), nil
}

// ledgerEntry is what the delivery ledger keeps of an event.
type ledgerEntry struct {
	hash    contentHash
	receipt *abi.WriteReceipt
}

// ledgerKey is where an event of a scope's generation stands: a new generation knows nothing of the old one's deliveries.
func ledgerKey(space state.Space, eventID string) []byte { return append(space[:], eventID...) }

// ledgerRecord looks an event up; nil when it was never delivered.
func (h *Host) ledgerRecord(ctx context.Context, space state.Space, eventID string) (*ledgerEntry, error) {
	stored, err := h.store.Record(ctx, tableLedger, ledgerKey(space, eventID))
	if err != nil {
		return nil, stateError(err)
	}
	if stored == nil {
		return nil, nil
	}
	entry := &ledgerEntry{receipt: new(abi.WriteReceipt)}
	if len(stored) <= len(entry.hash) || abi.Unmarshal(stored[len(entry.hash):], entry.receipt) != nil {
		return nil, abi.NewError(abi.CodeUnavailable, "state: the ledger's record of the event is damaged").WithReason("state")
	}
	copy(entry.hash[:], stored)
	return entry, nil
}

// putLedger adds a receipt to the batch that holds the operation's state: both are there after a crash, or neither. The trace is not kept.
func putLedger(b *state.Batch, space state.Space, w pendingWrite, r *abi.WriteReceipt) {
	kept := *r
	kept.Trace = nil
	b.PutRecord(tableLedger, ledgerKey(space, w.event.EventID), abi.AppendJSON(append([]byte(nil), w.hash[:]...), &kept))
}

// forgetLedger adds the removal of every record of a space to a batch.
func (h *Host) forgetLedger(ctx context.Context, b *state.Batch, space state.Space) error {
	var after []byte
	for {
		page, err := h.store.Records(ctx, tableLedger, space[:], after, 1000)
		if err != nil {
			return stateError(err)
		}
		for _, r := range page {
			b.DeleteRecord(tableLedger, r.Key)
			after = r.Key
		}
		if len(page) < 1000 {
			return nil
		}
	}
}
