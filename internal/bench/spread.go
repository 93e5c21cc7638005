package bench

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Spread is a median, and an interval around it.
//
// There are two such intervals. What is printed beside a figure is where another run of the same on the same machine is to be expected: the least and the most of
// the rounds, without as many at either end as can be spared so that two runs overlap on all rows at once (outside). What a bar is held against is narrower: where
// the true median lies (interval). Neither assumes anything of the distribution, and both are infinite where there are too few rounds.
type Spread struct{ Center, Lo, Hi float64 }

// spread takes rounds together, without some at either end.
func spread(rounds []float64, outside int) Spread {
	if len(rounds) == 0 {
		return Spread{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	list := slices.Sorted(slices.Values(rounds))
	n := len(list)
	center := (list[(n-1)/2] + list[n/2]) / 2
	if outside < 0 || 2*outside >= n {
		return Spread{center, math.Inf(-1), math.Inf(1)}
	}
	return Spread{center, list[outside], list[n-1-outside]}
}

// interval is where the true median lies at 95 %, as benchstat computes it.
func interval(rounds []float64) Spread {
	if len(rounds) == 0 {
		return Spread{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(rounds, &benchmath.DefaultThresholds), 0.95)
	return Spread{s.Center, s.Lo, s.Hi}
}

// overlaps tells whether two intervals have something in common.
func (s Spread) overlaps(t Spread) bool { return s.Lo <= t.Hi && t.Lo <= s.Hi }

// Percent is the larger distance to an end of the interval, in percent of the center, as benchstat prints it.
func (s Spread) Percent() string {
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return "± ?"
	}
	if s.Center == 0 {
		return "± 0 %"
	}
	return fmt.Sprintf("± %.0f %%", 100*max(s.Hi-s.Center, s.Center-s.Lo)/math.Abs(s.Center))
}

// apart is how probable it is that the spreads of two runs have nothing in common though nothing has changed: n rounds each, with so many outside at either end.
// Then the 2n rounds come in any order with the same probability, and those orders count in which n-outside rounds of one run precede n-outside of the other.
func apart(n, outside int) float64 {
	if outside < 0 || 2*outside >= n {
		return 0
	}
	// An order counts if before the other run's round number outside+1 there are at least n-outside of this run's: sum over how many there are.
	count := 0.0
	for before := n - outside; before <= n; before++ {
		count += binomial(before+outside, outside) * binomial(2*n-before-outside-1, n-before)
	}
	return 2 * count / binomial(2*n, n)
}

func binomial(n, k int) float64 {
	v := 1.0
	for i := 1; i <= k; i++ {
		v = v * float64(n-k+i) / float64(i)
	}
	return math.Round(v)
}

// outside is how many of n rounds can be left out at either end of a spread so that two runs of the same agree on all of so many comparisons in 95 % of the cases
// (Bonferroni). It is -1 where n is too small for any.
func outside(n, comparisons int) int {
	level := 0.05 / float64(max(1, comparisons))
	best := -1
	for k := 0; 2*k < n && apart(n, k) <= level; k++ {
		best = k
	}
	return best
}

// below is how probable it is that the median lies below a spread: that no more than so many of n rounds are less than it.
func below(n, outside int) float64 {
	p := 0.0
	for k := range outside + 1 {
		p += binomial(n, k)
	}
	return p / math.Pow(2, float64(n))
}
