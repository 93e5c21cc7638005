package score

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryMetricMeasuresItsExamples(t *testing.T) {
	for i := range metrics {
		m := &metrics[i]
		t.Run(m.Name, func(t *testing.T) {
			assert.NotContains(t, m.What, "\n")
			assert.GreaterOrEqual(t, slices.Index(groups, m.Group), 0, "its group is one of those that tables have")
			if m.agrees+m.unless != "" {
				assert.Contains(t, place, m.agrees+m.unless)
				assert.NotEmpty(t, m.otherwise)
			}
			if m.behave != nil {
				require.NotEmpty(t, m.conversations)
				for _, e := range m.conversations {
					p, c := e.conversation()
					require.True(t, m.applies(p), "%s: it applies to what the example is about", e.says)
					assert.InDelta(t, e.value, m.behave(c), 1e-12, e.says)
				}
				return
			}
			if m.measure == nil || m.chance != nil {
				return
			}
			require.NotEmpty(t, m.examples)
			for _, e := range m.examples {
				p := exampleOf(true)
				if !m.applies(p) {
					p = exampleOf(false)
				}
				require.True(t, m.applies(p), "it applies to the probe of the examples")
				got := (&timeline{}).measure(p, e.retrieval()).values[i]
				if math.IsNaN(e.value) {
					assert.True(t, math.IsNaN(got), "%s: %v", e.says, got)
				} else {
					assert.InDelta(t, e.value, got, 1e-12, e.says)
				}
			}
		})
	}
}

var update = flag.Bool("update", false, "write docs/reference/metrics.md anew")

// TestTheMetricsPage: docs/reference/metrics.md is generated from the metrics themselves.
func TestTheMetricsPage(t *testing.T) {
	const path = "../../docs/reference/metrics.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(metricsPage()), 0o600))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, metricsPage(), string(text), "go test ./eval/score -run TestTheMetricsPage -update writes it anew")
}

func metricsPage() string {
	var b strings.Builder
	b.WriteString("# Metrics of `memhost eval`\n\n" +
		"Made from `eval/score/metric_*.go`, one file for each; `go test ./eval/score -run TestTheMetricsPage -update` writes " +
		"this page.\n\n" +
		"A metric is a mean over the probes in its denominator, which the pack alone decides. A retrieval that failed, or " +
		"whose event could not be recorded or was lost, counts as the worst value. Verdicts are given on shares whose direction is known.\n\n" +
		"The examples are answers to one question. Mila said, in three sessions:\n\n")
	for _, e := range exampleEvents {
		fmt.Fprintf(&b, "- `%s`, session %d", e.id, e.session)
		if e.context != "" {
			fmt.Fprintf(&b, ", context %s", e.context)
		}
		fmt.Fprintf(&b, ": %s\n", e.text)
	}
	fmt.Fprintf(&b, "\n\"%s\" is asked after session %d, in the context %s. Its evidence is `e2` and `e3`, its answers are "+
		"%q and %q; %q is out of date, and %q must not be shown.\n", exampleProbe.Query, exampleProbe.AfterSession,
		exampleProbe.Context, "Lagos", "sister", "Porto", "behind the mirror")
	b.WriteString("\nBehaviour is measured where an agent talks with people, by its first answer. Mila reacts by rule (package " +
		"`eval/simulate`), and wants:\n\n")
	for _, w := range exampleWishes {
		fmt.Fprintf(&b, "- %s%s: %s, from %.10s", w.Attribute, map[bool]string{true: " at " + w.Context}[w.Context != ""], w.Value,
			w.From)
		if w.Until != "" {
			fmt.Fprintf(&b, " until %.10s", w.Until)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n`cs`, `pet`, `corrections_needed` and `iqi_judge` are memhost's reading of CS, PET and IQI, which the source " +
		"design names and does not define. A session whose value has changed and differs between contexts is of `cs_and_pet`, and " +
		"of neither headline. Verdicts on behaviour need three replicates. `iqi_judge` is a judge's grade from 0 to 4: see " +
		"[eval.md](../eval.md).\n")
	group := ""
	for i := range metrics {
		m := &metrics[i]
		if m.Group != group {
			group = m.Group
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(group[:1])+group[1:])
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n\nUnit: %s", m.Name, strings.ToUpper(m.What[:1])+m.What[1:], m.Unit)
		if m.Better != "" {
			fmt.Fprintf(&b, "; %s is better", m.Better)
		}
		if m.Attribution {
			b.WriteString("; rests on the provider's own `source_event_ids`")
		}
		b.WriteString(".")
		switch {
		case m.agrees != "":
			fmt.Fprintf(&b, " A verdict needs `%s` to agree, or it %q.", m.agrees, m.otherwise)
		case m.unless != "":
			fmt.Fprintf(&b, " \"Better\" needs `%s` not to be worse, or the verdict %q.", m.unless, m.otherwise)
		}
		b.WriteString("\n")
		if len(m.conversations) > 0 {
			b.WriteString("\n| example | about | the agent answers | value |\n|---|---|---|---|\n")
			for _, e := range m.conversations {
				answers := "nothing"
				if len(e.answers) > 0 {
					answers = "\"" + strings.Join(e.answers, "\"<br>\"") + "\""
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %.3g |\n", e.says, e.about, answers, e.value)
			}
		}
		if len(m.examples) == 0 {
			continue
		}
		b.WriteString("\n| example | shown | value |\n|---|---|---|\n")
		for _, e := range m.examples {
			var shown []string
			for _, x := range e.items {
				line := "\"" + x.text + "\""
				if x.sources != "" {
					line += " (" + strings.ReplaceAll(x.sources, " ", ", ") + ")"
				}
				shown = append(shown, line)
			}
			value := fmt.Sprintf("%.3g", e.value)
			if math.IsNaN(e.value) {
				value = "none"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", e.says, strings.Join(shown, "<br>"), value)
		}
	}
	return b.String()
}
