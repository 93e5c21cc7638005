package score

import (
	"fmt"
	"strings"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
)

// CheckPrimary checks, before anything is recorded, what a lab's sealed comparison can conclude on a pack. It returns
// the reasons why a verdict will be missing although the comparison can be computed. unsourced has, by the label of each
// provider that names no source events, what it shows instead.
//
// Errors: invalid_argument if the comparison cannot be computed at all, because the metric is unknown, measures
// conversations that the lab does not have, applies to no probe of the pack, or counts source events that a provider
// never names; those of reading the pack.
func CheckPrimary(l *lab.Lab, p *pack.Pack, unsourced map[string]string) ([]string, error) {
	warnings := []string{}
	if l.Primary == nil {
		return warnings, nil
	}
	if err := Known(l.Primary.Metric); err != nil {
		return nil, err
	}
	m := &metrics[place[l.Primary.Metric]]
	if m.behave != nil && l.Subject == nil {
		return nil, wrong("primary.metric: %s is of conversations, and the lab has no subject", m.Name).
			WithHint("name a subject, or a metric of what memory shows, such as recall@tokens")
	}
	t, err := readTimeline(p, l.Seed, nil)
	if err != nil {
		return nil, err
	}
	clusters := map[string]bool{}
	for _, probe := range t.probes {
		if m.applies(probe) {
			clusters[probe.persona.cluster] = true
		}
	}
	if len(clusters) == 0 {
		return nil, wrong("primary.metric: %s applies to no probe of this pack: %s", m.Name, m.none).
			WithHint("docs/reference/metrics.md says what each metric needs")
	}
	compared := 0
	for i := range l.Providers {
		label := l.Providers[i].Label
		if about := unsourced[label]; about != "" && m.Attribution && (!l.Providers[i].Reference || strings.EqualFold(label, l.Primary.Reference)) {
			return nil, wrong("primary.metric: %s counts the source events of what is shown, and %s names none: %s", m.Name, label,
				about).WithHint("answer_shown, content and judged answers compare what is shown; or leave the column out")
		}
		if !l.Providers[i].Reference && !strings.EqualFold(label, l.Primary.Reference) {
			compared++
		}
	}
	switch least := stats.SmallestP(len(clusters), compared); {
	case len(clusters) < stats.MinClusters:
		warnings = append(warnings, fmt.Sprintf("the sealed comparison cannot decide: the pack has %d clusters of people to "+
			"whom %s applies, and a verdict needs %d", len(clusters), m.Name, stats.MinClusters))
	case least > stats.Level:
		warnings = append(warnings, fmt.Sprintf("the sealed comparison cannot decide: with %d comparisons over %d clusters of "+
			"people p is %.3f at best, and a verdict needs %.2f; use a pack with more people, or compare fewer memories",
			compared, len(clusters), least, stats.Level))
	}
	if m.behave != nil && l.Replicates < minReplicates {
		warnings = append(warnings, fmt.Sprintf("the sealed comparison cannot decide: a verdict on behaviour needs %d "+
			"replicates, and the lab has %d", minReplicates, l.Replicates))
	}
	return warnings, nil
}
