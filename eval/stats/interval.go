package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Resamples is the number of bootstrap samples for an interval.
const Resamples = 2000

// Interval is a mean with its 95 % interval.
type Interval struct {
	Mean float64 `json:"mean"`
	// Low and High are the 2.5 % and 97.5 % quantiles of the cluster bootstrap. With fewer than two clusters there is
	// no interval, and both are the mean.
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	N        int     `json:"n"`
	Clusters int     `json:"clusters"`
}

// MeanInterval is the mean of samples with its interval, for which whole clusters are drawn with replacement.
func MeanInterval(samples []Sample, random *rand.Rand) Interval {
	clusters := clustered(samples)
	i := Interval{Mean: mean(clusters), N: len(samples), Clusters: len(clusters)}
	i.Low, i.High = i.Mean, i.Mean
	if len(clusters) < 2 {
		return i
	}
	means := make([]float64, Resamples)
	drawn := make([]cluster, len(clusters))
	for r := range means {
		for k := range drawn {
			drawn[k] = clusters[random.IntN(len(clusters))]
		}
		means[r] = mean(drawn)
	}
	i.Low, i.High = percentiles(means)
	return i
}

// percentiles returns the 2.5 % and 97.5 % quantiles, by linear interpolation between order statistics (type 7, as in
// numpy).
func percentiles(values []float64) (low, high float64) {
	slices.Sort(values)
	return quantile(values, 0.025), quantile(values, 0.975)
}

// quantile is a quantile of sorted values, of type 7.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	below := int(math.Floor(at))
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// standardError is the cluster-robust standard error of the mean, with the correction for few clusters G/(G-1).
func standardError(clusters []cluster) float64 {
	g := float64(len(clusters))
	if g < 2 {
		return math.Inf(1)
	}
	m, residuals, count := mean(clusters), 0.0, 0.0
	for _, c := range clusters {
		r := c.sum - m*c.count
		residuals += r * r
		count += c.count
	}
	return math.Sqrt(g/(g-1)*residuals) / count
}

// Detectable is the smallest difference that samples like these would have shown with power 0.8 in a two-sided test at
// level alpha:
//
//	(t(1-alpha/2) + t(0.8)) * standard error / c4(clusters) + 1/samples
//
// with one degree of freedom less than there are clusters. c4 corrects the bias of a standard deviation of few values
// (0.97 for ten); the last term is half a step of the sign-flip test, which counts ties as extreme. It is +Inf with
// fewer than two clusters.
func Detectable(differences []Sample, alpha float64) float64 {
	clusters := clustered(differences)
	if len(clusters) < 2 {
		return math.Inf(1)
	}
	freedom := float64(len(clusters) - 1)
	high, _ := math.Lgamma((freedom + 1) / 2)
	low, _ := math.Lgamma(freedom / 2)
	c4 := math.Sqrt(2/freedom) * math.Exp(high-low)
	return (studentT(1-alpha/2, freedom)+studentT(0.8, freedom))*standardError(clusters)/c4 +
		1/float64(len(differences))
}

// studentT is the p-quantile of Student's t distribution, for p of at least one half. (gonum's own, in stat/distuv,
// would add all of its linear algebra to the program: 3 MB.)
func studentT(p, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*(1-p))
	return math.Sqrt(freedom * (1 - x) / x)
}

// ZeroOfN is the upper 95 % bound of a rate that was zero in n independent trials: 1 - 0.05^(1/n); 1 for n = 0.
func ZeroOfN(n int) float64 {
	if n == 0 {
		return 1
	}
	return 1 - math.Pow(0.05, 1/float64(n))
}

// AUROC is the probability that the score of a positive is above that of a negative, with ties counting half. It
// returns false if either is missing.
func AUROC(positives, negatives []float64) (float64, bool) {
	if len(positives) == 0 || len(negatives) == 0 {
		return 0, false
	}
	wins := 0.0
	for _, p := range positives {
		for _, n := range negatives {
			switch {
			case p > n:
				wins++
			case p == n:
				wins += 0.5
			}
		}
	}
	return wins / float64(len(positives)*len(negatives)), true
}

// Kappa is Cohen's kappa for two raters' labels of the same items. It returns false if chance alone would always agree.
func Kappa(a, b []string) (float64, bool) {
	if len(a) != len(b) || len(a) == 0 {
		return 0, false
	}
	n, agreed := float64(len(a)), 0.0
	first, second := map[string]float64{}, map[string]float64{}
	for i := range a {
		first[a[i]]++
		second[b[i]]++
		if a[i] == b[i] {
			agreed++
		}
	}
	names := make([]string, 0, len(first))
	for label := range first {
		names = append(names, label)
	}
	slices.Sort(names)
	chance := 0.0
	for _, label := range names {
		chance += first[label] / n * second[label] / n
	}
	if chance == 1 {
		return 0, false
	}
	return (agreed/n - chance) / (1 - chance), true
}

// WeightedKappa is Cohen's kappa for two raters' grades of the same items, where a disagreement is weighted by the
// square of its distance. It returns false if chance alone would always agree.
func WeightedKappa(a, b []int) (float64, bool) {
	if len(a) != len(b) || len(a) == 0 {
		return 0, false
	}
	observed, expected := 0.0, 0.0
	for i := range a {
		observed += float64((a[i] - b[i]) * (a[i] - b[i]))
		for j := range b {
			expected += float64((a[i] - b[j]) * (a[i] - b[j]))
		}
	}
	if expected == 0 {
		return 0, false
	}
	return 1 - observed*float64(len(a))/expected, true
}
