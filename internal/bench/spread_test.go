package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAMedianLiesWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Float64Range(1, 1e9), 1, 40).Draw(t, "rounds")
		for _, s := range []Spread{interval(list), spread(list, 0), spread(list, rapid.IntRange(-1, 20).Draw(t, "outside"))} {
			if s.Center < s.Lo || s.Center > s.Hi || math.IsNaN(s.Center) {
				t.Fatalf("%v of %v", s, list)
			}
		}
	})
}

func TestSpreadLeavesRoundsOutAtBothEnds(t *testing.T) {
	rounds := []float64{5, 1, 4, 2, 3, 6}
	assert.Equal(t, Spread{3.5, 1, 6}, spread(rounds, 0))
	assert.Equal(t, Spread{3.5, 2, 5}, spread(rounds, 1))
	assert.Equal(t, Spread{3.5, math.Inf(-1), math.Inf(1)}, spread(rounds, -1), "too few")
	assert.Equal(t, "± ?", spread(rounds, -1).Percent())
}

// TestHowOftenSpreadsHaveNothingInCommon counts orders of the rounds of two runs, all of which are as probable.
func TestHowOftenSpreadsHaveNothingInCommon(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		for out := range (n + 1) / 2 {
			orders, apartIn := 0, 0
			for picked := range 1 << (2 * n) {
				var a, b []float64
				for i := range 2 * n {
					if picked>>i&1 == 1 {
						a = append(a, float64(i))
					} else {
						b = append(b, float64(i))
					}
				}
				if len(a) != n {
					continue
				}
				orders++
				if !spread(a, out).overlaps(spread(b, out)) {
					apartIn++
				}
			}
			assert.InDelta(t, float64(apartIn)/float64(orders), apart(n, out), 1e-9, "%d rounds, %d outside", n, out)
		}
	}
	for _, tt := range []struct{ rounds, comparisons, outside int }{{3, 1, -1}, {4, 1, 0}, {6, 80, -1}, {10, 80, 0}, {12, 80, 1}, {20, 80, 4}, {12, 1, 3}} {
		assert.Equal(t, tt.outside, outside(tt.rounds, tt.comparisons), "%d rounds, %d comparisons", tt.rounds, tt.comparisons)
	}
	assert.InDelta(t, 0.5/1024, below(11, 0), 1e-9)
}

// noisy is a run on a machine that others use, too: how busy they are changes slowly and is not the same in the next run, some rounds are hit by something else, and
// rows are as unsteady as those of the table. Ours is by factors slower than it was.
func noisy(r *rand.Rand, rows int, slower func(row int) float64) *Result {
	result := &Result{Rounds: defaultRounds}
	busy, mood := r.Float64(), 0.0
	for row := range rows {
		by := []string{"ours", "theirs", "others"}
		if row%15 == 14 { // without a baseline
			by = by[:1]
		}
		res := RowResult{Row: Row{ID: fmt.Sprint("row", row), Unit: Nanoseconds, By: by}, Cells: map[string]*Cell{}}
		unsteady := 0.01 * math.Pow(2, float64(row%5)) // 1 % to 16 %
		for round := range defaultRounds {
			if round > 0 {
				mood = 0.8*mood + 0.3*r.NormFloat64()
			}
			machine := (1 + 2*busy) * math.Exp(0.5*mood)
			res.Loops = append(res.Loops, 10_000*machine*math.Exp(0.02*r.NormFloat64()))
			for i, who := range by {
				figure := 1000 * float64(i+1) * machine * math.Exp(unsteady*r.NormFloat64())
				if r.IntN(20) == 0 {
					figure *= 1 + 2*unsteady*r.ExpFloat64()
				}
				if i == 0 {
					figure *= slower(row)
				}
				if res.Cells[who] == nil {
					res.Cells[who] = &Cell{}
				}
				res.Cells[who].Rounds = append(res.Cells[who].Rounds, figure)
			}
		}
		result.Rows = append(result.Rows, res)
	}
	result.settle()
	return result
}

// TestTwoRunsOfTheSameAgree draws pairs of runs of one noisy process: all rows together must agree in 95 of 100 pairs. And it must not be for lack of attention: what
// has become 30 % slower is seen on every row that is no more unsteady than 4 %.
func TestTwoRunsOfTheSameAgree(t *testing.T) {
	const rows, pairs = 40, 400
	same := func(int) float64 { return 1 }
	r := rand.New(rand.NewPCG(1, 2))
	agreed, steady, seen := 0, 0, 0
	for range pairs {
		then := noisy(r, rows, same)
		list := Compare(then, noisy(r, rows, same))
		require.Len(t, list, 78)
		if !slices.ContainsFunc(list, func(d Difference) bool { return !d.Agree }) {
			agreed++
		}
		list = Compare(then, noisy(r, rows, func(int) float64 { return 1.3 }))
		require.True(t, slices.ContainsFunc(list, func(d Difference) bool { return !d.Agree }), "30 %% everywhere")
		for _, d := range list {
			var row int
			_, err := fmt.Sscanf(d.Row, "row%d", &row)
			require.NoError(t, err)
			if row%5 <= 2 {
				steady++
				if !d.Agree {
					seen++
				}
			}
		}
	}
	t.Logf("%d of %d pairs of runs of the same agree on all rows; 30 %% are seen on %d of %d steady rows", agreed, pairs, seen, steady)
	assert.GreaterOrEqual(t, float64(agreed)/pairs, 0.95)
	assert.GreaterOrEqual(t, float64(seen)/float64(steady), 0.95)
}

func TestWhatTwoRunsAreComparedBy(t *testing.T) {
	run := func(ours, machine float64) *Result {
		r := &Result{Rounds: 12, Loop: 10 * machine}
		loops := make([]float64, 12)
		for i := range loops {
			loops[i] = 10 * machine
		}
		add := func(id string, exact bool, by ...string) {
			row := RowResult{Row: Row{ID: id, Unit: Nanoseconds, By: by, Exact: exact}, Cells: map[string]*Cell{}, Loops: loops}
			for i, who := range by {
				f := 250 * machine
				if i == 0 {
					f = ours * machine
				}
				row.Cells[who] = &Cell{Rounds: rounds(f, 12)}
			}
			r.Rows = append(r.Rows, row)
		}
		add("beside", false, "ours", "theirs")
		add("alone", false, "ours")
		r.Rows[0].Bars = []Bar{{Kind: Ratio, Over: "theirs", Limit: 3}}
		r.settle()
		return r
	}
	t.Run("a machine of half the speed is no difference", func(t *testing.T) {
		for _, d := range Compare(run(1000, 1), run(1000, 2)) {
			assert.True(t, d.Agree, "%s %s %s", d.Row, d.By, d.Kind)
		}
	})
	t.Run("what takes longer than its baseline, or than the reference loop, is one", func(t *testing.T) {
		var differ []string
		for _, d := range Compare(run(1000, 1), run(1500, 1)) {
			if !d.Agree {
				differ = append(differ, d.Row+" "+d.By+" "+d.Kind)
			}
		}
		assert.Equal(t, []string{"beside theirs ratio", "alone ours figure, by the reference loop"}, differ)
	})
	var out bytes.Buffer
	require.NoError(t, PrintComparison(&out, run(1000, 1), run(1500, 2)))
	assert.Contains(t, out.String(), "the reference loop takes 2 × the time that it took then")
	assert.Contains(t, out.String(), "what a bar bounds")
	assert.Contains(t, out.String(), "agree within their spreads on 0 of 2 comparisons")
	assert.Contains(t, run(1000, 1).Level(), "the least to the most without 2 at either end of 12 rounds")
	few := &Result{Rows: []RowResult{*rowOf(nil, map[string][]float64{"ours": {1, 2, 3}, "theirs": {1, 2, 3}})}}
	few.settle()
	assert.Contains(t, few.Level(), "3 rounds are too few for a spread")
}
