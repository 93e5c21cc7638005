package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

// BenchmarkLongHistory: recording does not grow with the history, and retrieve takes less than 5 ms, with 100,000 lines too (HISTORY_LINES=100000).
func BenchmarkLongHistory(b *testing.B) {
	_, url := serve(b)
	nanobottest.Bench(b, func() *host.Slot {
		s, _ := slotOf(b, url, "")
		return s
	}, longHistory)
}

func longHistory(lines int) map[string]string {
	var text strings.Builder
	for i := range lines {
		text.WriteString("[2026-01-12 09:00] Fact number " + fmt.Sprint(i) + ".\n\n")
	}
	return map[string]string{historyFile: text.String(), memoryFile: "- Likes oolong tea.\n"}
}
