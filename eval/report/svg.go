package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/score"
	g "maragu.dev/gomponents"
)

// line is one line of a chart. NaN makes a gap.
type line struct {
	name string
	x    []float64 // in a chart over numbers
	y    []float64
	low  []float64 // intervals; nil: none
	high []float64
}

// The chart's size, in units of its viewBox.
const (
	chartWidth, chartHeight = 640.0, 280.0
	left, right, top, foot  = 48.0, 170.0, 12.0, 40.0
	lineStyles              = 8
)

// chart draws lines over named positions, with a legend. It omits values below 0; the scale ends at 1 or higher.
func chart(places []string, lines []line, unit string) g.Node {
	step := max(1, (len(places)+11)/12)
	var ticks []tick
	for i, place := range places {
		if i%step == 0 {
			ticks = append(ticks, tick{place, float64(i)})
		}
	}
	for n := range lines {
		lines[n].x = make([]float64, len(lines[n].y))
		for i := range lines[n].x {
			lines[n].x[i] = float64(i)
		}
	}
	last := float64(len(places) - 1)
	if last == 0 { // a single position is in the middle
		return draw(-1, 1, ticks, lines, unit, described(places, lines))
	}
	return draw(0, last, ticks, lines, unit, described(places, lines))
}

// chartOver draws lines over numbers that begin at 0, with a legend, like chart.
func chartOver(lines []line, unit string) g.Node {
	most := 0.0
	var words []string
	for _, l := range lines {
		var points []string
		for i, x := range l.x {
			most = max(most, x)
			points = append(points, number(l.y[i])+" at "+number(x))
		}
		words = append(words, l.name+": "+strings.Join(points, ", "))
	}
	var ticks []tick
	step := roundStep(most)
	for i := range int(most/step) + 1 {
		at := float64(i) * step
		ticks = append(ticks, tick{number(at), at})
	}
	return draw(0, most, ticks, lines, unit, strings.Join(words, "; "))
}

// roundStep returns the distance of an axis's ticks: 1, 2 or 5 times a power of ten, the smallest with which an axis from 0
// to most has at most six steps.
func roundStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/6)))
	for _, times := range []float64{1, 2, 5} {
		if most/(times*power) <= 6 {
			return times * power
		}
	}
	return 10 * power
}

// tick is a label of the horizontal axis.
type tick struct {
	name string
	at   float64
}

// draw draws lines whose x is between least and most. words describe the chart for people who cannot see it.
func draw(least, most float64, ticks []tick, lines []line, unit, words string) g.Node {
	highest := 1.0
	for _, l := range lines {
		for _, y := range l.y {
			if !math.IsNaN(y) {
				highest = max(highest, y)
			}
		}
	}
	x := func(v float64) float64 {
		return left + (v-least)/max(most-least, 1e-9)*(chartWidth-left-right)
	}
	y := func(v float64) float64 { return top + (1-v/highest)*(chartHeight-top-foot) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight,
		html.EscapeString(words))
	for i := range 5 {
		v := highest * float64(i) / 4
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="axis" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, chartWidth-right, y(v), y(v), left-6, y(v)+4, number(v))
	}
	for _, t := range ticks {
		fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%g" text-anchor="middle">%s</text>`, x(t.at),
			chartHeight-foot+18, html.EscapeString(t.name))
	}
	fmt.Fprintf(&b, `<text class="axis" x="%g" y="%g">%s</text>`, left, chartHeight-4, html.EscapeString(unit))
	for n, l := range lines {
		style := n % lineStyles
		pen := "M"
		var path strings.Builder
		for i, v := range l.y {
			if math.IsNaN(v) {
				pen = "M"
				continue
			}
			at := x(l.x[i])
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, at, y(v))
			pen = "L"
			if l.low != nil {
				fmt.Fprintf(&b, `<line class="s%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, style, at, at,
					y(max(0, l.low[i])), y(l.high[i]))
			}
			fmt.Fprintf(&b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="2.5"/>`, style, at, y(v))
		}
		at := top + 8 + 18*float64(n)
		fmt.Fprintf(&b, `<path class="s%d" d="%s"/>`, style, path.String())
		fmt.Fprintf(&b, `<path class="s%d" d="M%g %gL%g %g"/><text x="%g" y="%g">%s</text>`, style, chartWidth-right+12,
			at, chartWidth-right+36, at,
			chartWidth-right+42, at+4, html.EscapeString(l.name))
	}
	b.WriteString("</svg>")
	return g.Raw(b.String()) // numbers, and escaped names
}

// described describes a chart in words, for people who cannot see it.
func described(places []string, lines []line) string {
	var parts []string
	for _, l := range lines {
		var points []string
		for i, v := range l.y {
			if !math.IsNaN(v) {
				points = append(points, places[i]+" "+number(v))
			}
		}
		parts = append(parts, l.name+": "+strings.Join(points, ", "))
	}
	return strings.Join(parts, "; ")
}

// plots returns the report's charts, without empty ones.
func plots(m *score.Metrics, _ *score.Timings) []plot {
	var list []plot
	for _, e := range headline(m) {
		if e.Group != "budgeted" && e.Group != "answer" {
			continue
		}
		if p, ok := overBudgets(m, e); ok && len(limited(m)) > 1 {
			list = append(list, p)
		}
		if p, ok := overSessions(m, e); ok {
			list = append(list, p)
		}
	}
	return append(list, overAges(m)...)
}

// limited returns the budgets with a limit, ascending.
func limited(m *score.Metrics) []int64 {
	return slices.DeleteFunc(slices.Clone(m.Keys.Budgets), func(b int64) bool { return b == 0 })
}

// overBudgets shows a metric over the budgets with a limit, with intervals. A single budget has a single position.
func overBudgets(m *score.Metrics, e score.Entry) (plot, bool) {
	budgets := limited(m)
	var lines []line
	for i := range m.Columns {
		l := line{name: m.Columns[i].Label, low: []float64{}}
		for _, budget := range budgets {
			var f score.Figure
			if b := atBudget(&m.Columns[i], budget); b != nil {
				f = b.Overall[e.Name]
			}
			l.add(f)
		}
		if l.any() {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return plot{}, false
	}
	places := make([]string, len(budgets))
	for i, b := range budgets {
		places[i] = strconv.FormatInt(b, 10)
	}
	return plot{Title: e.Name + " over budgets", Note: e.What, SVG: chart(places, lines, "max_tokens")}, true
}

// overTokens shows what a metric reached for the tokens that the contexts really took: a point for each budget.
func overTokens(m *score.Metrics, e score.Entry) (plot, bool) {
	var lines []line
	for _, c := range m.Columns {
		l := line{name: c.Label}
		for _, budget := range m.Keys.Budgets {
			b := atBudget(&c, budget)
			if b == nil {
				continue
			}
			tokens, reached := b.Overall[contextTokens].Value, b.Overall[e.Name].Value
			if tokens != nil && reached != nil {
				l.x = append(l.x, tokens.Mean)
				l.add(b.Overall[e.Name])
			}
		}
		if l.any() {
			lines = append(lines, l)
		}
	}
	return plot{Title: e.Name + " over the tokens of a context", SVG: chartOver(lines, "mean tokens of a context"),
			Note: "What a memory adds to every prompt, and what it reaches with that. One point for each budget, with no limit, too."},
		len(lines) > 0
}

// contextTokens is the metric of a context's size.
const contextTokens = "context_tokens"

func (l *line) add(f score.Figure) {
	if f.Value == nil {
		l.y, l.low, l.high = append(l.y, math.NaN()), append(l.low, 0), append(l.high, 0)
		return
	}
	l.y, l.low, l.high = append(l.y, f.Value.Mean), append(l.low, f.Value.Low), append(l.high, f.Value.High)
}

func (l *line) any() bool {
	return slices.ContainsFunc(l.y, func(v float64) bool { return !math.IsNaN(v) })
}

// overSessions shows a metric by insertion point, at the smallest budget.
func overSessions(m *score.Metrics, e score.Entry) (plot, bool) {
	budgets := limited(m)
	if len(budgets) == 0 {
		return plot{}, false
	}
	var places []string
	for _, c := range m.Columns {
		for _, b := range c.Budgets {
			for _, s := range b.BySession {
				if b.Budget == budgets[0] && !slices.Contains(places, s.Name) {
					places = append(places, s.Name)
				}
			}
		}
	}
	slices.SortFunc(places, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
	if len(places) < 2 {
		return plot{}, false
	}
	var lines []line
	for _, c := range m.Columns {
		i := slices.IndexFunc(c.Budgets, func(b score.Budgeted) bool { return b.Budget == budgets[0] })
		if i < 0 {
			continue
		}
		l := line{name: c.Label}
		for _, place := range places {
			at := slices.IndexFunc(c.Budgets[i].BySession, func(s score.Slice) bool { return s.Name == place })
			v := math.NaN()
			if at >= 0 {
				if f := c.Budgets[i].BySession[at].Figures[e.Name]; f.Value != nil {
					v = f.Value.Mean
				}
			}
			l.y = append(l.y, v)
		}
		if l.any() {
			lines = append(lines, l)
		}
	}
	return plot{Title: e.Name + " over insertion points, " + budgetName(budgets[0]), Note: e.What,
		SVG: chart(places, lines, "after session")}, len(lines) > 0
}

// overAges shows, at the smallest budget, how often the present and the former value are shown, by the time since the
// change.
func overAges(m *score.Metrics) []plot {
	budgets := limited(m)
	if len(budgets) == 0 {
		return nil
	}
	var places []string
	var current, stale []line
	for _, c := range m.Columns {
		i := slices.IndexFunc(c.Ages, func(a score.AgeCurve) bool { return a.Budget == budgets[0] })
		if i < 0 || len(c.Ages[i].Bins) == 0 {
			continue
		}
		now, before := line{name: c.Label}, line{name: c.Label}
		names := make([]string, len(c.Ages[i].Bins))
		for n, bin := range c.Ages[i].Bins {
			names[n] = number(bin.From) + "+"
			now.add(bin.Current)
			before.add(bin.Stale)
		}
		now.low, before.low = nil, nil
		places = names
		if now.any() || before.any() {
			current, stale = append(current, now), append(stale, before)
		}
	}
	if len(current) == 0 {
		return nil
	}
	return []plot{
		{Title: "The present value is shown, by days since it changed", Note: budgetName(budgets[0]),
			SVG: chart(places, current, "days since the change")},
		{Title: "A former value is shown, by days since it changed", Note: budgetName(budgets[0]),
			SVG: chart(places, stale, "days since the change")},
	}
}
