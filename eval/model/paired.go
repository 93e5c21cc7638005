package model

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/stats"
)

// pairedVerdicts collects the judge's verdicts by probe, so that providers are compared on the same questions.
type pairedVerdicts struct {
	clusters map[string]string // of probes
	probes   []string          // in the order of the file
	verdicts map[ratedGroup]map[string]*tally
}

// tally counts the verdicts on a provider's answers to one probe, over replicates.
type tally struct{ right, judged, missing int }

func newPaired() *pairedVerdicts {
	return &pairedVerdicts{clusters: map[string]string{}, verdicts: map[ratedGroup]map[string]*tally{}}
}

func (p *pairedVerdicts) add(j *Judgement) {
	if _, known := p.clusters[j.ProbeID]; !known {
		p.clusters[j.ProbeID] = j.Cluster
		p.probes = append(p.probes, j.ProbeID)
	}
	of := ratedGroup{j.Label, j.Budget, ""}
	if p.verdicts[of] == nil {
		p.verdicts[of] = map[string]*tally{}
	}
	t := p.verdicts[of][j.ProbeID]
	if t == nil {
		t = &tally{}
		p.verdicts[of][j.ProbeID] = t
	}
	switch {
	case j.Error != nil:
		t.missing++
	case j.Accepted:
		t.right++
		t.judged++
	default:
		t.judged++
	}
}

// value is the share of a probe's answers that are right; nil if none was judged.
func (t *tally) value() *float64 {
	if t == nil || t.judged == 0 {
		return nil
	}
	share := float64(t.right) / float64(t.judged)
	return &share
}

// compare compares every provider with the lab's reference at each budget, except providers that are only there for
// orientation.
func (p *pairedVerdicts) compare(l *lab.Lab) []Compared {
	list := []Compared{}
	if len(l.Providers) == 0 {
		return list
	}
	reference := l.Providers[0].Label
	if l.Primary != nil {
		reference = l.Primary.Reference
	}
	for _, budget := range l.Budgets {
		c := Compared{Budget: budget, Comparisons: []LabelledComparison{}}
		var labels []string
		for i := range l.Providers {
			provider := &l.Providers[i]
			switch _, judged := p.verdicts[ratedGroup{provider.Label, budget, ""}]; {
			case strings.EqualFold(provider.Label, reference) && judged:
				c.Reference = provider.Label
			case judged && !provider.Reference:
				labels = append(labels, provider.Label)
			}
		}
		if c.Reference == "" || len(labels) == 0 {
			continue
		}
		pairs := make([][]stats.Pair, len(labels))
		for i, label := range labels {
			for _, probe := range p.probes {
				pairs[i] = append(pairs[i], stats.Pair{Cluster: cmp.Or(p.clusters[probe], probe),
					A: p.verdicts[ratedGroup{label, budget, ""}][probe].value(),
					B: p.verdicts[ratedGroup{c.Reference, budget, ""}][probe].value()})
			}
		}
		for i, compared := range stats.Compare(pairs, stats.Random(l.Seed, fmt.Sprintf("judged/%d", budget))) {
			c.Comparisons = append(c.Comparisons, LabelledComparison{labels[i], compared})
		}
		list = append(list, c)
	}
	return list
}
