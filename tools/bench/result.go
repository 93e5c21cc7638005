package main

import (
	"time"

	"golang.org/x/perf/benchmath"
)

// Result is the result of a run, with every round.
type Result struct {
	Began, Ended time.Time
	Machine      Machine
	// LoadBefore and LoadAfter are the machine's load average over a minute.
	LoadBefore, LoadAfter string
	Rounds                int
	Short                 bool
	Rows                  []RowResult
	Memory                []MemoryRun
}

// RowResult is a row and its figures: for each contestant, one sample per round.
type RowResult struct {
	Row
	Samples map[string][]sample
}

// take adds a round.
func (r *Result) take(f figures) {
	for i := range r.Rows {
		row := &r.Rows[i]
		for _, who := range row.By {
			if s, ok := f[cell{row.ID, who}]; ok {
				row.Samples[who] = append(row.Samples[who], s)
			}
		}
	}
}

// Ours is the contestant that the row is about.
func (r *RowResult) Ours() string { return r.By[0] }

func (r *RowResult) values(who string) []float64 {
	var list []float64
	for _, s := range r.Samples[who] {
		list = append(list, s.value)
	}
	return list
}

// Value is a contestant's figure; false if it was not measured.
func (r *RowResult) Value(who string) (benchmath.Summary, bool) {
	list := r.values(who)
	return r.summary(list), len(list) > 0
}

// Ratio is our figure divided by another's, round by round.
func (r *RowResult) Ratio(other string) (benchmath.Summary, bool) {
	list := r.against(other, func(ours, theirs float64) float64 { return ours / theirs })
	return r.summary(list), len(list) > 0 && r.Unit != Count
}

// against computes a figure from ours and another's in the same round.
func (r *RowResult) against(other string, f func(ours, others float64) float64) []float64 {
	ours, theirs := r.values(r.Ours()), r.values(other)
	if other == r.Ours() {
		return nil
	}
	var list []float64
	for i := range min(len(ours), len(theirs)) {
		list = append(list, f(ours[i], theirs[i]))
	}
	return list
}

// summary is the median with its 95 % interval, as computed by benchstat without assuming a distribution.
func (r *RowResult) summary(rounds []float64) benchmath.Summary {
	if len(rounds) == 0 {
		return benchmath.Summary{}
	}
	var assumption benchmath.Assumption = benchmath.AssumeNothing
	if r.Exact {
		assumption = benchmath.AssumeExact
	}
	return assumption.Summary(benchmath.NewSample(rounds, &benchmath.DefaultThresholds), 0.95)
}

// Verdict says whether a bar holds.
type Verdict struct {
	Bar Bar
	// Seen is the value that the bar limits.
	Seen benchmath.Summary
	// Holds and Missed are both false if the limit is within the interval.
	Holds, Missed bool
}

// Verdicts compares the figures with the row's bars. It skips a bar whose baseline was not measured.
func (r *RowResult) Verdicts() []Verdict {
	var list []Verdict
	for _, b := range r.Bars {
		var rounds []float64
		switch b.Kind {
		case AtMost:
			rounds = r.values(r.Ours())
		case Ratio:
			rounds = r.against(b.Over, func(ours, theirs float64) float64 { return ours / theirs })
		case Added:
			rounds = r.against(b.Over, func(ours, theirs float64) float64 { return ours - theirs })
		case Allocations:
			for _, s := range r.Samples[r.Ours()] {
				rounds = append(rounds, s.allocs)
			}
		}
		if len(rounds) > 0 {
			s := r.summary(rounds)
			list = append(list, Verdict{b, s, s.Hi <= b.Limit, s.Lo > b.Limit})
		}
	}
	return list
}
