package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rounds returns n figures around a center, one percent apart.
func rounds(center float64, n int) []float64 {
	var list []float64
	for i := range n {
		list = append(list, center*(1+0.01*float64(i-n/2)))
	}
	return list
}

func rowOf(bars []Bar, cells map[string][]float64) *RowResult {
	r := &RowResult{Row: Row{ID: "row", What: "a row", Unit: Nanoseconds, By: []string{"ours", "theirs"}, Bars: bars},
		Samples: map[string][]sample{}}
	for who, list := range cells {
		for _, v := range list {
			r.Samples[who] = append(r.Samples[who], sample{value: v})
		}
	}
	return r
}

func TestABarHoldsWhenTheWholeIntervalIsBelowIt(t *testing.T) {
	for _, tt := range []struct {
		name          string
		bar           Bar
		holds, missed bool
		text          string
	}{
		{"well below", Bar{Kind: AtMost, Limit: 2000}, true, false, "holds (1 µs)"},
		{"well above", Bar{Kind: AtMost, Limit: 500}, false, true, "missed (1 µs, 2 × the bar)"},
		{"in between", Bar{Kind: AtMost, Limit: 1005}, false, false, "within the interval (1 µs)"},
		{"a ratio", Bar{Kind: Ratio, Over: "theirs", Limit: 3}, false, true, "missed (4 ×, 1.33 × the bar)"},
		{"what is added", Bar{Kind: Added, Over: "theirs", Limit: 800}, true, false, "holds (+ 750 ns)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := rowOf([]Bar{tt.bar}, map[string][]float64{"ours": rounds(1000, 11),
				"theirs": rounds(250, 11)}).Verdicts()
			require.Len(t, v, 1)
			assert.Equal(t, tt.holds, v[0].Holds)
			assert.Equal(t, tt.missed, v[0].Missed)
			assert.Equal(t, tt.text, v[0].Text(Nanoseconds))
		})
	}
	t.Run("too few rounds say nothing", func(t *testing.T) {
		v := rowOf([]Bar{{Kind: AtMost, Limit: 1}}, map[string][]float64{"ours": rounds(1000, 3)}).Verdicts()
		require.Len(t, v, 1)
		assert.False(t, v[0].Holds || v[0].Missed)
		assert.Equal(t, "too few rounds (1 µs)", v[0].Text(Nanoseconds))
	})
	t.Run("a bar over who was not measured is left out", func(t *testing.T) {
		assert.Empty(t, rowOf([]Bar{{Kind: Ratio, Over: "theirs", Limit: 3}},
			map[string][]float64{"ours": rounds(1000, 11)}).Verdicts())
	})
}

func TestTheRatioIsTakenRoundByRound(t *testing.T) {
	// The machine becomes three times slower in the middle; the ratio does not change.
	r := rowOf(nil, map[string][]float64{"ours": {20, 20, 20, 20, 60, 60, 60, 60},
		"theirs": {10, 10, 10, 10, 30, 30, 30, 30}})
	ratio, ok := r.Ratio("theirs")
	require.True(t, ok)
	assert.Equal(t, []float64{2, 2, 2}, []float64{ratio.Center, ratio.Lo, ratio.Hi})
	value, ok := r.Value("ours")
	require.True(t, ok)
	assert.Equal(t, []float64{40, 20, 60}, []float64{value.Center, value.Lo, value.Hi})
}

func TestMemoryIsFlatOrNot(t *testing.T) {
	run := func(of func(i int) int64) string {
		m := &MemoryRun{Calls: 100_000}
		for i := range 100 {
			m.Points = append(m.Points, MemoryPoint{Calls: (i + 1) * 1000, Heap: of(i)})
		}
		return m.Lines()[0].Verdict
	}
	assert.Equal(t, "flat", run(func(i int) int64 {
		return 30<<20 + int64(i%7)<<16
	}), "memory that goes up and down is flat")
	assert.Equal(t, "not flat", run(func(i int) int64 {
		return 30<<20 + int64(i)*100_000 + int64(i%7)<<16
	}), "a leak of 100 bytes a call is seen")
	assert.Equal(t, "flat", run(func(i int) int64 {
		return int64(min(i, 40)) << 20
	}), "what was needed at the beginning does not count")
	assert.Equal(t, "flat", run(func(i int) int64 {
		return 30<<20 - int64(i)*10_000
	}), "memory that is given back is no leak")
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for want, got := range map[string]string{
		"0 ns": Figure(0, Nanoseconds), "57.1 ns": Figure(57.14, Nanoseconds), "3 µs": Figure(3000, Nanoseconds),
		"1.35 ms": Figure(1_351_000, Nanoseconds),
		"400 KB":  Figure(400<<10, Bytes), "12": Figure(12, Count), "0.029 ×": Factor(0.0291), "1.05 ×": Factor(1.05),
		"472 ×": Factor(471.9),
	} {
		assert.Equal(t, want, got)
	}
}
