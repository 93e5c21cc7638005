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
		e := &abi.MemoryEvent{EventID: "e" + strconv.Itoa(turn), RunID: "run", UserID: "mara", SessionID: "s",
			TurnID: strconv.Itoa(turn), Timestamp: "2026-01-12T09:00:00Z"}
		for i := range 100 {
			text := "Fact " + strconv.Itoa(turn*100+i) + " is about tea."
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: &text})
		}
		_, err := s.RecordEvent(b.Context(), e)
		require.NoError(b, err)
	}
	return s
}

// sizes of a ledger, in hundreds of events.
var sizes = []int{10, 100, 1000}

func BenchmarkRetrieve(b *testing.B) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(100*n), func(b *testing.B) {
			s := filled(b, n)
			for name, most := range map[string]int64{"1000 tokens": 1000, "8000 tokens": 8000} {
				b.Run(name, func(b *testing.B) {
					entries := 0
					for b.Loop() {
						r, err := s.Retrieve(b.Context(),
							&abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "s",
								Budget: abi.ContextBudget{MaxTokens: &most}})
						require.NoError(b, err)
						entries = len(r.Evidence)
					}
					b.ReportMetric(float64(entries), "entries")
				})
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(100*n), func(b *testing.B) {
			s := filled(b, n)
			text, i := "I had tea.", 0
			for b.Loop() {
				i++
				_, err := s.RecordEvent(b.Context(),
					&abi.MemoryEvent{EventID: "r" + strconv.Itoa(i), RunID: "run", UserID: "mara",
						SessionID: "s", TurnID: "t" + strconv.Itoa(i),
						Timestamp: "2026-01-12T09:00:00Z",
						Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}}})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkRebuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(strconv.Itoa(100*n), func(b *testing.B) {
			s := filled(b, n)
			for b.Loop() {
				_, err := s.NativeMutation(b.Context(), &abi.NativeMutation{Scope: scope, Name: "rebuild"})
				require.NoError(b, err)
			}
		})
	}
}
