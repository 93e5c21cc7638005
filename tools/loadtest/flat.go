package loadtest

import "slices"

// series is one quantity, sampled at even intervals.
type series struct {
	name    string
	samples []float64
	// How much the later median may exceed the earlier one: by a share of it, and by an amount in the quantity's unit.
	share, amount float64
}

// thirds returns the medians of the first, second and last third of the samples. There must be at least three samples.
func (s *series) thirds() (of [3]float64) {
	n := len(s.samples)
	for i := range of {
		of[i] = median(s.samples[i*n/3 : (i+1)*n/3])
	}
	return of
}

// flat reports whether the median of the last third is at most that of the second third plus the allowed increase. The
// first third is for caches to fill. With a share of 0.1 and an amount of 4, 100 may become 114.
func (s *series) flat() bool {
	of := s.thirds()
	return of[2] <= of[1]*(1+s.share)+s.amount
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
