package unambiguous_test

import (
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/text/unambiguous"
)

func BenchmarkCheck(b *testing.B) {
	turn := []byte(`{"event_id":"e-1","run_id":"r","user_id":"u","session_id":"s","turn_id":"1","timestamp":"2026-03-01T09:30:00Z","messages":[{"role":"user","content":"` + strings.Repeat("I like tea. ", 100) + `"},{"role":"assistant","content":"` + strings.Repeat("Noted. ", 150) + `"}]}`)
	b.SetBytes(int64(len(turn)))
	for b.Loop() {
		if err := unambiguous.Check(turn); err != nil {
			b.Fatal(err)
		}
	}
}
