package main

import (
	"cmp"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // .png
	_ "gonum.org/v1/plot/vg/vgsvg" // .svg
)

// chart is one plot.
type chart struct {
	name, title string
	x, y        axis
	series      []series
}

// axis has a label for each tick. If every is 0 and the scale is not logarithmic, the library places the ticks.
type axis struct {
	label string
	log   bool
	every float64
	text  func(float64) string
}

// series is a line with, if low and high are set, an error bar at each point.
type series struct {
	name   string
	points []point
}

type point struct{ x, y, low, high float64 }

func duration(v float64) string { return Figure(v, Nanoseconds) }
func size(v float64) string     { return Figure(v, Bytes) }
func number3(v float64) string  { return Figure(v, Count) }

// thousands formats bytes for an axis whose ticks are powers of ten.
func thousands(v float64) string {
	units := []string{"B", "kB", "MB", "GB"}
	i := 0
	for ; v >= 1000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return number3(v) + " " + units[i]
}

// drawn returns the plots for which a run has data.
func drawn(r *Result) []chart {
	var list []chart
	for _, c := range []chart{
		{name: "size", title: "Cost of a call against the size of its message", x: axis{"message", true, 0, thousands},
			y: axis{"time of a call", true, 0, duration}},
		{name: "history", title: "Cost of full_history against what is stored",
			x: axis{"turns stored", true, 0, number3}, y: axis{"time of an operation", true, 0, duration}},
	} {
		if c.series = seriesOf(r, c.name); len(c.series) > 0 {
			list = append(list, c)
		}
	}
	memory := chart{name: "memory", title: "Memory of the process over calls", x: axis{"calls", false, 0, number3},
		y: axis{"memory", false, 32 << 20, size}}
	for _, m := range r.Memory {
		resident, heap := series{name: m.Name + ", resident"}, series{name: m.Name + ", Go's heap"}
		for _, p := range m.Points {
			resident.points = append(resident.points, point{x: float64(p.Calls), y: float64(p.Resident)})
			heap.points = append(heap.points, point{x: float64(p.Calls), y: float64(p.Heap)})
		}
		memory.series = append(memory.series, resident, heap)
	}
	if len(memory.series) > 0 {
		list = append(list, memory)
	}
	return list
}

// seriesOf collects the figures of a plot.
func seriesOf(r *Result, name string) []series {
	var list []series
	for i := range r.Rows {
		row := &r.Rows[i]
		for _, who := range row.By {
			at, ok := row.Points[who]
			s, measured := row.Value(who)
			if !ok || !measured || at.Plot != name {
				continue
			}
			j := slices.IndexFunc(list, func(s series) bool { return s.name == at.Series })
			if j < 0 {
				list, j = append(list, series{name: at.Series}), len(list)
			}
			list[j].points = append(list[j].points, point{at.X, s.Center, s.Lo, s.Hi})
		}
	}
	for _, s := range list {
		slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	}
	return list
}

// plots draws every chart as PNG and as SVG.
func plots(r *Result, folder string) error {
	for _, c := range drawn(r) {
		p, err := c.plot()
		if err != nil {
			return err
		}
		for _, format := range []string{".png", ".svg"} {
			if err := p.Save(20*vg.Centimeter, 11*vg.Centimeter, filepath.Join(folder, c.name+format)); err != nil {
				return err
			}
		}
	}
	return nil
}

// colours are distinguishable for most people.
var colours = []color.RGBA{{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255},
	{0xcc, 0x79, 0xa7, 255}, {0x56, 0xb4, 0xe9, 255}, {0x55, 0x55, 0x55, 255}}

func (c chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.title
	p.BackgroundColor = color.White
	c.x.set(&p.X)
	c.y.set(&p.Y)
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = vg.Points(3), vg.Points(6), -vg.Points(4)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe4}, color.Gray{0xe4}
	p.Add(grid)
	top := math.Inf(-1)
	for i, s := range c.series {
		xys := make(plotter.XYs, len(s.points))
		bars := plotter.YErrors{}
		for j, at := range s.points {
			xys[j].X, xys[j].Y = at.x, at.y
			top = max(top, at.y)
			if at.low > 0 && !math.IsInf(at.high, 0) {
				bars = append(bars, struct{ Low, High float64 }{at.y - at.low, at.high - at.y})
			}
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.5)
		dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, vg.Points(2)
		p.Add(line)
		if len(s.points) < 30 {
			p.Add(dots)
		}
		if len(bars) == len(xys) {
			e, err := plotter.NewYErrorBars(struct {
				plotter.XYs
				plotter.YErrors
			}{xys, bars})
			if err != nil {
				return nil, err
			}
			e.Color = line.Color
			p.Add(e)
		}
		p.Legend.Add(s.name, line)
	}
	if c.x.log { // room for the last tick's label
		p.X.Max *= 1.5
	} else {
		p.X.Max *= 1.04
	}
	if !c.y.log {
		p.Y.Min, p.Y.Max = 0, top*1.5 // room for the legend
	} else {
		p.Y.Max = top * 40
	}
	return p, nil
}

func (a axis) set(to *plot.Axis) {
	to.Label.Text = a.label
	if a.log {
		to.Scale = plot.LogScale{}
	}
	to.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		var ticks []plot.Tick
		switch {
		case a.every > 0:
			for v := low; v <= high; v += a.every {
				ticks = append(ticks, plot.Tick{Value: v, Label: " "})
			}
		case !a.log:
			ticks = plot.DefaultTicks{}.Ticks(low, high)
		default:
			for v := math.Pow(10, math.Floor(math.Log10(low))); v <= high*1.0001; v *= 10 {
				if v >= low*0.9999 {
					ticks = append(ticks, plot.Tick{Value: v, Label: " "})
				}
			}
		}
		for i := range ticks {
			if ticks[i].Label != "" {
				ticks[i].Label = a.text(ticks[i].Value)
			}
		}
		return ticks
	})
}
