package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fixtures are results of scipy and statsmodels, written by testdata/fixtures.py.
type fixtures struct {
	SignFlip []struct {
		Samples       []Sample `json:"samples"`
		P             float64  `json:"p"`
		StandardError float64  `json:"standard_error"`
		Detectable    float64  `json:"detectable"`
	} `json:"sign_flip"`
	Holm []struct {
		P        []float64 `json:"p"`
		Adjusted []float64 `json:"adjusted"`
	} `json:"holm"`
	AUROC []struct {
		Positives []float64 `json:"positives"`
		Negatives []float64 `json:"negatives"`
		Area      float64   `json:"area"`
	} `json:"auroc"`
	Kappa []struct {
		A     []string `json:"a"`
		B     []string `json:"b"`
		Kappa float64  `json:"kappa"`
	} `json:"kappa"`
	Percentiles []struct {
		Values []float64 `json:"values"`
		Low    float64   `json:"low"`
		High   float64   `json:"high"`
	} `json:"percentiles"`
	ZeroOfN []struct {
		N     int     `json:"n"`
		Bound float64 `json:"bound"`
	} `json:"zero_of_n"`
}

func TestFiguresAreThoseOfScipyAndStatsmodels(t *testing.T) {
	const near = 1e-9
	text, err := os.ReadFile("testdata/fixtures.json")
	require.NoError(t, err)
	var f fixtures
	require.NoError(t, json.Unmarshal(text, &f))
	for _, c := range f.SignFlip {
		t.Run(fmt.Sprintf("sign flips and standard error of %d clusters", len(clustered(c.Samples))),
			func(t *testing.T) {
				p, exact := SignFlip(c.Samples, Random(1, "test"))
				assert.True(t, exact)
				assert.InDelta(t, c.P, p, near)
				assert.InDelta(t, c.StandardError, standardError(clustered(c.Samples)), near)
				assert.InDelta(t, c.Detectable, Detectable(c.Samples, Level), 1e-7, "quantiles of Student's t")
			})
	}
	for _, c := range f.Holm {
		assert.InDeltaSlice(t, c.Adjusted, Holm(c.P), near)
	}
	for _, c := range f.AUROC {
		area, known := AUROC(c.Positives, c.Negatives)
		assert.True(t, known)
		assert.InDelta(t, c.Area, area, near)
	}
	for _, c := range f.Kappa {
		kappa, known := Kappa(c.A, c.B)
		assert.True(t, known)
		assert.InDelta(t, c.Kappa, kappa, near)
	}
	for _, c := range f.Percentiles {
		low, high := percentiles(c.Values)
		assert.InDelta(t, c.Low, low, near)
		assert.InDelta(t, c.High, high, near)
	}
	for _, c := range f.ZeroOfN {
		assert.InDelta(t, c.Bound, ZeroOfN(c.N), near)
	}
}

func TestDrawnSignFlipsAgreeWithAllPatterns(t *testing.T) {
	random := Random(7, "drawn")
	var few, many []Sample
	for i := range 16 {
		few = append(few, Sample{fmt.Sprint("c", i), 0.1 + random.NormFloat64()/2})
	}
	exact, _ := SignFlip(few, random)
	// A seventeenth cluster without a difference does not change any pattern's distance from zero, but makes the
	// patterns random draws.
	many = append(many, few...)
	many = append(many, Sample{"none", 0})
	drawn, counted := SignFlip(many, random)
	assert.False(t, counted)
	assert.InDelta(t, exact, drawn, 4*math.Sqrt(exact*(1-exact)/draws))
}

func TestOrderOfSamplesChangesNoBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Sample {
			return Sample{fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "cluster")),
				rapid.Float64Range(-1, 1).Draw(t, "value")}
		}), 1, 60).Draw(t, "samples")
		turned := rapid.Permutation(samples).Draw(t, "turned")
		assert.Equal(t, MeanInterval(samples, Random(3, "x")), MeanInterval(turned, Random(3, "x")))
		p, _ := SignFlip(samples, Random(3, "x"))
		q, _ := SignFlip(turned, Random(3, "x"))
		assert.Equal(t, p, q)
	})
}

// drawnPairs simulates two providers on a pack of conversations: each conversation has its own difficulty, each probe
// is answered right or wrong, and gap is how much better A is.
func drawnPairs(seed uint64, conversations, probes int, gap float64) []Pair {
	random := Random(seed, "pairs")
	var pairs []Pair
	for c := range conversations {
		ease := 0.35 + 0.3*random.Float64()
		for range probes {
			shared := random.Float64()
			a, b := 0.0, 0.0
			// Two memories of one conversation mostly find the same: three of four probes have the same result.
			if random.Float64() < 0.75 {
				if shared < ease {
					b = 1
				}
				if shared < ease+gap {
					a = 1
				}
			} else {
				if random.Float64() < ease {
					b = 1
				}
				if random.Float64() < ease+gap {
					a = 1
				}
			}
			pairs = append(pairs, Pair{Cluster: fmt.Sprint("c", c), A: &a, B: &b})
		}
	}
	return pairs
}

func TestOneProviderUnderTwoLabelsIsNotToldApart(t *testing.T) {
	const runs = 1000
	same := 0
	for seed := range uint64(runs) {
		c := Compare([][]Pair{drawnPairs(seed, 10, 40, 0)}, Random(seed, "compare"))[0]
		require.NotEqual(t, CannotDecide, c.Verdict)
		if c.Verdict == NoDifference {
			same++
		}
	}
	t.Logf("%d of %d A/A runs: no detectable difference", same, runs)
	assert.GreaterOrEqual(t, same, runs*93/100)
}

func TestPlantedGapIsFoundAtTheStatedPower(t *testing.T) {
	const runs, gap = 400, 0.10
	for _, probes := range []int{20, 24, 150} {
		found, detectable := 0, 0.0
		for seed := range uint64(runs) {
			c := Compare([][]Pair{drawnPairs(seed, 10, probes, gap)}, Random(seed, "compare"))[0]
			require.NotEqual(t, Worse, c.Verdict)
			if c.Verdict == Better {
				found++
			}
			detectable += *c.Detectable / runs
		}
		t.Logf("10 conversations of %d probes promise to find %.3f with power 0.8; a gap of 10 points was found in "+
			"%d of %d runs", probes, detectable, found, runs)
		assert.LessOrEqual(t, detectable, gap*1.02)
		assert.GreaterOrEqual(t, found, runs*76/100, "0.8 less two standard errors of the simulation")
	}
}

func TestAFailureIsWrongAndItsBoundsAreShown(t *testing.T) {
	one, zero, half := 1.0, 0.0, 0.5
	pairs := make([]Pair, 0, 20)
	for c := range 10 {
		cluster := fmt.Sprint("c", c)
		pairs = append(pairs, Pair{Cluster: cluster, A: &one, B: &zero})
		if c < 5 {
			pairs = append(pairs, Pair{Cluster: cluster, A: &zero, FailedA: 1, B: &half, FailedB: 0.5})
		}
	}
	c := Compare([][]Pair{pairs}, Random(1, "failures"))[0]
	assert.Equal(t, 15, c.Difference.N, "a failure is a value, and not left out")
	assert.InDelta(t, (10-5*0.5)/15, c.Difference.Mean, 1e-12)
	assert.InDelta(t, (10-5*1.0)/15, c.Worst, 1e-12)
	assert.InDelta(t, (10+5*0.5)/15, c.Best, 1e-12)
	assert.Equal(t, [4]int{0, 0, 5, 5}, [4]int{c.MissingA, c.MissingB, c.FailedA, c.FailedB})
	assert.Equal(t, MissingDecides, c.Verdict, "five clusters of ten are even at worst")
}

func TestTooFewClustersCannotDecide(t *testing.T) {
	one, zero := 1.0, 0.0
	clear := func(clusters int) []Pair {
		var pairs []Pair
		for c := range clusters {
			pairs = append(pairs, Pair{Cluster: fmt.Sprint("c", c), A: &one, B: &zero})
		}
		return pairs
	}
	for _, c := range []struct {
		clusters, comparisons int
		want                  Verdict
	}{
		{1, 1, CannotDecide}, {5, 1, CannotDecide}, {6, 1, Better}, {6, 2, CannotDecide}, {7, 3, Better},
		{10, 25, Better}, {10, 26, CannotDecide},
	} {
		family := make([][]Pair, c.comparisons)
		for i := range family {
			family[i] = clear(c.clusters)
		}
		for _, got := range Compare(family, Random(1, "x")) {
			assert.Equal(t, c.want, got.Verdict, "%d clusters, %d comparisons", c.clusters, c.comparisons)
		}
	}
}

func TestMissingProbesBoundAVerdict(t *testing.T) {
	one, zero := 1.0, 0.0
	var pairs []Pair
	for c := range 10 {
		for range 10 {
			pairs = append(pairs, Pair{Cluster: fmt.Sprint("c", c), A: &one, B: &zero})
		}
	}
	whole := Compare([][]Pair{pairs}, Random(1, "x"))[0]
	assert.Equal(t, Better, whole.Verdict)
	for i := range 10 {
		pairs[i*10].A = nil
	}
	few := Compare([][]Pair{pairs}, Random(1, "x"))[0]
	assert.Equal(t, Better, few.Verdict, "a tenth cannot turn it")
	assert.Equal(t, 10, few.MissingA)
	assert.InDelta(t, 0.9, few.Worst, 1e-12)
	assert.InDelta(t, 1.0, few.Best, 1e-12)
	for i := range pairs {
		if i%10 != 0 && i%10 < 6 {
			pairs[i].B = nil
		}
	}
	many := Compare([][]Pair{pairs}, Random(1, "x"))[0]
	assert.Equal(t, Better, many.Verdict, "worst %v", many.Worst)
	for i := range pairs {
		if i%10 < 7 {
			pairs[i].A, pairs[i].B = nil, nil
		}
	}
	assert.Equal(t, MissingDecides, Compare([][]Pair{pairs}, Random(1, "x"))[0].Verdict)
}

func TestJudgedRateIsCorrectedByTheJudgesOwnErrors(t *testing.T) {
	outcomes := func(n, accepted int) Outcomes {
		var list Outcomes
		for i := range n {
			v := 0.0
			if i < accepted {
				v = 1
			}
			list = append(list, Sample{fmt.Sprint("c", i%10), v})
		}
		return list
	}
	// 60 % are right; the judge accepts 90 % of right and 20 % of wrong answers: 0.6*0.9 + 0.4*0.2 = 62 %.
	c := Correct(outcomes(100, 62), outcomes(50, 45), outcomes(50, 10), Random(1, "judge"))
	require.True(t, c.Identifiable)
	assert.InDelta(t, 0.6, c.Rate, 1e-12)
	assert.Less(t, c.Low, 0.6)
	assert.Greater(t, c.High, 0.6)
	below := Correct(outcomes(100, 10), outcomes(50, 45), outcomes(50, 10), Random(1, "judge"))
	assert.Negative(t, below.Rate, "printed as it is")
	assert.Zero(t, below.Clipped)
	assert.False(t, Correct(outcomes(100, 62), outcomes(50, 25), outcomes(50, 15), Random(1, "judge")).Identifiable)
	assert.False(t, Correct(outcomes(100, 62), nil, outcomes(50, 15), Random(1, "judge")).Identifiable)
}

func TestWhatCannotBeKnownIsNotNamed(t *testing.T) {
	_, known := AUROC(nil, []float64{1})
	assert.False(t, known)
	for _, c := range []struct { // by the definition over the table of both raters' grades, with weights by the squared distance
		a, b  []int
		kappa float64
	}{
		{[]int{0, 1, 2, 3, 4, 4, 2, 1, 0, 3}, []int{0, 2, 2, 3, 3, 4, 1, 1, 1, 4}, 0.8648648648648649},
		{[]int{4, 4, 4, 0, 2}, []int{4, 3, 4, 1, 0}, 0.7761194029850746},
		{[]int{0, 4, 0, 4}, []int{4, 0, 4, 0}, -1},
	} {
		kappa, known := WeightedKappa(c.a, c.b)
		require.True(t, known)
		assert.InDelta(t, c.kappa, kappa, 1e-12)
	}
	_, known = WeightedKappa([]int{3, 3}, []int{3, 3})
	assert.False(t, known)
	_, known = Kappa([]string{"a", "a"}, []string{"a", "a"})
	assert.False(t, known)
	assert.True(t, math.IsInf(Detectable([]Sample{{"one", 0.2}}, Level), 1))
	assert.Equal(t, 1.0, ZeroOfN(0))
	one := MeanInterval([]Sample{{"one", 0.25}}, Random(1, "x"))
	assert.Equal(t, Interval{Mean: 0.25, Low: 0.25, High: 0.25, N: 1, Clusters: 1}, one)
}
