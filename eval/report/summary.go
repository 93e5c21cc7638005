package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/eval/score"
)

// summary is the first screen: what was compared on what, and the result in a sentence.
func summary(m *score.Metrics) []string {
	var memories, besides []string
	for _, c := range m.Columns {
		switch c.Kind {
		case "reference":
			besides = append(besides, c.Label)
		default:
			memories = append(memories, c.Label)
		}
	}
	var budgets []string
	for _, b := range m.Keys.Budgets {
		budgets = append(budgets, budgetName(b))
	}
	counts := m.Run.Pack.Counts
	compared := fmt.Sprintf("Compared: %s, on %s (%d people, %d sessions, %d questions), with %s.", listed(memories),
		m.Run.Pack.Name, counts.Personas, counts.Sessions, m.Run.Probes, listed(budgets))
	if len(besides) > 0 {
		compared += " To read them by: " + listed(besides) + "."
	}
	list := []string{compared}
	if s := behaviourSentences(m); len(s) > 0 {
		list = append(list, "Behaviour (cs and pet), exploratory: "+joined(s)+".")
	}
	switch {
	case m.Primary == nil:
		list = append(list, "No comparison was sealed before the run: every figure is exploratory.")
	case len(m.Primary.Comparisons) == 0:
		list = append(list, fmt.Sprintf("The sealed comparison, on %s, has no verdict: %s.", m.Primary.Metric, m.Primary.Reason))
	default:
		list = append(list, fmt.Sprintf("On %s, with %s, the sealed comparison says: %s.", m.Primary.Metric,
			budgetName(m.Primary.Budget), joined(sentences(m))))
	}
	return list
}

// joined joins verdicts. If all are the same, it says so once.
func joined(list []sentence) string {
	same := !slices.ContainsFunc(list, func(s sentence) bool { return s.Verdict != list[0].Verdict })
	if same && len(list) > 2 {
		return fmt.Sprintf("%s, in all %d comparisons", list[0].Verdict, len(list))
	}
	var parts []string
	for _, s := range list {
		parts = append(parts, s.Label+": "+s.Verdict)
	}
	return strings.Join(parts, "; ")
}

// listed formats a list in words.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// mainMetric is the sealed metric, or else the first headline metric.
func mainMetric(m *score.Metrics) (score.Entry, bool) {
	entries := headline(m)
	if len(entries) == 0 {
		return score.Entry{}, false
	}
	at := 0
	if m.Primary != nil {
		at = max(0, slices.IndexFunc(entries, func(e score.Entry) bool { return e.Name == m.Primary.Metric }))
	}
	return entries[at], true
}
