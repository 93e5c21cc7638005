package main

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const plotWidth, legendWidth, plotHeight = 18 * vg.Centimeter, 8 * vg.Centimeter, 12 * vg.Centimeter

// caption is under the title of every plot.
const caption = "retrieval of stored messages on LoCoMo; no architecture is ranked here"

// colours are distinguishable for most people. If there are more memories than colours, the others have dashed lines
// and hollow points.
var colours = []color.RGBA{{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255},
	{0xcc, 0x79, 0xa7, 255}, {0xe6, 0x9f, 0x00, 255}, {0x56, 0xb4, 0xe9, 255}, {0x55, 0x55, 0x55, 255}}

// style is how the i-th memory is drawn.
func style(i int) (draw.LineStyle, draw.GlyphStyle) {
	line := draw.LineStyle{Color: colours[i%len(colours)], Width: vg.Points(1.5)}
	dot := draw.GlyphStyle{Color: line.Color, Shape: draw.CircleGlyph{}, Radius: vg.Points(2.5)}
	if i >= len(colours) {
		line.Dashes, dot.Shape = []vg.Length{vg.Points(4), vg.Points(2)}, draw.RingGlyph{}
	}
	return line, dot
}

// figure is a plot with its legend, which is drawn to its right.
type figure struct {
	*plot.Plot
	legend plot.Legend
}

func newPlot(title, y string) *figure {
	p := &figure{Plot: plot.New(), legend: plot.NewLegend()}
	p.legend.Top, p.legend.Left, p.legend.Padding = true, true, vg.Points(3)
	p.Title.Text = title + "\n" + caption
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = color.White
	p.Y.Label.Text = y
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe4}, color.Transparent
	p.Add(grid)
	return p
}

// point is a figure at a place of the horizontal axis.
type point struct{ x, mean, low, high float64 }

// bars are the intervals of points.
func bars(points []point) (plotter.XYs, *plotter.YErrorBars, error) {
	xys, errs := make(plotter.XYs, len(points)), make(plotter.YErrors, len(points))
	for i, at := range points {
		xys[i].X, xys[i].Y = at.x, at.mean
		errs[i].Low, errs[i].High = at.mean-at.low, at.high-at.mean
	}
	e, err := plotter.NewYErrorBars(struct {
		plotter.XYs
		plotter.YErrors
	}{xys, errs})
	return xys, e, err
}

// overBudgets draws recall@tokens over the budget, a line for each memory.
func (r *record) overBudgets() (*figure, error) {
	p := newPlot("Evidence shown, by token budget", "share of the evidence messages shown")
	p.X.Label.Text = "max_tokens of a context"
	p.X.Scale = plot.LogScale{}
	var ticks []plot.Tick
	for _, budget := range r.budgets() {
		ticks = append(ticks, plot.Tick{Value: float64(budget), Label: fmt.Sprint(budget)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	for i, c := range r.shown() {
		var points []point
		for _, b := range c.Budgets {
			f := b.Figures[recall]
			points = append(points, point{float64(b.Budget), f.Mean, f.Low, f.High})
		}
		xys, e, err := bars(points)
		if err != nil {
			return nil, err
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		line.LineStyle, dots.GlyphStyle = style(i)
		e.Color = line.Color
		p.Add(line, dots, e)
		p.legend.Add(title(c.Label), line, dots)
	}
	p.X.Min, p.X.Max = float64(ticks[0].Value)*0.9, float64(ticks[len(ticks)-1].Value)*1.1
	p.Y.Min, p.Y.Max = 0, 1
	p.Y.Tick.Marker = shares
	return p, nil
}

// shares are the ticks of a share.
var shares = plot.ConstantTicks([]plot.Tick{{Value: 0, Label: "0"}, {Value: 0.2, Label: "0.2"}, {Value: 0.4, Label: "0.4"},
	{Value: 0.6, Label: "0.6"}, {Value: 0.8, Label: "0.8"}, {Value: 1, Label: "1"}})

// byType draws recall@tokens by the type of question, at the middle budget.
func (r *record) byType() (*figure, error) {
	p := newPlot(fmt.Sprintf("Evidence shown in %d tokens, by type of question", primaryBudget),
		"share of the evidence messages shown")
	columns, names := r.shown(), r.types()
	for i, c := range columns {
		points := make([]point, len(names))
		for j, name := range names {
			f := c.at(primaryBudget).Types[name]
			points[j] = point{float64(j) + 0.8/float64(len(columns))*(float64(i)-float64(len(columns)-1)/2), f.Mean, f.Low, f.High}
		}
		xys, e, err := bars(points)
		if err != nil {
			return nil, err
		}
		dots, err := plotter.NewScatter(xys)
		if err != nil {
			return nil, err
		}
		_, dots.GlyphStyle = style(i)
		e.Color = dots.Color
		p.Add(dots, e)
		p.legend.Add(title(c.Label), dots)
	}
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = typeTitle(name)
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Y.Min, p.Y.Max = 0, 1
	p.Y.Tick.Marker = shares
	return p, nil
}

// costs draws native calls and bytes of a recorded turn, for the memories that call a server.
func (r *record) costs() (*figure, error) {
	p := newPlot("Native calls and kilobytes for each stored turn", "calls, kB")
	columns := slices.DeleteFunc(r.shown(), func(c *columnRecord) bool { return c.Calls == 0 })
	if len(columns) == 0 {
		columns = r.shown()
	}
	calls, bytes, names := make(plotter.Values, len(columns)), make(plotter.Values, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		calls[i], bytes[i], names[i] = c.Calls, c.Bytes/1000, c.Label
	}
	for i, series := range []struct {
		name   string
		values plotter.Values
	}{{"native calls", calls}, {"kB of requests and answers", bytes}} {
		b, err := plotter.NewBarChart(series.values, vg.Points(16))
		if err != nil {
			return nil, err
		}
		b.Color, b.LineStyle.Width, b.Offset = colours[i], 0, vg.Points(16*(float64(i)-0.5))
		p.Add(b)
		p.legend.Add(series.name, b)
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Y.Min = 0
	p.Y.Max = max(1, p.Y.Max*1.1)
	return p, nil
}

// plots are the plots as SVG, by file name.
func (r *record) plots() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, drawn := range map[string]func() (*figure, error){"budgets.svg": r.overBudgets, "types.svg": r.byType,
		"costs.svg": r.costs} {
		p, err := drawn()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		canvas := vgsvg.New(plotWidth+legendWidth, plotHeight)
		all := draw.New(canvas)
		all.SetColor(color.White)
		all.Fill(all.Path())
		p.Draw(draw.Crop(all, 0, -legendWidth, 0, 0))
		p.legend.Draw(draw.Crop(all, plotWidth+vg.Points(6), 0, 0, -vg.Centimeter))
		var b bytes.Buffer
		if _, err := canvas.WriteTo(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}
