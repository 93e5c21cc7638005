// Package stats is the arithmetic of a comparison: intervals, tests and verdicts that respect which probes belong
// together.
//
// Probes of one conversation are not independent, so everything here resamples or flips whole clusters. All randomness
// comes from a seed: the same samples and seed give the same figures, byte for byte. Quantiles and distributions are
// gonum's; bootstrap, sign flips, Holm, kappa and the correction for a judge's errors are written here and held to
// fixtures made with scipy and statsmodels (testdata/README.md).
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

// clustered sums samples by cluster, in the order of the clusters' names, so that the order of the samples cannot
// change a figure.
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

// mean is the mean over all samples of the clusters: large clusters weigh more, as their probes are more.
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

// Random is a generator for one purpose: the seed of the run and a name, so that adding a figure changes no other.
func Random(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
