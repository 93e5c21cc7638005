package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// maxListed is the most events that are read at once, for one look at readiness or for one retry. Others are read next
// time.
const maxListed = 5000

// Events are events of a space as the ledger had them when they were read, sorted by id.
type Events struct {
	IDs     []string
	Entries map[string]*Entry
	// More is set if the space has more events of this kind.
	More bool

	scope Scope
	space state.Space
}

// Unseen reads the events of a scope's space that are not known to have arrived.
func (l *Ledger) Unseen(ctx context.Context, scope Scope, space state.Space) (*Events, error) {
	u := &Events{Entries: map[string]*Entry{}, scope: scope, space: space}
	records, err := l.store.Records(ctx, TableUnseen, space[:], nil, maxListed+1)
	if err != nil {
		return nil, state.ContractError(err)
	}
	if len(records) > maxListed {
		records, u.More = records[:maxListed], true
	}
	for _, r := range records {
		id := string(r.Key[len(space):])
		entry, err := l.Entry(ctx, space, id)
		if err != nil {
			return nil, err
		}
		if entry == nil {
			continue
		}
		u.IDs, u.Entries[id] = append(u.IDs, id), entry
	}
	return u, nil
}

// EmptyIDs returns the ids of a space's events of which the backend kept nothing: at most the first limit ids, and the
// count of all.
func (l *Ledger) EmptyIDs(ctx context.Context, space state.Space, limit int) (ids []string, count int, err error) {
	err = state.EachRecord(ctx, l.store, tableEmpty, space[:], func(r state.KeyValue) error {
		if count++; count <= limit {
			ids = append(ids, string(r.Key[len(space):]))
		}
		return nil
	})
	return ids, count, err
}

// Empty reads the events of a scope's space of which the backend kept nothing.
func (l *Ledger) Empty(ctx context.Context, scope Scope, space state.Space) (*Events, error) {
	ids, count, err := l.EmptyIDs(ctx, space, maxListed)
	if err != nil {
		return nil, err
	}
	u := &Events{Entries: map[string]*Entry{}, More: count > len(ids), scope: scope, space: space}
	for _, id := range ids {
		known, err := l.Entry(ctx, space, id)
		if err != nil {
			return nil, err
		}
		if known != nil && known.State == Empty {
			u.IDs, u.Entries[id] = append(u.IDs, id), known
		}
	}
	return u, nil
}

// Again returns the amendments that mark the events for another attempt.
func (u *Events) Again() (list []Amendment) {
	for _, id := range u.IDs {
		next := *u.Entries[id]
		next.State = Again
		list = append(list, Amendment{id, &next})
	}
	return list
}

// Missing returns the ids of events that did not arrive, or only in part, and that are sent when they are recorded
// again; never nil.
func (u *Events) Missing() []string {
	list := []string{}
	for _, id := range u.IDs {
		switch u.Entries[id].State {
		case Lost, Failed, Part, Again:
			list = append(list, id)
		}
	}
	return list
}

// Received returns the ids of events about which only the provider can say whether they have arrived; never nil.
func (u *Events) Received() []string {
	list := []string{}
	for _, id := range u.IDs {
		if e := u.Entries[id]; e.State == Received && !e.Uncertain() {
			list = append(list, id)
		}
	}
	return list
}

// Markers returns the markers of the events that the guest can still judge; never nil.
func (u *Events) Markers() []string {
	list := []string{}
	for _, id := range u.IDs {
		if e := u.Entries[id]; e.State == Received {
			list = append(list, e.Receipt.Markers...)
		}
	}
	return list
}

// Amendment is a new entry for one of the Events.
type Amendment struct {
	ID    string
	Entry *Entry
}

// Lost is the amendment of an event that the backend does not have and that no pending request can still deliver.
func (u *Events) Lost(id string) Amendment {
	lost := *u.Entries[id]
	lost.State = Lost
	if lost.Receipt == nil {
		lost.Receipt = &abi.WriteReceipt{EventID: id, Status: abi.StatusUncertain, NativeIDs: []string{},
			NativeIDsKind: abi.NativeIDsNone, Markers: []string{}, Warnings: []string{}}
	}
	return Amendment{id, &lost}
}

// Part is the amendment of an event of which the backend has these native ids and no more, and whose rest no pending
// request can still deliver.
func (u *Events) Part(id string, nativeIDs []string) Amendment {
	part := *u.Entries[id]
	part.State = Part
	part.Receipt = &abi.WriteReceipt{EventID: id, Status: abi.StatusPartial, NativeIDs: nativeIDs,
		NativeIDsKind: abi.NativeIDsFinal, Markers: part.Markers(), Warnings: []string{}}
	if len(nativeIDs) == 0 {
		part.Receipt.NativeIDs, part.Receipt.NativeIDsKind = []string{}, abi.NativeIDsNone
	}
	return Amendment{id, &part}
}

// Learn returns the amendments that follow from a provider's answer. Events that it reports lost or failed may be sent
// again; nothing was kept of empty ones. If the status is ready or degraded, events that it does not mention have
// arrived.
func (u *Events) Learn(ready *abi.BackendReadiness) (changed []Amendment) {
	named := map[string]bool{}
	for _, list := range [][]string{ready.EventIDs.Pending, ready.EventIDs.Lost, ready.EventIDs.Failed,
		ready.EventIDs.Unknown} {
		for _, id := range list {
			named[id] = true
		}
	}
	for _, id := range u.IDs {
		known := u.Entries[id]
		if known.State != Received {
			continue
		}
		next := *known
		switch {
		case slices.Contains(ready.EventIDs.Lost, id):
			next.State = Lost
		case slices.Contains(ready.EventIDs.Failed, id):
			next.State = Failed
		case known.Uncertain() || named[id]:
			continue
		case slices.Contains(ready.EventIDs.Empty, id):
			none := int64(0)
			next.Receipt = seenReceipt(known.Receipt)
			next.Receipt.StoredCount = &none
			next.Receipt.Status = abi.StatusNotRetained
			next.Receipt.Warnings = append(next.Receipt.Warnings, warnEmptied)
			next.State = Empty
		case ready.Status == abi.ReadinessReady || ready.Status == abi.ReadinessDegraded:
			next.Receipt = seenReceipt(known.Receipt)
		default:
			continue
		}
		changed = append(changed, Amendment{id, &next})
	}
	return changed
}

const warnEmptied = "nothing_extracted: the backend worked the event off and made no memory of it"

// seenReceipt returns the receipt of an event that has arrived.
func seenReceipt(r *abi.WriteReceipt) *abi.WriteReceipt {
	observed := *r
	observed.Markers, observed.Warnings = []string{}, slices.Clone(r.Warnings)
	if observed.Status != abi.StatusNotRetained {
		observed.Status = abi.StatusCommitted
	}
	return &observed
}

// Amend adds new entries to a batch, on the condition that the entries have not changed since they were read. Call
// ApplyAmended after the commit.
func (u *Events) Amend(b *state.Batch, list []Amendment) {
	for _, a := range list {
		b.ExpectRecord(TableEntries, Key(u.space, a.ID), u.Entries[a.ID].Stored)
		Put(b, u.scope, u.space, a.ID, a.Entry)
	}
}

// ApplyAmended updates the Events after amendments were committed.
func (u *Events) ApplyAmended(list []Amendment) {
	for _, a := range list {
		a.Entry.Stored = a.Entry.Encode()
		u.Entries[a.ID] = a.Entry
	}
}

// Report completes a provider's answer with what the ledger knows. Events that are lost, failed or there in part are
// reported until they are recorded again. While an outcome is unknown the scope is not ready: the status is pending if
// the backend can still be asked (canAsk), and unknown otherwise.
func (u *Events) Report(ready *abi.BackendReadiness, canAsk bool) {
	add := func(list *[]string, id string) {
		if !slices.Contains(*list, id) {
			*list = append(*list, id)
		}
	}
	failed, unknown := 0, false
	for _, id := range u.IDs {
		switch e := u.Entries[id]; {
		case e.State == Lost:
			add(&ready.EventIDs.Lost, id)
			failed++
		case e.State == Failed, e.State == Part, e.State == Again:
			add(&ready.EventIDs.Failed, id)
			failed++
		case e.Uncertain():
			add(&ready.EventIDs.Unknown, id)
			unknown = true
		}
	}
	if failed > 0 {
		ready.Warnings = append(ready.Warnings, fmt.Sprintf(warnMemoryLost, failed))
	}
	if u.More {
		ready.Warnings = append(ready.Warnings, warnUnseenMore)
	}
	if ready.Status != abi.ReadinessReady {
		return
	}
	switch {
	case failed > 0:
		ready.Status = abi.ReadinessFailed
	case unknown && !canAsk:
		ready.Status = abi.ReadinessUnknown
	case unknown || u.More:
		ready.Status = abi.ReadinessPending
	}
}

const warnUnseenMore = "readiness_partial: more events wait than one look judges; look again"
