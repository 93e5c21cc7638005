package delivery

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// How complete memory is, according to the ledger alone.

// Outstanding says why an event is on the list of unseen events: the byte after the scope in TableUnseen. Older records
// lack it.
type Outstanding byte

// The values of Outstanding.
const (
	OutstandingQueued  Outstanding = 'q' // the backend has the event and works on it
	OutstandingPending Outstanding = 'p' // the event may still arrive: pending, partial, uncertain, or no receipt
	OutstandingLost    Outstanding = 'l' // readiness proved the event lost, failed or there in part: no more of it will arrive
	OutstandingMarked  Outstanding = 'm' // the event arrived; its markers are kept until readiness has seen them
)

// outstanding returns how far an event is from being in memory.
func (e *Entry) outstanding() Outstanding {
	switch e.State {
	case Lost, Failed, Part, Again:
		return OutstandingLost
	case Sent:
		return OutstandingPending
	}
	switch e.Receipt.Status {
	case abi.StatusQueued:
		return OutstandingQueued
	case abi.StatusPending, abi.StatusPartial, abi.StatusUncertain:
		return OutstandingPending
	}
	return OutstandingMarked
}

// listEntry is the value in TableUnseen: scope, outstanding.
func listEntry(scope Scope, e *Entry) []byte {
	return append(bytes.Clone(scope[:]), byte(e.outstanding()))
}

// parseListEntry reads an entry; ok is false for a damaged one.
func parseListEntry(value []byte) (scope Scope, is Outstanding, ok bool) {
	switch len(value) {
	case len(scope):
		return Scope(value), OutstandingPending, true
	case len(scope) + 1:
		return Scope(value), Outstanding(value[len(scope)]), true
	}
	return scope, 0, false
}

// EachOutstanding visits the unseen events of all spaces in key order. It skips damaged records.
func (l *Ledger) EachOutstanding(ctx context.Context, visit func(key []byte, scope Scope, is Outstanding) error) error {
	return state.EachRecord(ctx, l.store, TableUnseen, nil, func(r state.KeyValue) error {
		if scope, is, ok := parseListEntry(r.Value); ok {
			return visit(r.Key, scope, is)
		}
		return nil
	})
}

// EachSent visits the events of a space that were sent and have no receipt.
func (l *Ledger) EachSent(ctx context.Context, space state.Space, visit func(eventID string, e *Entry)) error {
	return state.EachRecord(ctx, l.store, TableUnseen, space[:], func(r state.KeyValue) error {
		id := string(r.Key[len(space):])
		e, err := l.Entry(ctx, space, id)
		if err == nil && e != nil && e.State == Sent {
			visit(id, e)
		}
		return err
	})
}

// Completeness counts the events that a scope's memory lacks, according to the ledger.
type Completeness struct {
	Queued, Pending, Lost int
	// AsOf is when the ledger was read; RFC 3339.
	AsOf string
}

// Completeness counts the outstanding and the lost events of a space.
func (l *Ledger) Completeness(ctx context.Context, space state.Space) (*Completeness, error) {
	c := &Completeness{AsOf: l.now().UTC().Format(time.RFC3339Nano)}
	return c, l.Count(ctx, space, c)
}

// CompletenessOf is Completeness for the space's records of TableUnseen, all of them, as they were read at a time.
func (l *Ledger) CompletenessOf(ctx context.Context, space state.Space, unseen []state.KeyValue, asOf time.Time) (
	*Completeness, error) {
	c := &Completeness{AsOf: asOf.UTC().Format(time.RFC3339Nano)}
	for _, r := range unseen {
		if err := l.count(ctx, space, r, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Count adds the counts of a space to c.
func (l *Ledger) Count(ctx context.Context, space state.Space, c *Completeness) error {
	return state.EachRecord(ctx, l.store, TableUnseen, space[:], func(r state.KeyValue) error {
		return l.count(ctx, space, r, c)
	})
}

// count adds a record of TableUnseen to c.
func (l *Ledger) count(ctx context.Context, space state.Space, r state.KeyValue, c *Completeness) error {
	_, is, ok := parseListEntry(r.Value)
	if ok && len(r.Value) == len(Scope{}) { // an older record
		e, err := l.Entry(ctx, space, string(r.Key[len(space):]))
		if err != nil || e == nil {
			return err
		}
		is = e.outstanding()
	}
	switch is {
	case OutstandingQueued:
		c.Queued++
	case OutstandingPending:
		c.Pending++
	case OutstandingLost:
		c.Lost++
	}
	return nil
}

const warnMemoryLost = "memory_lost: %d events are known not to have arrived, or only in part; memhost readiness --retry " +
	"sends those in the archive again, record the others again"

// Report adds to the trace of a retrieval what may be missing from its result.
func (c *Completeness) Report(t *abi.Trace) {
	t.Consistency, t.ConsistencyAsOf = "committed", c.AsOf
	switch {
	case c.Pending > 0:
		t.Consistency = "pending"
	case c.Queued > 0:
		t.Consistency = "queued"
	}
	if n := c.Pending + c.Queued; n > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: %d events", abi.WarnMemoryPending, n))
	}
	if c.Lost > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf(warnMemoryLost, c.Lost))
	}
}
