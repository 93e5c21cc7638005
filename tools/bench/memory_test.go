package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFlatMemoryIsToldFromALeak: points scatter by 3 %, like a process's resident memory; a leak is still detected.
func TestFlatMemoryIsToldFromALeak(t *testing.T) {
	for _, c := range []struct {
		name    string
		leak    float64 // bytes a call
		verdict string
	}{
		{"nothing grows", 0, "flat"},
		{"four bytes a call", 4, "not flat"},
		{"forty bytes a call", 40, "not flat"},
		{"it shrinks", -10, "flat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &MemoryRun{Name: c.name, Calls: 1_000_000}
			for i := 1; i <= 100; i++ {
				calls := i * 10_000
				scattered := 40e6 + 1.2e6*float64(i*37%20-10)/10
				m.Points = append(m.Points, MemoryPoint{Calls: calls, Resident: int64(scattered + c.leak*float64(calls))})
			}
			slope, margin := m.Slope(func(p MemoryPoint) int64 { return p.Resident })
			assert.InDelta(t, c.leak, slope, margin)
			lines := m.Lines()
			require.Len(t, lines, 1)
			assert.Equal(t, c.verdict, lines[0].Verdict, lines[0].Ratio)
		})
	}
}
