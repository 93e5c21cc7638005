// Package delivery knows whether an event was delivered.
//
// The ledger keeps an Entry for each event of a scope's generation: what was sent, and what the backend said. Decide is
// the contract of delivery: it says from the facts about an event whether it is sent, refused, or answered from the
// ledger. Unseen lists the events that readiness has not seen in memory yet.
//
// The package only uses the store. Package host deals with backend, guest and wall.
package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/state"
)

// The ledger's tables.
const (
	TableEntries state.Table = "ledger"  // space, event id -> Entry
	TableUnseen  state.Table = "unseen"  // space, event id -> Scope, Outstanding: events not yet seen in memory
	tableEmpty   state.Table = "empty"   // space, event id -> nothing: events whose State is Empty
	TableGaps    state.Table = "trimmed" // space -> Gap
)

// Scope is the key of a scope.
type Scope = [16]byte

// Hash identifies an event's content, independent of its JSON formatting.
type Hash [32]byte

// HashOf hashes an event's canonical encoding, with metadata as canonical JSON.
//
// Errors: metadata that is not JSON.
func HashOf(e *abi.MemoryEvent) (Hash, error) {
	canonical := e
	if len(e.Metadata) > 0 {
		c := *e
		c.Metadata = make(map[string]abi.Raw, len(e.Metadata))
		for key, value := range e.Metadata {
			v, err := schema.CanonicalJSON(value)
			if err != nil {
				return Hash{}, err
			}
			c.Metadata[key] = v
		}
		canonical = &c
	}
	return sha256.Sum256(abi.Marshal(canonical)), nil
}

// State is the last known state of an event's delivery.
type State byte

const (
	// Sent means that a native write was sent, but no receipt has been stored. The outcome is unknown.
	Sent State = 's'
	// Received means that the provider returned a receipt. The receipt itself may say uncertain or partial.
	Received State = 'r'
	// Lost means that readiness proved the event lost. If it is recorded again, it is sent again.
	Lost State = 'l'
	// Failed means that readiness proved that the backend failed on the event. If it is recorded again, it is sent again.
	Failed State = 'f'
	// Part means that the backend has a part of the event, and no pending request can still deliver the rest. If it is
	// recorded again, the backend is asked, and what it lacks is sent.
	Part State = 'p'
	// Empty means that the event arrived, but the backend kept nothing of it. Readiness lists it until the caller or
	// the configuration decides.
	Empty State = 'e'
	// Again means that the event was empty, and is sent again when it is recorded again.
	Again State = 'a'
)

// Entry is the ledger's record of an event.
type Entry struct {
	Hash  Hash
	State State
	// SentAt is when the event was sent, in whole milliseconds.
	SentAt time.Time
	// Session is the event's session id; "" in a record written before sessions were kept.
	Session string
	// Receipt is nil if the State is Sent and no earlier attempt had a receipt.
	Receipt *abi.WriteReceipt
	// Stored is the record as read from the store: the precondition for changing it without the scope's lock.
	Stored []byte
}

// Uncertain reports whether the backend has to be asked before the event may be sent again.
func (e *Entry) Uncertain() bool {
	return e.State == Sent || e.State == Part || e.State == Received && answercheck.Undecided(e.Receipt.Status)
}

// Unseen reports whether it is still unknown that the event can be retrieved.
func (e *Entry) Unseen() bool {
	switch e.State {
	case Empty:
		return false
	case Received:
	default:
		return true
	}
	switch e.Receipt.Status {
	case abi.StatusQueued, abi.StatusPending, abi.StatusPartial, abi.StatusUncertain:
		return true
	}
	return len(e.Receipt.Markers) > 0
}

// Markers returns the receipt's markers; never nil.
func (e *Entry) Markers() []string {
	if e.Receipt == nil {
		return []string{}
	}
	return e.Receipt.Markers
}

const entryHead = len(Hash{}) + 1 + 8 // hash, state, ms since 1970

// entrySession precedes a session id, entryReceipt a receipt. Records written before receipts were shortened have a
// whole receipt instead, which starts with '{'.
const (
	entrySession = 's'
	entryReceipt = 'r'
)

// storedReceipt is a receipt without its event id, which the key has, and without its trace. Empty fields are left out.
type storedReceipt struct {
	Status        abi.WriteStatus   `json:"s"`
	NativeIDs     []string          `json:"n,omitempty"`
	NativeIDsKind abi.NativeIDsKind `json:"k,omitempty"`
	StoredCount   *int64            `json:"c,omitempty"`
	Markers       []string          `json:"m,omitempty"`
	Warnings      []string          `json:"w,omitempty"`
	LatencyMS     float64           `json:"l,omitempty"`
}

func shorten(r *abi.WriteReceipt) *storedReceipt {
	return &storedReceipt{r.Status, r.NativeIDs, r.NativeIDsKind, r.StoredCount, r.Markers, r.Warnings, r.LatencyMS}
}

func (s *storedReceipt) receipt(eventID string) *abi.WriteReceipt {
	list := func(l []string) []string {
		if l == nil {
			return []string{}
		}
		return l
	}
	return &abi.WriteReceipt{EventID: eventID, Status: s.Status, NativeIDs: list(s.NativeIDs),
		NativeIDsKind: s.NativeIDsKind, StoredCount: s.StoredCount, Markers: list(s.Markers), Warnings: list(s.Warnings),
		LatencyMS: s.LatencyMS}
}

// Encode returns the stored form: hash(32), state(1), time of sending(8), then the session and the receipt, if any:
//
//	's' length(uvarint) session id   'r' storedReceipt in JSON
func (e *Entry) Encode() []byte {
	b := make([]byte, 0, 256)
	b = append(append(b, e.Hash[:]...), byte(e.State))
	b = binary.BigEndian.AppendUint64(b, uint64(e.SentAt.UnixMilli()))
	if e.Session != "" {
		b = append(binary.AppendUvarint(append(b, entrySession), uint64(len(e.Session))), e.Session...)
	}
	if e.Receipt == nil {
		return b
	}
	text, err := json.Marshal(shorten(e.Receipt))
	if err != nil { // only a latency that is no number, which no receipt has
		panic(err)
	}
	return append(append(b, entryReceipt), text...)
}

func errDamaged() *abi.Error {
	return abi.NewError(abi.CodeUnavailable, "state: the ledger's record of the event is damaged").WithReason("state").
		WithHint("nothing was sent; restore the data folder, or reset the scope")
}

// Decode reads an event's Entry from its stored form.
//
// Errors: unavailable (state) for a damaged record.
func Decode(eventID string, stored []byte) (*Entry, error) {
	record := stored
	// the first format: nothing between hash and receipt
	if len(record) > len(Hash{}) && record[len(Hash{})] == '{' {
		record = slices.Insert(slices.Clone(record), len(Hash{}), append([]byte{byte(Received)}, make([]byte, 8)...)...)
	}
	if len(record) < entryHead {
		return nil, errDamaged()
	}
	e := &Entry{Hash: Hash(record), State: State(record[32]),
		SentAt: time.UnixMilli(int64(binary.BigEndian.Uint64(record[33:]))), Stored: stored}
	text, ok := e.decodeSession(record[entryHead:])
	if !ok {
		return nil, errDamaged()
	}
	switch {
	case len(text) == 0:
	case text[0] == entryReceipt:
		var receipt storedReceipt
		if json.Unmarshal(text[1:], &receipt) != nil {
			return nil, errDamaged()
		}
		e.Receipt = receipt.receipt(eventID)
	default:
		e.Receipt = new(abi.WriteReceipt)
		if abi.Unmarshal(text, e.Receipt) != nil {
			return nil, errDamaged()
		}
	}
	if e.Receipt == nil && e.State != Sent {
		return nil, errDamaged()
	}
	return e, nil
}

// decodeSession reads the session at the start of text, if there is one, and returns the remaining text. ok is false if
// the record ends inside the session.
func (e *Entry) decodeSession(text []byte) (receipt []byte, ok bool) {
	if len(text) == 0 || text[0] != entrySession {
		return text, true
	}
	length, n := binary.Uvarint(text[1:])
	if n <= 0 || uint64(len(text)-1-n) < length {
		return nil, false
	}
	text = text[1+n:]
	e.Session = string(text[:length])
	return text[length:], true
}

// Ledger reads and sweeps the ledger in a store. Changes go into batches, which the caller commits.
type Ledger struct {
	store     state.Store
	now       func() time.Time
	retention time.Duration

	sweepMu sync.Mutex
	sweptTo []byte // where the next sweep continues
}

// New creates a Ledger that keeps receipts for a retention period; 0 means forever.
func New(store state.Store, retention time.Duration, now func() time.Time) *Ledger {
	return &Ledger{store: store, now: now, retention: retention}
}

// Key is an event's key in TableEntries and TableUnseen. A new generation of a scope starts with an empty ledger.
func Key(space state.Space, eventID string) []byte { return append(space[:], eventID...) }

// Entry returns an event's entry; nil if there is none.
func (l *Ledger) Entry(ctx context.Context, space state.Space, eventID string) (*Entry, error) {
	stored, err := l.store.Record(ctx, TableEntries, Key(space, eventID))
	if err != nil {
		return nil, state.ContractError(err)
	}
	return Stored(eventID, stored)
}

// Stored returns an event's entry from a record of TableEntries; nil for an absent one.
func Stored(eventID string, record []byte) (*Entry, error) {
	if record == nil {
		return nil, nil
	}
	return Decode(eventID, record)
}

// Each visits the events of a space.
func (l *Ledger) Each(ctx context.Context, space state.Space, visit func(eventID string, e *Entry) error) error {
	return state.EachRecord(ctx, l.store, TableEntries, space[:], func(r state.KeyValue) error {
		id := string(r.Key[len(space):])
		e, err := Decode(id, r.Value)
		if err != nil {
			return err
		}
		return visit(id, e)
	})
}

// HasEvents reports whether the ledger has any event of a space.
func (l *Ledger) HasEvents(ctx context.Context, space state.Space) (bool, error) {
	records, err := l.store.Records(ctx, TableEntries, space[:], nil, 1)
	return len(records) > 0, state.ContractError(err)
}

// Activity counts the events of a space, and returns when the last of them was sent; the zero time if no entry says so.
// It reads the space's entries, so it is right after any reset, forgetting, sweep or restore.
func (l *Ledger) Activity(ctx context.Context, space state.Space) (events int64, last time.Time, err error) {
	err = state.EachRecord(ctx, l.store, TableEntries, space[:], func(r state.KeyValue) error {
		events++
		if at := storedSentAt(r.Value); at.After(last) {
			last = at
		}
		return nil
	})
	return events, last, err
}

// storedSentAt reads the time of sending from an Entry's stored form without decoding the rest.
func storedSentAt(record []byte) (at time.Time) {
	if len(record) < entryHead || record[len(Hash{})] == '{' {
		return at // damaged, or the first format, which has no time
	}
	if ms := int64(binary.BigEndian.Uint64(record[len(Hash{})+1:])); ms > 0 {
		at = time.UnixMilli(ms)
	}
	return at
}

// Put adds an event's entry to a batch, and updates the lists of unseen and of empty events.
func Put(b *state.Batch, scope Scope, space state.Space, eventID string, e *Entry) {
	key := Key(space, eventID)
	b.PutRecord(TableEntries, key, e.Encode())
	if e.Unseen() {
		b.PutRecord(TableUnseen, key, listEntry(scope, e))
	} else {
		b.DeleteRecord(TableUnseen, key)
	}
	if e.State == Empty {
		b.PutRecord(tableEmpty, key, []byte{})
	} else {
		b.DeleteRecord(tableEmpty, key)
	}
}

// Resent changes an event's time of sending, in a batch, unless its entry was changed since it was read. The event
// stays on the list of unseen events.
func Resent(b *state.Batch, space state.Space, eventID string, e *Entry, at time.Time) {
	e.SentAt = at
	b.ExpectRecord(TableEntries, Key(space, eventID), e.Stored)
	b.PutRecord(TableEntries, Key(space, eventID), e.Encode())
}

// Drop adds the removal of an event's entry to a batch.
func Drop(b *state.Batch, space state.Space, eventID string) {
	key := Key(space, eventID)
	b.DeleteRecord(TableEntries, key)
	b.DeleteRecord(TableUnseen, key)
	b.DeleteRecord(tableEmpty, key)
}

// DropAll adds the removal of everything about a space to a batch.
func (l *Ledger) DropAll(ctx context.Context, b *state.Batch, space state.Space) error {
	b.DeleteRecord(TableGaps, space[:])
	for _, table := range []state.Table{TableEntries, TableUnseen, tableEmpty} {
		err := state.EachRecord(ctx, l.store, table, space[:], func(r state.KeyValue) error {
			b.DeleteRecord(table, r.Key)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Gap says why the ledger of a space may lack an event that was recorded.
type Gap byte

// The gaps that a ledger may have.
const (
	NoGap        Gap = 0
	Swept        Gap = 1 // receipts older than the retention were removed
	ScopeExisted Gap = 2 // the backend had the scope before this data folder did, or the store lost receipts
)

// Gap reads why the ledger of a space may lack an event that was recorded.
func (l *Ledger) Gap(ctx context.Context, space state.Space) (Gap, error) {
	stored, err := l.store.Record(ctx, TableGaps, space[:])
	return StoredGap(stored), state.ContractError(err)
}

// StoredGap returns the gap of a record of TableGaps.
func StoredGap(record []byte) Gap {
	if len(record) == 0 {
		return NoGap
	}
	return Gap(record[0])
}

// PutGap stores the gap of a space in a batch.
func PutGap(b *state.Batch, space state.Space, gap Gap) {
	b.PutRecord(TableGaps, space[:], []byte{byte(gap)})
}

// sweepStep is how many entries one sweep reads: each write removes a few old ones.
const sweepStep = 32

// Sweep adds the removal of receipts that are older than the retention to a batch. Unseen and empty events stay,
// however old. A space that loses an entry gets the gap Swept: an event without an entry is then looked up in the
// backend before it counts as new.
func (l *Ledger) Sweep(ctx context.Context, b *state.Batch) error {
	if l.retention <= 0 {
		return nil
	}
	l.sweepMu.Lock()
	defer l.sweepMu.Unlock()
	records, err := l.store.Records(ctx, TableEntries, nil, l.sweptTo, sweepStep)
	if err != nil {
		return state.ContractError(err)
	}
	before := l.now().Add(-l.retention)
	for _, r := range records {
		e, err := Decode(string(r.Key[len(state.Space{}):]), r.Value)
		if err != nil || e.Unseen() || e.State == Empty || !e.SentAt.Before(before) {
			continue
		}
		b.DeleteRecord(TableEntries, r.Key)
		PutGap(b, state.Space(r.Key), Swept)
	}
	if l.sweptTo = nil; len(records) == sweepStep {
		l.sweptTo = records[len(records)-1].Key
	}
	return nil
}
