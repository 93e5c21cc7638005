package main

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // .svg
)

// caption is under the title of every plot.
const caption = "retrieval of stored messages on LoCoMo; no architecture is ranked here"

// colours are distinguishable for most people.
var colours = []color.RGBA{{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255},
	{0xcc, 0x79, 0xa7, 255}, {0xe6, 0x9f, 0x00, 255}, {0x56, 0xb4, 0xe9, 255}, {0x55, 0x55, 0x55, 255}}

func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title + "\n" + caption
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = color.White
	p.Y.Label.Text = y
	p.Legend.Padding = vg.Points(3)
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
func (r *record) overBudgets() (*plot.Plot, error) {
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
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.5)
		dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2)
		e.Color = line.Color
		p.Add(line, dots, e)
		p.Legend.Add(title(c.Label), line)
	}
	p.X.Min, p.X.Max = float64(ticks[0].Value)*0.9, float64(ticks[len(ticks)-1].Value)*1.1
	p.Y.Min, p.Y.Max = 0, 1.45
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Tick.Marker = shares
	return p, nil
}

// shares are the ticks of a share.
var shares = plot.ConstantTicks([]plot.Tick{{Value: 0, Label: "0"}, {Value: 0.2, Label: "0.2"}, {Value: 0.4, Label: "0.4"},
	{Value: 0.6, Label: "0.6"}, {Value: 0.8, Label: "0.8"}, {Value: 1, Label: "1"}})

// byType draws recall@tokens by the type of question, at the middle budget.
func (r *record) byType() (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("Evidence shown in %d tokens, by type of question", primaryBudget),
		"share of the evidence messages shown")
	columns, names := r.shown(), r.types()
	for i, c := range columns {
		points := make([]point, len(names))
		for j, name := range names {
			f := c.at(primaryBudget).Types[name]
			points[j] = point{float64(j) + 0.09*(float64(i)-float64(len(columns)-1)/2), f.Mean, f.Low, f.High}
		}
		xys, e, err := bars(points)
		if err != nil {
			return nil, err
		}
		dots, err := plotter.NewScatter(xys)
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Shape, dots.Radius = colours[i%len(colours)], draw.CircleGlyph{}, vg.Points(3)
		e.Color = dots.Color
		p.Add(dots, e)
		p.Legend.Add(title(c.Label), dots)
	}
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = typeTitle(name)
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Y.Min, p.Y.Max = 0, 1.45
	p.Y.Tick.Marker = shares
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// costs draws native calls and bytes of a recorded turn.
func (r *record) costs() (*plot.Plot, error) {
	p := newPlot("Native calls and kilobytes for each stored turn", "calls, kB")
	columns := r.shown()
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
		p.Legend.Add(series.name, b)
	}
	p.NominalX(names...)
	p.Y.Min = 0
	p.Y.Max = max(1, p.Y.Max*1.3)
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// plots are the plots as SVG, by file name.
func (r *record) plots() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, draw := range map[string]func() (*plot.Plot, error){"budgets.svg": r.overBudgets, "types.svg": r.byType,
		"costs.svg": r.costs} {
		p, err := draw()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		to, err := p.WriterTo(20*vg.Centimeter, 12*vg.Centimeter, "svg")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var b bytes.Buffer
		if _, err := to.WriteTo(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}
