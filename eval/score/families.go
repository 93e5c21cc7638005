package score

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/memhost/memhost/eval/stats"
)

// familyBuilder creates families of comparisons over the providers' columns.
type familyBuilder struct {
	*timeline
	seed      uint64
	columns   []*column // of providers
	reference *column
}

// family compares every other provider with the reference on a metric at a budget. It leaves out the lab's references
// (floor, control, self-test), which would reduce the power for the others.
func (c *familyBuilder) family(metricName string, at int, budget int64) Family {
	number := place[metricName]
	m := &metrics[number]
	f := Family{Metric: metricName, Budget: budget, Reference: c.reference.Label, Turned: m.Better == "less",
		Comparisons: []Comparison{}}
	var labels []string
	var pairs [][]stats.Pair
	for _, other := range c.columns {
		has := m.behave == nil || other.withConversations(at) > 0
		if other != c.reference && !other.beside && other.hasBudget(budget) && has && other.Feedback == c.reference.Feedback {
			labels = append(labels, other.Label)
			pairs = append(pairs, c.pairs(other, number, at))
		}
	}
	switch {
	case !c.reference.hasBudget(budget):
		f.Reason = "the reference is not asked with this budget"
	case m.behave != nil && c.reference.withConversations(at) == 0:
		f.Reason = "no conversation had this budget"
	case len(labels) == 0:
		f.Reason = "there is no other provider"
	case len(pairs[0]) == 0:
		f.Reason = m.none
	case m.chance != nil && c.meanChance(m) > maxChance:
		f.Reason = fmt.Sprintf("refused: chance alone comes to %.2f", c.meanChance(m))
	}
	if f.Reason != "" {
		return f
	}
	for i, compared := range stats.Compare(pairs, stats.Random(c.seed,
		fmt.Sprintf("compare/%s/%d", metricName, budget))) {
		if m.scaled {
			compared.Scale(c.most())
		}
		f.Comparisons = append(f.Comparisons, Comparison{Label: labels[i], Comparison: compared})
	}
	if m.behave != nil {
		c.needReplicates(&f, at)
	}
	c.agree(&f, m, at)
	return f
}

// needReplicates withdraws verdicts on behaviour that are based on too few replicates.
func (c *familyBuilder) needReplicates(f *Family, at int) {
	for i := range f.Comparisons {
		x := &f.Comparisons[i]
		other := c.columns[slices.IndexFunc(c.columns, func(o *column) bool { return o.Label == x.Label })]
		if min(other.withConversations(at), c.reference.withConversations(at)) < minReplicates {
			x.Verdict = stats.TooFewReplicates
		}
	}
}

// meanChance is the score of a random order on a metric of sessions.
func (t *timeline) meanChance(m *metric) float64 {
	total, n := 0.0, 0
	for _, p := range t.probes {
		if m.applies(p) {
			total += m.chance(p)
			n++
		}
	}
	return total / float64(max(1, n))
}

// agree checks a family's verdicts against those of the metrics that must agree. Metrics that this pack cannot measure
// are ignored.
func (c *familyBuilder) agree(f *Family, m *metric, at int) {
	needed := cmp.Or(m.agrees, m.unless)
	if needed == "" {
		return
	}
	other := c.family(needed, at, f.Budget)
	for i := range other.Comparisons {
		x, y := &f.Comparisons[i], other.Comparisons[i].Verdict
		if m.Attribution {
			x.Content = y
		}
		decided := x.Verdict == stats.Better || x.Verdict == stats.Worse
		if m.agrees != "" && decided && x.Verdict != y || m.unless != "" && x.Verdict == stats.Better && y == stats.Worse {
			x.Verdict = m.otherwise
		}
	}
}

// Breached reports whether the column's memory changed while read-only, or showed text of another cluster.
func (c *Column) Breached() bool {
	return c.Wall.Breached > 0 || c.Wall.CanariesFound > 0 || c.Isolation.Leaking > 0 ||
		c.Behaviour != nil && c.Behaviour.Breached > 0
}

// withhold withdraws the verdicts on columns that were breached, and all verdicts against a breached reference.
func (m *Metrics) withhold() {
	breached := map[string]bool{}
	for i := range m.Columns {
		c := &m.Columns[i]
		breached[c.Label] = c.Breached()
	}
	families := m.Exploratory
	if m.Primary != nil {
		families = append(slices.Clone(families), *m.Primary)
	}
	for _, f := range families {
		for i := range f.Comparisons {
			if x := &f.Comparisons[i]; breached[x.Label] || breached[f.Reference] {
				x.Verdict = Withheld
			}
		}
	}
}

// pairs are the probes in a metric's denominator for a provider and the reference.
func (c *familyBuilder) pairs(other *column, number, at int) []stats.Pair {
	m := &metrics[number]
	value := func(of *column, replicates [][]*reading, p *probe) (*float64, float64) {
		if m.Attribution && of.unattributed() {
			return nil, 0
		}
		v, failed, state := sample(replicates, p.number, false, m.worst(), func(r *reading) float64 { return r.values[number] })
		if state != has || math.IsNaN(v) {
			return nil, 0
		}
		if m.scaled {
			v /= c.most()
		}
		if m.Better == "less" {
			v = 1 - v
		}
		return &v, failed
	}
	var list []stats.Pair
	a, b := other.of(m, at), c.reference.of(m, at)
	for _, p := range c.probes {
		if m.applies(p) {
			pair := stats.Pair{Cluster: p.persona.cluster}
			pair.A, pair.FailedA = value(other, a, p)
			pair.B, pair.FailedB = value(c.reference, b, p)
			list = append(list, pair)
		}
	}
	return list
}
