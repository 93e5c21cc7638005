package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Level is the significance level of every verdict.
const Level = 0.05

// MinClusters is the minimum number of clusters for a verdict.
const MinClusters = 6

// Up to exactClusters, every pattern of signs is enumerated, at most 2^16; above that, as many are drawn.
const (
	exactClusters = 16
	draws         = 20_000
)

// Pair is one probe under two providers. A value is nil if the provider was never asked, because its cell broke off.
type Pair struct {
	Cluster string
	A, B    *float64
	// FailedA and FailedB are how much A and B would increase if everything that failed, and counts as 0, had been
	// right: 1 if the provider failed completely, less if one of several replicates did.
	FailedA, FailedB float64
}

// Comparison compares A with B on one metric whose values are in [0, 1].
type Comparison struct {
	// Difference is A - B over the probes that both answered.
	Difference Interval `json:"difference"`
	// P is two-sided, computed by flipping the signs of whole clusters; Exact means that every pattern was enumerated.
	P     float64 `json:"p"`
	Exact bool    `json:"exact"`
	// Adjusted is P after Holm's correction for the comparisons that were sealed together.
	Adjusted float64 `json:"p_adjusted"`
	// SmallestP is the smallest adjusted p that is possible with this many clusters.
	SmallestP float64 `json:"smallest_p_adjusted"`
	// MissingA and MissingB count probes without a value, FailedA and FailedB those in which a failure counts as wrong.
	// Worst and Best are the differences with all missing and failed values set against A, and in favour of A.
	MissingA int     `json:"missing_a"`
	MissingB int     `json:"missing_b"`
	FailedA  int     `json:"failed_a,omitempty"`
	FailedB  int     `json:"failed_b,omitempty"`
	Worst    float64 `json:"worst"`
	Best     float64 `json:"best"`
	// Detectable is the smallest difference that these probes could have shown with power 0.8; nil with fewer than two
	// clusters.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    Verdict  `json:"verdict"`

	worst, best verdictOf
}

// Verdict is the one sentence that may be concluded from a comparison.
type Verdict string

// The verdicts.
const (
	// Better and Worse mean that the difference is significant, and missing probes cannot change that.
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// NoDifference means that no difference was detected. It does not prove that there is none; Comparison.Detectable
	// is the smallest one that would have been detected.
	NoDifference Verdict = "no detectable difference"
	// CannotDecide means that there are too few clusters, or that no pattern of signs could have reached the level.
	CannotDecide Verdict = "cannot decide"
	// TooFewReplicates is the verdict on behaviour with fewer than three replicates: an agent's answers vary.
	TooFewReplicates Verdict = "needs three replicates"
	// MissingDecides means that the verdict depends on the values of missing and failed probes.
	MissingDecides Verdict = "depends on missing probes"
)

// verdictOf has the difference and p for one way to fill in what is missing.
type verdictOf struct{ difference, p float64 }

// Scale converts a comparison of shares to one of absolute values, given their maximum.
func (c *Comparison) Scale(most float64) {
	for _, v := range []*float64{&c.Difference.Mean, &c.Difference.Low, &c.Difference.High, &c.Worst, &c.Best, c.Detectable} {
		if v != nil {
			*v *= most
		}
	}
}

// Compare compares every list of pairs in one sealed family. The results are in the order of the pairs.
func Compare(family [][]Pair, random *rand.Rand) []Comparison {
	list := make([]Comparison, len(family))
	for i, pairs := range family {
		list[i] = compare(pairs, random)
	}
	adjust := func(of func(*Comparison) float64) []float64 {
		p := make([]float64, len(list))
		for i := range list {
			p[i] = of(&list[i])
		}
		return Holm(p)
	}
	adjusted := adjust(func(c *Comparison) float64 { return c.P })
	worst := adjust(func(c *Comparison) float64 { return c.worst.p })
	best := adjust(func(c *Comparison) float64 { return c.best.p })
	for i := range list {
		c := &list[i]
		c.Adjusted = adjusted[i]
		c.SmallestP = SmallestP(c.Difference.Clusters, len(list))
		if d := Detectable(differences(family[i], both), Level/float64(len(list))); !math.IsInf(d, 1) {
			c.Detectable = &d
		}
		c.Verdict = c.decide(worst[i], best[i])
	}
	return list
}

// decide returns the verdict, from the adjusted p of the three ways to treat missing probes.
func (c *Comparison) decide(worst, best float64) Verdict {
	if c.Difference.Clusters < MinClusters || c.SmallestP > Level {
		return CannotDecide
	}
	verdict := judged(c.Difference.Mean, c.Adjusted)
	if !c.bounded() {
		return verdict
	}
	if judged(c.worst.difference, worst) != verdict || judged(c.best.difference, best) != verdict {
		return MissingDecides
	}
	return verdict
}

// bounded reports whether anything is missing or failed, so that the difference is only known within bounds.
func (c *Comparison) bounded() bool { return c.MissingA+c.MissingB+c.FailedA+c.FailedB > 0 }

func judged(difference, p float64) Verdict {
	switch {
	case p > Level:
		return NoDifference
	case difference > 0:
		return Better
	}
	return Worse
}

// fill returns a pair's difference, or counts false if the pair is left out.
type fill func(Pair) (difference float64, counts bool)

// both leaves out pairs in which one of the two was not asked. A failure counts as wrong.
func both(p Pair) (float64, bool) {
	if p.A == nil || p.B == nil {
		return 0, false
	}
	return *p.A - *p.B, true
}

// against sets what is missing or failed against A: A wrong, and B right. This includes pairs that miss both values,
// whose difference is unknown.
func against(p Pair) (float64, bool) { return lowest(p.A) - highest(p.B, p.FailedB), true }

// infavour sets what is missing or failed in favour of A.
func infavour(p Pair) (float64, bool) { return highest(p.A, p.FailedA) - lowest(p.B), true }

func lowest(value *float64) float64 {
	if value == nil {
		return 0
	}
	return *value
}

func highest(value *float64, failed float64) float64 {
	if value == nil {
		return 1
	}
	return *value + failed
}

func differences(pairs []Pair, of fill) []Sample {
	var samples []Sample
	for _, p := range pairs {
		if d, counts := of(p); counts {
			samples = append(samples, Sample{p.Cluster, d})
		}
	}
	return samples
}

func compare(pairs []Pair, random *rand.Rand) Comparison {
	answered := differences(pairs, both)
	c := Comparison{Difference: MeanInterval(answered, random)}
	c.P, c.Exact = SignFlip(answered, random)
	for _, p := range pairs {
		if p.A == nil {
			c.MissingA++
		}
		if p.B == nil {
			c.MissingB++
		}
		if p.FailedA > 0 {
			c.FailedA++
		}
		if p.FailedB > 0 {
			c.FailedB++
		}
	}
	c.worst = c.bound(pairs, against, random)
	c.best = c.bound(pairs, infavour, random)
	c.Worst, c.Best = c.worst.difference, c.best.difference
	return c
}

// bound is the comparison with all missing and failed values filled in. If there are none, it is the comparison itself.
func (c *Comparison) bound(pairs []Pair, of fill, random *rand.Rand) verdictOf {
	if !c.bounded() {
		return verdictOf{c.Difference.Mean, c.P}
	}
	samples := differences(pairs, of)
	p, _ := SignFlip(samples, random)
	return verdictOf{mean(clustered(samples)), p}
}

// SignFlip is the two-sided p of the hypothesis that the mean difference is zero: the share of sign patterns, with one
// sign per cluster, whose mean is at least as far from zero as the observed one. Up to 16 clusters all patterns are
// enumerated (exact); above, 20,000 are drawn, and the observed pattern is included.
func SignFlip(differences []Sample, random *rand.Rand) (p float64, exact bool) {
	clusters := clustered(differences)
	if len(clusters) == 0 {
		return 1, true
	}
	sums, observed, size := make([]float64, len(clusters)), 0.0, 0.0
	for i, c := range clusters {
		sums[i] = c.sum
		observed += c.sum
		size += math.Abs(c.sum)
	}
	// Patterns that are mathematically equal may differ in the last bits.
	reach := math.Abs(observed) - 1e-12*size
	if len(clusters) <= exactClusters {
		extreme, patterns := 0, 1<<len(clusters)
		for pattern := range patterns {
			total := 0.0
			for i, s := range sums {
				if pattern>>i&1 == 1 {
					s = -s
				}
				total += s
			}
			if math.Abs(total) >= reach {
				extreme++
			}
		}
		return float64(extreme) / float64(patterns), true
	}
	extreme := 1
	for range draws {
		total := 0.0
		for _, s := range sums {
			if random.Uint64()&1 == 1 {
				s = -s
			}
			total += s
		}
		if math.Abs(total) >= reach {
			extreme++
		}
	}
	return float64(extreme) / (draws + 1), false
}

// SmallestP is the smallest adjusted p of one comparison among several: two of 2^clusters patterns (all signs as
// observed, and all reversed), times Holm's factor for the smallest p.
func SmallestP(clusters, comparisons int) float64 {
	p := math.Pow(2, 1-float64(clusters))
	if clusters > exactClusters {
		p = 1.0 / (draws + 1)
	}
	return min(1, p*float64(comparisons))
}

// Holm adjusts the p values of one family, step down, and keeps their order.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	adjusted, most := make([]float64, len(p)), 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = most
	}
	return adjusted
}
