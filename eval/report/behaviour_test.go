package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// behaving is a run of two agents: one that ignores changes, and one that does not.
func behaving(t *testing.T, l *lab.Lab, p *pack.Pack) Input {
	t.Helper()
	folder := simulatetest.Run(t, l, p, func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
		a := simulatetest.Knowing(s)
		if label == "old" && len(s.Stale) > 0 {
			a = simulatetest.Always("Take <b>" + s.Stale[0] + "</b>.")
		}
		a.Context = strings.Join(append(s.Stale, s.Value), "\n")
		return a
	})
	r, err := rundir.Open(folder)
	require.NoError(t, err)
	m, timings, err := score.Score(folder, p)
	require.NoError(t, err)
	return Input{Folder: folder, Run: r, Metrics: m, Timings: timings, Pack: p}
}

func TestAReportWithAnAgentBeginsWithBehaviour(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "8"})
	for name, change := range map[string]func(*lab.Lab){
		"sealed on pet":       func(*lab.Lab) {},
		"sealed on retrieval": func(l *lab.Lab) { l.Primary.Metric = "answer_shown" },
		"nothing sealed":      func(l *lab.Lab) { l.Primary = nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := simulatetest.Lab(3, "old", "new")
			change(l)
			in := behaving(t, l, p)
			first := Verdicts(in.Metrics)[0]
			assert.Contains(t, first.Name, "new")
			if name == "sealed on pet" {
				assert.Equal(t, "new: better than old", first.Name)
			} else {
				assert.Contains(t, first.Name, "(exploratory)")
			}
			var md strings.Builder
			require.NoError(t, Markdown(&md, in))
			text := md.String()
			require.Contains(t, text, "## Behaviour")
			assert.Less(t, strings.Index(text, "## Behaviour"), strings.Index(text, "## Figures"))
			assert.Equal(t, 1, strings.Count(text, "## Behaviour\n"))
			assert.Contains(t, text, "memhost's reading of CS, PET and IQI")
			// Retrieval explains behaviour: the value in force was retrieved together with a former one, and the former
			// one was used.
			b := in.Metrics.Columns[0].Behaviour
			require.NotEmpty(t, b.Explained)
			ignored := 0
			for _, x := range b.Explained {
				if x.Retrieved == "several" && x.Used == "stale" {
					ignored = x.Count
				}
			}
			require.Positive(t, ignored)
			assert.Contains(t, text, fmt.Sprintf("| old: several | 0 | %d |", ignored))
			assert.Contains(t, text, "0 of "+fmt.Sprint(b.Conversations))
			assert.Contains(t, text, "PET by sessions since the change")

			var page strings.Builder
			require.NoError(t, HTML(&page, in))
			assert.Equal(t, 1, strings.Count(page.String(), `<h2 id="behaviour">`))
			assert.Less(t, strings.Index(page.String(), `id="behaviour"`), strings.Index(page.String(), `id="tables"`))
			assert.NotContains(t, page.String(), "<b>", "what an agent says is data, and never part of the page")
		})
	}
}

func TestEachProbeShowsWhatWasRetrievedAndUsed(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	in := behaving(t, simulatetest.Lab(1, "old", "new"), p)
	shown := 0
	for probe, err := range p.Probes("synth-01") {
		require.NoError(t, err)
		told, err := Probe(in, probe.ProbeID)
		require.NoError(t, err)
		if len(probe.Gold.Stale) == 0 {
			continue
		}
		require.Len(t, told.Conversations, 2)
		assert.Equal(t, simulate.UseStale, told.Conversations[0].Used)
		assert.Equal(t, simulate.UseCurrent, told.Conversations[1].Used)
		assert.NotEmpty(t, told.Conversations[0].Retrievals[0].ContextSHA256)
		shown++
	}
	assert.Positive(t, shown)
	in.WithoutText = true
	var page strings.Builder
	require.NoError(t, HTML(&page, in))
	assert.NotContains(t, page.String(), "<b>")
}
