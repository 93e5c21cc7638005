package host

import (
	"context"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/internal/state"
	"github.com/stretchr/testify/require"
)

// SpaceOf returns the space of the test scope's state.
func SpaceOf(t testing.TB, s *Slot) state.Space {
	t.Helper()
	sc, err := s.current.Load().provider.scopeOf(TestScope)
	require.NoError(t, err)
	g, err := s.host.currentGeneration(context.Background(), sc)
	require.NoError(t, err)
	return sc.space(g)
}

// LedgerEntry returns what the ledger has of an event of the test scope; nil if it has nothing.
func LedgerEntry(t testing.TB, s *Slot, eventID string) *delivery.Entry {
	t.Helper()
	e, err := s.host.ledger.Entry(context.Background(), SpaceOf(t, s), eventID)
	require.NoError(t, err)
	return e
}

// PutRecord changes a record in the store of a slot's host.
func PutRecord(t testing.TB, s *Slot, table state.Table, key, value []byte) {
	t.Helper()
	var b state.Batch
	b.PutRecord(table, key, value)
	_, err := s.host.store.Commit(context.Background(), &b)
	require.NoError(t, err)
}

// WithoutCapability removes an export from the served module.
func WithoutCapability(s *Slot, op string) {
	m := s.current.Load().provider.module
	var rest []string
	for _, export := range m.Exports {
		if export != op {
			rest = append(rest, export)
		}
	}
	m.Exports = rest
}

func ForgetEvents(ids ...string) *abi.ForgetRequest {
	return &abi.ForgetRequest{Scope: TestScope, EventIDs: ids, Reason: "asked"}
}

// FollowerOf returns the slot in which the only follower of a slot keeps what it gets.
func FollowerOf(t testing.TB, s *Slot) *Slot {
	t.Helper()
	list := s.followers.list()
	require.Len(t, list, 1)
	return list[0].inner
}
