// Package stats has the statistics of comparisons: intervals, tests and verdicts that take into account which probes
// belong together.
//
// Probes of one conversation are not independent, so everything here resamples or flips whole clusters. All randomness
// comes from a seed: the same samples and seed produce the same figures, byte for byte. Quantiles and distributions are
// gonum's; bootstrap, sign flips, Holm, kappa and the correction for a judge's errors are implemented here and tested
// against results of scipy and statsmodels (testdata/README.md).
package stats

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Sample is one probe's value, averaged over replicates, and the cluster it belongs to.
type Sample struct {
	Cluster string
	Value   float64
}

// cluster is the sum over the samples of one cluster.
type cluster struct {
	sum   float64
	count float64
}

// clustered sums samples by cluster, sorted by name, so that the order of the samples does not affect figures.
func clustered(samples []Sample) []cluster {
	values := map[string][]float64{}
	for _, s := range samples {
		values[s.Cluster] = append(values[s.Cluster], s.Value)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]cluster, len(names))
	for i, name := range names {
		slices.Sort(values[name])
		list[i] = cluster{sum: sum(values[name]), count: float64(len(values[name]))}
	}
	return list
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// mean is the mean over all samples of the clusters: a cluster's weight is its number of probes.
func mean(clusters []cluster) float64 {
	var total, count float64
	for _, c := range clusters {
		total += c.sum
		count += c.count
	}
	if count == 0 {
		return 0
	}
	return total / count
}

// Random returns a random generator for one purpose, seeded by the run's seed and a name, so that adding a figure
// changes no other.
func Random(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
