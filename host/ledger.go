package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/configuration/schema"
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

// delivery is the last known state of an event's delivery.
type delivery byte

const (
	// deliverySent: a native write was sent, and no receipt was stored since. The outcome is unknown.
	deliverySent delivery = 's'
	// deliveryReceived: the provider gave a receipt. That may itself say uncertain or partial.
	deliveryReceived delivery = 'r'
	// deliveryLost and deliveryFailed: readiness proved that it never arrived. Recorded again, it is sent again.
	deliveryLost   delivery = 'l'
	deliveryFailed delivery = 'f'
	// deliveryEmpty: it arrived, and the backend kept nothing of it. Readiness lists it until somebody decides.
	deliveryEmpty delivery = 'e'
	// deliveryAgain: it was empty, and somebody wants it sent again. Recorded again, it is.
	deliveryAgain delivery = 'a'
)

// ledgerEntry is what the delivery ledger keeps of an event.
type ledgerEntry struct {
	hash   contentHash
	state  delivery
	sentAt time.Time
	// session is the event's session id; "" in a record from before it was kept.
	session string
	// receipt is nil for what was sent only.
	receipt *abi.WriteReceipt
	// stored is the record as it is in the store, the precondition of a change without the scope's lock.
	stored []byte
}

// uncertain reports whether the backend has to be asked before the event may be sent again.
func (e *ledgerEntry) uncertain() bool {
	return e.state == deliverySent || e.state == deliveryReceived && answercheck.Undecided(e.receipt.Status)
}

// unseen reports whether it is not yet known that the event can be retrieved.
func (e *ledgerEntry) unseen() bool {
	switch e.state {
	case deliveryEmpty:
		return false
	case deliveryReceived:
	default:
		return true
	}
	switch e.receipt.Status {
	case abi.StatusQueued, abi.StatusPending, abi.StatusPartial, abi.StatusUncertain:
		return true
	}
	return len(e.receipt.Markers) > 0
}

func (e *ledgerEntry) markers() []string {
	if e.receipt == nil {
		return []string{}
	}
	return e.receipt.Markers
}

const ledgerHead = len(contentHash{}) + 1 + 8 // hash, delivery, ms since 1970

// ledgerSession stands before a session id. A record without one has its receipt there, which begins with '{'.
const ledgerSession = 's'

// encode is the stored form: hash(32), delivery(1), time of sending(8), then what there is of session and receipt:
//
//	's' length(uvarint) session id   receipt in JSON without its trace
func (e *ledgerEntry) encode() []byte {
	b := make([]byte, 0, 256)
	b = append(append(b, e.hash[:]...), byte(e.state))
	b = binary.BigEndian.AppendUint64(b, uint64(e.sentAt.UnixMilli()))
	if e.session != "" {
		b = append(binary.AppendUvarint(append(b, ledgerSession), uint64(len(e.session))), e.session...)
	}
	if e.receipt == nil {
		return b
	}
	kept := *e.receipt
	kept.Trace, kept.Duplicate, kept.RetryAfterMS = nil, false, nil
	return abi.AppendJSON(b, &kept)
}

func errLedgerRecord() *abi.Error {
	return abi.NewError(abi.CodeUnavailable, "state: the ledger's record of the event is damaged").WithReason("state").
		WithHint("nothing was sent; restore the data folder, or reset the scope")
}

func decodeLedgerEntry(stored []byte) (*ledgerEntry, error) {
	record := stored
	// the first form: nothing between hash and receipt
	if len(record) > len(contentHash{}) && record[len(contentHash{})] == '{' {
		record = slices.Insert(slices.Clone(record), len(contentHash{}),
			append([]byte{byte(deliveryReceived)}, make([]byte, 8)...)...)
	}
	if len(record) < ledgerHead {
		return nil, errLedgerRecord()
	}
	e := &ledgerEntry{hash: contentHash(record), state: delivery(record[32]),
		sentAt: time.UnixMilli(int64(binary.BigEndian.Uint64(record[33:]))), stored: stored}
	text, whole := e.takeSession(record[ledgerHead:])
	if !whole {
		return nil, errLedgerRecord()
	}
	if len(text) > 0 {
		e.receipt = new(abi.WriteReceipt)
		if abi.Unmarshal(text, e.receipt) != nil {
			return nil, errLedgerRecord()
		}
	}
	if e.receipt == nil && e.state != deliverySent {
		return nil, errLedgerRecord()
	}
	return e, nil
}

// takeSession reads the session at the beginning of text, if there is one, and returns what follows. whole is false
// where the record ends inside.
func (e *ledgerEntry) takeSession(text []byte) (rest []byte, whole bool) {
	if len(text) == 0 || text[0] != ledgerSession {
		return text, true
	}
	length, n := binary.Uvarint(text[1:])
	if n <= 0 || uint64(len(text)-1-n) < length {
		return nil, false
	}
	text = text[1+n:]
	e.session = string(text[:length])
	return text[length:], true
}

// ledgerKey is the key of an event of a scope's generation: a new generation knows nothing of the old one's
// deliveries.
func ledgerKey(space state.Space, eventID string) []byte { return append(space[:], eventID...) }

// ledgerRecord looks an event up; nil when the ledger does not know it.
func (h *Host) ledgerRecord(ctx context.Context, space state.Space, eventID string) (*ledgerEntry, error) {
	stored, err := h.store.Record(ctx, tableLedger, ledgerKey(space, eventID))
	if err != nil {
		return nil, stateError(err)
	}
	if stored == nil {
		return nil, nil
	}
	return decodeLedgerEntry(stored)
}

// putLedger adds an event's record to a batch, and to the list of what is not seen yet, or takes it off that list.
func putLedger(b *state.Batch, sc *scopeState, space state.Space, eventID string, e *ledgerEntry) {
	key := ledgerKey(space, eventID)
	b.PutRecord(tableLedger, key, e.encode())
	if e.unseen() {
		b.PutRecord(tableUnseen, key, listEntry(sc, e))
	} else {
		b.DeleteRecord(tableUnseen, key)
	}
	if e.state == deliveryEmpty {
		b.PutRecord(tableEmpty, key, []byte{})
	} else {
		b.DeleteRecord(tableEmpty, key)
	}
}

// dropLedger adds the removal of an event's record.
func dropLedger(b *state.Batch, space state.Space, eventID string) {
	key := ledgerKey(space, eventID)
	b.DeleteRecord(tableLedger, key)
	b.DeleteRecord(tableUnseen, key)
	b.DeleteRecord(tableEmpty, key)
}

// forgetLedger adds the removal of every record of a space to a batch.
func (h *Host) forgetLedger(ctx context.Context, b *state.Batch, space state.Space) error {
	b.DeleteRecord(tableTrimmed, space[:])
	for _, table := range []state.Table{tableLedger, tableUnseen, tableEmpty} {
		err := h.eachRecord(ctx, table, space[:], func(r state.KeyValue) error {
			b.DeleteRecord(table, r.Key)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepStep is how many records of the ledger one write looks at when a retention is set: old records are removed a few
// at a time.
const sweepStep = 32

// sweepLedger adds to a batch the removal of receipts that are older than the retention. What is not seen yet stays,
// however old, and so does what the backend kept nothing of. A scope of which something was dropped is noted, so that an event it no longer knows is looked up in the
// backend before it is taken for new.
func (h *Host) sweepLedger(ctx context.Context, b *state.Batch) error {
	keep := h.options.LedgerRetention
	if keep <= 0 {
		return nil
	}
	h.sweepMu.Lock()
	defer h.sweepMu.Unlock()
	records, err := h.store.Records(ctx, tableLedger, nil, h.sweptTo, sweepStep)
	if err != nil {
		return stateError(err)
	}
	before := h.now().Add(-keep)
	for _, r := range records {
		e, err := decodeLedgerEntry(r.Value)
		if err != nil || e.unseen() || e.state == deliveryEmpty || !e.sentAt.Before(before) {
			continue
		}
		space := state.Space(r.Key)
		b.DeleteRecord(tableLedger, r.Key)
		b.PutRecord(tableTrimmed, space[:], []byte{trimmedByRetention})
	}
	if h.sweptTo = nil; len(records) == sweepStep {
		h.sweptTo = records[len(records)-1].Key
	}
	return nil
}
