package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// filled is a slot with a ledger of n times 100 events, in commits of 100.
func filled(b *testing.B, n int) *host.Slot {
	b.Helper()
	s := slot(b, `{}`)
	for turn := range n {
		e := &abi.MemoryEvent{EventID: "e" + strconv.Itoa(turn), RunID: "run", UserID: "mara", SessionID: "s", TurnID: strconv.Itoa(turn), Timestamp: "2026-01-12T09:00:00Z"}
		for i := range 100 {
			text := "Fact " + strconv.Itoa(turn*100+i) + " is about tea."
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: &text})
		}
		_, err := s.RecordEvent(b.Context(), e)
		require.NoError(b, err)
	}
	return s
}

func BenchmarkRetrieve(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(strconv.Itoa(100*n), func(b *testing.B) {
			s := filled(b, n)
			for b.Loop() {
				_, err := s.Retrieve(b.Context(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "s"})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(strconv.Itoa(100*n), func(b *testing.B) {
			s := filled(b, n)
			for b.Loop() {
				_, err := s.NativeMutation(b.Context(), &abi.NativeMutation{Scope: scope, Name: "rebuild"})
				require.NoError(b, err)
			}
		})
	}
}
