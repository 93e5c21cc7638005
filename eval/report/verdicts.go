package report

import (
	"fmt"
	"strings"

	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/stats"
)

// Verdict is one check and its outcome: good, bad or open.
type Verdict struct{ Name, Outcome, Detail string }

// Verdicts returns the verdicts on behaviour (if there were conversations), those of the sealed comparison, and the
// checks without which no figure is valid.
func Verdicts(m *score.Metrics) []Verdict {
	var list []Verdict
	for _, s := range append(behaviourSentences(m), sentences(m)...) {
		list = append(list, Verdict{s.Label + ": " + s.Verdict, s.Outcome, s.Detail})
	}
	return append(list, verdicts(m)...)
}

// sentence is the verdict of one comparison.
type sentence struct{ Label, Verdict, Outcome, Detail string }

// outcomes of a verdict, which are also CSS classes
const (
	good = "good"
	bad  = "bad"
	open = "open"
)

// verdicts returns the checks without which no figure is valid.
func verdicts(m *score.Metrics) []Verdict {
	var list []Verdict
	add := func(name, outcome, format string, args ...any) {
		list = append(list, Verdict{name, outcome, fmt.Sprintf(format, args...)})
	}
	switch m.LeakControl.Detector {
	case "works":
		add("leak detector", good, "found %d of %d planted leaks", m.LeakControl.Found, m.LeakControl.Planted)
	case "broken":
		add("leak detector", bad, "missed %d of %d planted leaks: no isolation verdict holds",
			m.LeakControl.Planted-m.LeakControl.Found, m.LeakControl.Planted)
	default:
		add("leak detector", open, "not tested")
	}
	switch m.SelfTest.Verdict {
	case "pass":
		add("self-test", good, "%s without a limit shows all evidence of %d personas", m.SelfTest.Label,
			m.SelfTest.Personas)
	case "broken":
		add("self-test", bad, "%s without a limit misses evidence: the chain from pack to metric is broken (%s)",
			m.SelfTest.Label, strings.Join(m.SelfTest.Missed, ", "))
	default:
		add("self-test", open, "not measured: %s", m.SelfTest.Reason)
	}
	for _, c := range m.Columns {
		if c.Kind == "reference" {
			continue
		}
		switch w := c.Wall; {
		case w.Breached > 0 || w.CanariesFound > 0:
			add(c.Label+": wall", bad, "breached in %d of %d test sessions, %d canaries found: %s", w.Breached,
				w.Breached+w.Clean+w.Inconclusive, w.CanariesFound, strings.Join(w.Breaches, "; "))
		case w.Inconclusive > 0:
			add(c.Label+": wall", open, "%d test sessions clean, %d without inventories that could be compared; %d "+
				"canaries skipped, 0 found", w.Clean, w.Inconclusive, w.CanariesSkipped)
		default:
			add(c.Label+": wall", good, "%d test sessions clean; %d canaries skipped, 0 found", w.Clean,
				w.CanariesSkipped)
		}
		switch i := c.Isolation; {
		case !i.Measured:
			add(c.Label+": isolation", open, "not measured: %s", i.Reason)
		case i.Leaking > 0:
			add(c.Label+": isolation", bad, "%d of %d clusters show text of others (%d canaries, %d sequences)",
				i.Leaking, i.Clusters, i.Canaries, i.Sequences)
		case i.Bound != nil:
			add(c.Label+": isolation", good, "0 of %d clusters show text of others; up to %s could, at 95 %%",
				i.Clusters, percent(*i.Bound))
		}
		if r := c.Readiness; r.TimedOut > 0 || r.Errors > 0 {
			add(c.Label+": readiness", open, "after %d of %d waits memory was not known to be ready, %d of them failed: "+
				"%d probes were asked all the same", r.TimedOut, r.Waits, r.Errors, r.PendingProbes)
		}
		if c.Partial {
			add(c.Label+": complete", bad, "partial column: what was not asked is missing, not zero (%s)",
				cellStates(c.Cells))
		}
	}
	return list
}

// sentences returns the verdicts of the sealed comparison.
func sentences(m *score.Metrics) []sentence {
	if m.Primary == nil {
		return nil
	}
	return sentencesOf(m.Primary)
}

// sentencesOf returns the verdicts of a family.
func sentencesOf(f *score.Family) []sentence {
	var list []sentence
	for _, c := range f.Comparisons {
		s := sentence{Label: c.Label}
		s.Verdict, s.Outcome = decided(c.Verdict, f.Reference)
		s.Detail = fmt.Sprintf("difference %s [%s, %s], p %s after Holm, %d probes in %d clusters",
			signed(c.Difference.Mean), signed(c.Difference.Low), signed(c.Difference.High),
			number(c.Adjusted), c.Difference.N, c.Difference.Clusters)
		if c.MissingA+c.MissingB+c.FailedA+c.FailedB > 0 {
			s.Detail += fmt.Sprintf("; %d probes failed and count as wrong, %d missing: between %s and %s",
				c.FailedA+c.FailedB, c.MissingA+c.MissingB, signed(c.Worst), signed(c.Best))
		}
		if c.Verdict == stats.NoDifference && c.Detectable != nil {
			s.Detail += fmt.Sprintf("; a difference of %s would have been found with power 0.8", number(*c.Detectable))
		}
		list = append(list, s)
	}
	return list
}
