package report

import (
	"strings"
	"testing"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
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
	assert.Contains(t, text, `new\_one`)
	for _, line := range strings.Split(text, "\n")[1:] {
		bare := strings.NewReplacer(`\{`, "", `\}`, "", `\%`, "").Replace(line)
		assert.Equal(t, strings.Count(bare, "{"), strings.Count(bare, "}"), line)
		assert.NotContains(t, bare, "%")
	}
	assert.Equal(t, `\textbackslash{}input\{x\} \& 5\% \_\#\$`, tex(`\input{x} & 5% _#$`))
	assert.NotContains(t, strings.Split(text, "\n")[1], "input", "a name cannot end the comment")
}
