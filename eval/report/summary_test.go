package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFirstScreenSaysWhatCameOut(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "6"})
	for name, c := range map[string]struct {
		change func(*lab.Lab)
		says   string
	}{
		"sealed":  {func(*lab.Lab) {}, "On pet, with at most 1000 tokens, the sealed comparison says: new: better than old."},
		"nothing": {func(l *lab.Lab) { l.Primary = nil }, "No comparison was sealed before the run: every figure is exploratory."},
		"alone": {func(l *lab.Lab) { l.Providers = l.Providers[:1] },
			"The sealed comparison, on pet, has no verdict: there is no other provider."},
	} {
		t.Run(name, func(t *testing.T) {
			l := simulatetest.Lab(3, "old", "new")
			c.change(l)
			in := behaving(t, l, p)
			assert.Contains(t, summary(in.Metrics), c.says)
			var page strings.Builder
			require.NoError(t, HTML(&page, in))
			text := page.String()
			first := strings.Index(text, `<h2 id="verdicts">`)
			require.Positive(t, first)
			for _, part := range []string{"Compared: old", "(8 people, 48 sessions, ", c.says, "<svg"} {
				at := strings.Index(text, part)
				assert.True(t, at > 0 && at < first, "%q is on the first screen", part)
			}
			var md strings.Builder
			require.NoError(t, Markdown(&md, in))
			assert.Contains(t, md.String(), plain(c.says))
			assert.Contains(t, md.String(), "## By label")
		})
	}
}

func TestEveryTableIsLaTeX(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	l := simulatetest.Lab(1, "old", "new_one")
	l.Name = "50 % of\n\\input{x}"
	in := behaving(t, l, p)
	var out strings.Builder
	require.NoError(t, LaTeX(&out, in))
	text := out.String()
	view := viewOf(in)
	tables := 0
	for _, table := range view.all() {
		if len(table.Rows) == 0 {
			continue
		}
		tables++
		assert.Contains(t, text, `\caption{`+tex(table.Title)+"}")
		for _, row := range table.Rows {
			assert.Len(t, row.Cells, len(table.Head)-1, "%s, %s", table.Title, row.Name)
		}
	}
	assert.Equal(t, tables, strings.Count(text, `\begin{longtable}`))
	assert.Equal(t, tables, strings.Count(text, `\end{longtable}`))
	assert.Greater(t, tables, 8)
	assert.Contains(t, text, `new\_\allowbreak{}one`)
	for _, line := range strings.Split(text, "\n")[1:] {
		bare := strings.NewReplacer(`\{`, "", `\}`, "", `\%`, "").Replace(line)
		assert.Equal(t, strings.Count(bare, "{"), strings.Count(bare, "}"), line)
		assert.NotContains(t, bare, "%")
	}
	assert.Equal(t, `\textbackslash{}input\{x\} \& 5\% \_\allowbreak{}\#\$`, tex(`\input{x} & 5% _#$`))
	assert.NotContains(t, strings.Split(text, "\n")[1], "input", "a name cannot end the comment")
	compileLaTeX(t, text)
}

// compileLaTeX compiles the tables, if LaTeX is installed: without an error, and no table is wider than the text.
func compileLaTeX(t *testing.T, tables string) {
	program, err := exec.LookPath("pdflatex")
	if err != nil {
		t.Log("not compiled: there is no pdflatex")
		return
	}
	folder := t.TempDir()
	document := `\documentclass[a4paper]{article}\usepackage[T1]{fontenc}\usepackage{array,booktabs,longtable}\begin{document}` +
		"\n" + tables + `\end{document}`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "paper.tex"), []byte(document), 0o600))
	var told []byte
	for range 3 { // until longtable's widths stay
		c := exec.Command(program, "-halt-on-error", "-interaction=nonstopmode", "paper.tex")
		c.Dir = folder
		told, err = c.CombinedOutput()
		require.NoError(t, err, "%s", told)
	}
	assert.NotRegexp(t, `Overfull \\hbox \(\d{3}`, string(told), "a table is wider than the text by over 100 points")
}

// A reader goes from the verdict to the types of questions, to what it costs, and to every figure.
func TestThePartsOfTheReportAreInOrder(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	l := simulatetest.Lab(1, "old", "new")
	l.Primary.Metric = "answer_shown"
	in := behaving(t, l, p)
	var page strings.Builder
	require.NoError(t, HTML(&page, in))
	text, at := page.String(), 0
	for _, id := range []string{"verdicts", "behaviour", "types", "cost", "tables", "plots", "probes"} {
		next := strings.Index(text, `<h2 id="`+id+`">`)
		assert.Greater(t, next, at, id)
		at = next
	}
	v := viewOf(in)
	assert.NotEmpty(t, v.Type.Rows)
	assert.Equal(t, "answer_shown, at most 1000 tokens", v.Type.Title)
	require.Len(t, v.Worth, 1)
	assert.Equal(t, "answer_shown over the tokens of a context", v.Worth[0].Title)
}

// A column without a single value only makes a table wider than the screen.
func TestAMetricThatNoMemoryHasIsASentence(t *testing.T) {
	entry := func(name string) score.Entry { return score.Entry{Name: name, Headline: true, Unit: "share"} }
	value := func(v float64) score.Figure { return score.Figure{Value: &stats.Interval{Mean: v}} }
	m := &score.Metrics{Catalogue: []score.Entry{entry("shown"), entry("stale")}}
	for _, label := range []string{"a", "b"} {
		m.Columns = append(m.Columns, score.Column{Label: label, Kind: "architecture", Budgets: []score.Budgeted{{Budget: 100,
			Overall: map[string]score.Figure{"shown": value(.5), "stale": {Reason: "the pack has no stale values"}}}}})
	}
	out := overall(m, 100)
	assert.Equal(t, []string{"memory", "shown"}, out.Head)
	assert.Contains(t, out.Note, "Without stale: the pack has no stale values.")
	assert.Len(t, out.Rows[0].Cells, 1)
	m.Columns[1].Budgets[0].Overall["stale"] = value(0)
	assert.Equal(t, []string{"memory", "shown", "stale"}, overall(m, 100).Head)
}

func TestEqualVerdictsAreSaidOnce(t *testing.T) {
	same := sentence{Label: "a", Verdict: "needs three replicates"}
	assert.Equal(t, "needs three replicates, in all 3 comparisons", joined([]sentence{same, same, same}))
	assert.Equal(t, "a: needs three replicates; a: needs three replicates", joined([]sentence{same, same}))
	assert.Equal(t, "a: needs three replicates; a: needs three replicates; b: better than c",
		joined([]sentence{same, same, {Label: "b", Verdict: "better than c"}}))
}
