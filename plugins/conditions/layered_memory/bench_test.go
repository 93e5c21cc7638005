package main

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkLongHistory: the cost of recording does not grow with the history, and retrieve takes less than 5 ms, also
// with 100,000 lines (HISTORY_LINES=100000).
func BenchmarkLongHistory(b *testing.B) { module.Bench(b, longHistory) }

func longHistory(lines int) map[string]string {
	var text strings.Builder
	for i := range lines {
		text.WriteString(`{"cursor":` + fmt.Sprint(i+1) +
			`,"timestamp":"2026-01-12 09:00","content":"- [durable] Fact number ` + fmt.Sprint(i) + `"}` + "\n")
	}
	return map[string]string{linesFile: text.String(), userFile: "- Likes oolong tea.\n"}
}
