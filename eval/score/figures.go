package score

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/memhost/memhost/eval/stats"
)

// column is a provider with its replicates, or a reference.
type column struct {
	*timeline
	Column
	seed  uint64
	cells []*cell
	// budgets are those that the provider was asked with; nil for a reference, which has all.
	budgets []int64
	// reference has the readings of a reference, by budget and probe, instead of cells. It is nil if there are none,
	// and reason says why.
	reference [][]*reading
	reason    string
	// beside means that the column is a reference, which the lab added for orientation.
	beside bool
	// foreign means a submitted ranking, which only has ranking metrics.
	foreign bool
	// located means that the provider never says where items are shown.
	located bool
}

// hasBudget reports whether the column was asked with a budget.
func (c *column) hasBudget(budget int64) bool {
	return c.budgets == nil || slices.Contains(c.budgets, budget)
}

// replicates returns the readings of every replicate at one budget.
func (c *column) replicates(budget int) [][]*reading {
	if c.reference != nil {
		return [][]*reading{c.reference[budget]}
	}
	list := make([][]*reading, len(c.cells))
	for i, cell := range c.cells {
		list[i] = cell.readings[budget]
	}
	return list
}

// of returns the readings that a metric measures, of every replicate at one budget: retrievals, or conversations.
func (c *column) of(m *metric, budget int) [][]*reading {
	if m.behave == nil || c.reference != nil {
		return c.replicates(budget)
	}
	list := make([][]*reading, len(c.cells))
	for i, cell := range c.cells {
		list[i] = cell.conversations[budget]
	}
	return list
}

// state says whether a metric has a value for a probe.
type state int

const (
	has       state = iota
	missing         // no replicate was asked; or all failed, and the metric has no worst value
	undefined       // it was answered, but the metric has no value
	left            // the probe is not in the slice
)

// sample averages a value of a probe over the replicates that were asked. A failure counts as the worst value, so that
// failing is never an advantage; failed is the share of replicates that failed. If there is no worst value (NaN),
// failures have no value.
func sample(replicates [][]*reading, probe int, withoutPending bool, worst float64,
	of func(*reading) float64) (value, failed float64, s state) {
	total, n, failures, answered, outside := 0.0, 0, 0, 0, 0
	for _, readings := range replicates {
		switch r := readings[probe]; {
		case r == nil:
		case withoutPending && r.pending, r.leaked:
			outside++
		case r.err != "" || r.lacks && !math.IsNaN(worst):
			if !math.IsNaN(worst) {
				total += worst
				n++
				failures++
			}
		default:
			answered++
			if v := of(r); !math.IsNaN(v) {
				total += v
				n++
			}
		}
	}
	switch {
	case n > 0:
		return total / float64(n), float64(failures) / float64(n), has
	case answered > 0:
		return 0, 0, undefined
	case outside > 0:
		return 0, 0, left
	}
	return 0, 0, missing
}

// slice is a subset of the probes.
type slice struct {
	kind, name     string
	probes         []*probe
	withoutPending bool
	headline       bool // only headline metrics
}

// slicesOf splits the probes by a name, sorted by it. Probes with an empty name are left out.
func slicesOf(probes []*probe, kind string, name func(*probe) string) []slice {
	parts := map[string][]*probe{}
	for _, p := range probes {
		if n := name(p); n != "" {
			parts[n] = append(parts[n], p)
		}
	}
	list := []slice{}
	for _, n := range slices.SortedFunc(maps.Keys(parts), compareNames) {
		list = append(list, slice{kind: kind, name: n, probes: parts[n], headline: true})
	}
	return list
}

// budgeted computes everything about the column at one budget.
func (c *column) budgeted(at int, budget int64) Budgeted {
	b := Budgeted{Budget: budget, Overall: Figures{}}
	replicates, errors, pending := c.replicates(at), map[string]int{}, false
	for _, readings := range replicates {
		for _, r := range readings {
			switch {
			case r == nil:
				b.Missing++
			case r.err != "":
				errors[r.err]++
			default:
				b.Answered++
			}
			pending = pending || r != nil && r.pending
		}
	}
	b.Errors = counted(errors)
	if c.reason != "" && b.Answered == 0 {
		b.Missing = 0
	}
	b.Overall = c.figures(at, budget, slice{kind: "all", probes: c.probes})
	if pending {
		b.WithoutPending = c.figures(at, budget, slice{kind: "without_pending", probes: c.probes, withoutPending: true,
			headline: true})
	}
	cut := func(kind string, name func(*probe) string) []Slice {
		list := []Slice{}
		for _, s := range slicesOf(c.probes, kind, name) {
			list = append(list, Slice{s.name, len(s.probes), c.figures(at, budget, s)})
		}
		return list
	}
	b.ByLabel = cut("label", func(p *probe) string { return p.Label })
	b.BySession = cut("session", func(p *probe) string { return strconv.Itoa(p.AfterSession) })
	b.BySpeaker = cut("speaker", func(p *probe) string { return p.speaker })
	return b
}

// figures computes the metrics of a slice.
func (c *column) figures(at int, budget int64, s slice) Figures {
	f := Figures{}
	for i := range metrics {
		if m := &metrics[i]; (m.Headline || !s.headline) && (!c.foreign || m.ofRanking()) && (c.hasConversations || m.behave == nil) {
			f[m.Name] = c.figure(m, i, at, budget, s)
		}
	}
	if !s.headline && !c.foreign {
		f[auroc.Name] = c.auroc(at, budget)
	}
	return f
}

// maxChance is the limit above which a metric of sessions is not used, because chance alone would reach it.
const maxChance = 0.5

// figure computes one metric of a slice.
func (c *column) figure(m *metric, number, at int, budget int64, s slice) Figure {
	var f Figure
	var samples []stats.Sample
	applying, chance, unknown := 0, 0.0, 0
	total, gain := 0.0, 0.0 // the sum of all values, and the gain if everything that failed had been right
	replicates := c.of(m, at)
	for _, p := range s.probes {
		if !m.applies(p) {
			continue
		}
		value, failed, state := sample(replicates, p.number, s.withoutPending, m.worst(),
			func(r *reading) float64 { return r.values[number] })
		if state == left {
			continue
		}
		applying++
		if m.chance != nil {
			chance += m.chance(p)
		}
		switch state {
		case has:
			samples = append(samples, stats.Sample{Cluster: p.persona.cluster, Value: value})
			if failed > 0 {
				f.Failed++
				gain += failed
			}
			total += value
		case missing:
			f.Missing++
		case undefined:
			unknown++
		}
	}
	if m.chance != nil && applying > 0 {
		chance /= float64(applying)
		f.Chance = &chance
	}
	switch {
	case c.reason != "" && len(samples) == 0:
		f.Reason, f.Missing = c.reason, 0
	case applying == 0 && m.none != "":
		f.Reason = m.none
	case applying == 0:
		f.Reason = "no probe is left"
	case m.chance != nil && chance > maxChance:
		f.Reason = fmt.Sprintf("refused: chance alone comes to %.2f", chance)
	case m.Attribution && c.unattributed():
		f.Reason = "not measured: no item names 1 to 3 source events"
	case len(samples) == 0 && unknown == 0:
		f.Reason = "no probe was answered"
	case len(samples) == 0:
		f.Reason = cmp.Or(m.absent, "not measured: the provider does not say")
	default:
		i := stats.MeanInterval(samples, c.random(budget, s, m.Name))
		f.Value = &i
		if worst := m.worst(); f.Failed+f.Missing > 0 && !math.IsNaN(worst) {
			n, best := float64(len(samples)+f.Missing), 1-worst
			f.Bounds = &Bounds{Worst: (total + worst*float64(f.Missing)) / n,
				Best: (total + (best-worst)*gain + best*float64(f.Missing)) / n}
		}
	}
	return f
}

func (c *column) random(budget int64, s slice, name string) *rand.Rand {
	return stats.Random(c.seed, fmt.Sprintf("%s/%d/%s=%s/%s", c.Label, budget, s.kind, s.name, name))
}

// unattributed reports whether the column returned items of which none can be attributed.
func (c *column) unattributed() bool { return c.FanOut.Items > 0 && c.FanOut.Few == 0 }

// scoredProbe is the top score of one probe.
type scoredProbe struct {
	score    float64
	positive bool
	cluster  int
}

// auroc is the area under the ROC curve of the top score over answerable and unanswerable probes, with the interval of
// the cluster bootstrap.
func (c *column) auroc(at int, budget int64) Figure {
	var list []scoredProbe
	var f Figure
	positive, known := 0, false
	numbers := map[string]int{}
	replicates := c.replicates(at)
	for _, p := range c.probes {
		score, _, state := sample(replicates, p.number, false, math.NaN(), func(r *reading) float64 { return r.top })
		switch {
		case state == missing:
			f.Missing++
			continue
		case state != has:
			continue
		}
		if _, there := numbers[p.persona.cluster]; !there {
			numbers[p.persona.cluster] = len(numbers)
		}
		known = known || !math.IsInf(score, -1)
		positive += int(yes(p.Gold.Answerable))
		list = append(list, scoredProbe{score, p.Gold.Answerable, numbers[p.persona.cluster]})
	}
	switch {
	case c.reason != "" && len(list) == 0:
		f.Reason, f.Missing = c.reason, 0
	case !known:
		f.Reason = "not measured: the provider gives no scores"
	case positive == 0 || positive == len(list):
		f.Reason = "it takes answerable and unanswerable probes"
	default:
		i := aurocInterval(list, len(numbers), c.random(budget, slice{kind: "all"}, auroc.Name))
		f.Value = &i
	}
	return f
}

// aurocInterval resamples clusters. It skips draws without a positive or a negative.
func aurocInterval(list []scoredProbe, clusters int, random *rand.Rand) stats.Interval {
	slices.SortStableFunc(list, func(a, b scoredProbe) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	weights := make([]float64, clusters)
	for i := range weights {
		weights[i] = 1
	}
	area, _ := weightedAUROC(list, weights)
	i := stats.Interval{Mean: area, Low: area, High: area, N: len(list), Clusters: clusters}
	if clusters < 2 {
		return i
	}
	var areas []float64
	for range stats.Resamples {
		clear(weights)
		for range clusters {
			weights[random.IntN(clusters)]++
		}
		if area, known := weightedAUROC(list, weights); known {
			areas = append(areas, area)
		}
	}
	slices.Sort(areas)
	i.Low, i.High = quantile(areas, 0.025), quantile(areas, 0.975)
	return i
}

// weightedAUROC is the probability that a positive's score is above a negative's, with ties counting half, where each
// probe is weighted by how often its cluster was drawn. The list is sorted by score.
func weightedAUROC(list []scoredProbe, weights []float64) (float64, bool) {
	wins, below, positives := 0.0, 0.0, 0.0
	for from := 0; from < len(list); {
		to, up, down := from, 0.0, 0.0
		for ; to < len(list) && list[to].score == list[from].score; to++ {
			if list[to].positive {
				up += weights[list[to].cluster]
			} else {
				down += weights[list[to].cluster]
			}
		}
		wins += up * (below + down/2)
		positives += up
		below += down
		from = to
	}
	if positives == 0 || below == 0 {
		return 0, false
	}
	return wins / (positives * below), true
}

// quantile is a quantile of sorted values, by linear interpolation.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ageEdges are the lower bounds of AgeCurve's bins, in days since the last change.
var ageEdges = []float64{0, 1, 7, 30, 90, 365}

// ages computes current and stale by the time since the last change.
func (c *column) ages(at int, budget int64) AgeCurve {
	curve := AgeCurve{Budget: budget, Bins: []Age{}}
	for i, from := range ageEdges {
		bin := Age{From: from}
		to := math.Inf(1)
		if i+1 < len(ageEdges) {
			to = ageEdges[i+1]
			bin.To = &to
		}
		part := slice{kind: "age", name: fmt.Sprint(from)}
		for _, p := range c.probes {
			if p.hasStale() && p.age() >= from && p.age() < to {
				part.probes = append(part.probes, p)
			}
		}
		if len(part.probes) == 0 {
			continue
		}
		current, stale := place["current_shown"], place["stale_shown"]
		bin.Current = c.figure(&metrics[current], current, at, budget, part)
		bin.Stale = c.figure(&metrics[stale], stale, at, budget, part)
		curve.Bins = append(curve.Bins, bin)
	}
	return curve
}
