package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// BenchmarkRebuildAndRetrieve measures through the host, with a ledger of 10,000 events in commits of 100.
func BenchmarkRebuildAndRetrieve(b *testing.B) {
	s := slot(b)
	said := func(n int) *abi.MemoryEvent {
		e := &abi.MemoryEvent{EventID: "e" + strconv.Itoa(n), RunID: "run", UserID: "mara", SessionID: "s", TurnID: strconv.Itoa(n), Timestamp: "2026-01-12T09:00:00Z"}
		for i := range 100 {
			text := "Fact " + strconv.Itoa(n*100+i) + " is about tea."
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: &text})
		}
		return e
	}
	for n := range 100 {
		_, err := s.RecordEvent(b.Context(), said(n))
		require.NoError(b, err)
	}
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			_, err := s.NativeMutation(b.Context(), &abi.NativeMutation{Scope: scope, Name: "rebuild"})
			require.NoError(b, err)
		}
	})
	b.Run("retrieve", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Retrieve(b.Context(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "s"})
			require.NoError(b, err)
		}
	})
}
