//go:build load && unix

package loadtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// row has the results of one arm for one operation at one rate.
type row struct {
	Arm       string  `json:"arm"`
	Operation string  `json:"operation"`
	Rate      int     `json:"rate"` // of records and retrievals together, in requests per second
	Requests  uint64  `json:"requests"`
	P50MS     float64 `json:"p50_ms"`
	P99MS     float64 `json:"p99_ms"`
	// P50Ratio and P99Ratio are relative to the first arm's.
	P50Ratio float64 `json:"p50_ratio"`
	P99Ratio float64 `json:"p99_ratio"`
	// Errors counts answers other than 200, and missing answers. First is the text of the first one.
	Errors uint64 `json:"errors"`
	First  string `json:"first_error,omitempty"`
	// HostCores and AllCores are how many cores the arm's hosts and the whole machine used.
	HostCores float64 `json:"host_cores,omitempty"`
	AllCores  float64 `json:"all_cores,omitempty"`
}

// sizes is what an arm has stored.
type sizes struct {
	Arm           string  `json:"arm"`
	Events        int64   `json:"events"`
	BytesPerEvent float64 `json:"bytes_per_event"`
	Ratio         float64 `json:"ratio"`
	// Resident is the memory of the largest host, in bytes.
	Resident int64 `json:"resident"`
	// Filled is the rate at which the first event of each persona was recorded, per second, in batches of 1000.
	Filled float64 `json:"filled_per_s"`
	// Known is the same for the second event, for personas that the slot knows.
	Known float64 `json:"known_per_s"`
}

// report writes load.md, load.rows, load.json and load.svg.
func (l *load) report(arms []*arm) error {
	var rows []row
	for _, a := range arms {
		for _, c := range a.cells {
			for _, op := range []string{opRecord, opRetrieve} {
				r := rowOf(a.name, op, c.rate, c.metrics[op])
				r.HostCores, r.AllCores = c.hostCPU/float64(c.rounds), c.allCPU/float64(c.rounds)
				rows = append(rows, r)
			}
		}
	}
	of := map[[2]any]row{}
	for i := range rows {
		r := &rows[i]
		key := [2]any{r.Operation, r.Rate}
		if r.Arm == arms[0].name {
			of[key] = *r
		}
		r.P50Ratio, r.P99Ratio = r.P50MS/of[key].P50MS, r.P99MS/of[key].P99MS
	}
	var stored []sizes
	for _, a := range arms {
		s := sizes{Arm: a.name, Events: a.events.Load(), Filled: float64(l.personas) / a.filled.Seconds(),
			Known: float64(l.personas) / a.known.Seconds()}
		s.BytesPerEvent = float64(a.stored()-a.before) / float64(s.Events)
		for _, h := range a.hosts {
			s.Resident = max(s.Resident, h.resident())
		}
		stored = append(stored, s)
		stored[len(stored)-1].Ratio = s.BytesPerEvent / stored[0].BytesPerEvent
	}
	text, err := json.MarshalIndent(map[string]any{"personas": l.personas, "seconds_of_each": rounds * l.each.Seconds(),
		"latencies": rows, "stored": stored}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.out, "load.json"), text, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.out, "load.md"), l.table(rows, stored), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.out, "load.rows"), l.short(arms, rows), 0o644); err != nil {
		return err
	}
	if err := draw(filepath.Join(l.out, "load.svg"), arms, rows); err != nil {
		return err
	}
	l.t.Logf("written: %s\n%s", filepath.Join(l.out, "load.md"), l.table(rows, stored))
	return nil
}

func rowOf(arm, op string, rate int, m *vegeta.Metrics) row {
	m.Close()
	r := row{Arm: arm, Operation: op, Rate: rate, Requests: m.Requests, P50MS: ms(m.Latencies.P50),
		P99MS: ms(m.Latencies.P99)}
	for code, n := range m.StatusCodes {
		if code != "200" {
			r.Errors += uint64(n)
		}
	}
	if len(m.Errors) > 0 {
		r.First = m.Errors[0]
	}
	return r
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *load) table(rows []row, stored []sizes) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## Under load\n\nHalf of the requests record, half retrieve, over %d personas; %.0f s for each rate. Requests "+
		"are sent by the clock, however long the answers take. In brackets the ratio to the first store in the same run. A "+
		"store gets no higher rate after one at which requests fail or half of them take more than a second.\n\n"+
		"| | requests/s | sent | p50 ms | p99 ms | errors | cores: hosts | whole machine |\n|---|---|---|---|---|---|---|---|\n",
		l.personas, rounds*l.each.Seconds())
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s, %s | %d | %d | %.2f (%.2f) | %.2f (%.2f) | %d | %.2f | %.2f |\n", r.Arm, r.Operation, r.Rate,
			r.Requests, r.P50MS, r.P50Ratio, r.P99MS, r.P99Ratio, r.Errors, r.HostCores, r.AllCores)
	}
	b.WriteString("\n| | events | bytes an event | memory of a host | batches of 1000: first event of each persona | second |\n" +
		"|---|---|---|---|---|---|\n")
	for _, s := range stored {
		fmt.Fprintf(&b, "| %s | %d | %.0f (%.2f) | %.0f MiB | %.0f/s | %.0f/s |\n", s.Arm, s.Events, s.BytesPerEvent, s.Ratio,
			float64(s.Resident)/(1<<20), s.Filled, s.Known)
	}
	for _, r := range rows {
		if r.First != "" {
			fmt.Fprintf(&b, "\nThe first error of %s, %s, %d/s: %s\n", r.Arm, r.Operation, r.Rate, r.First)
		}
	}
	return b.Bytes()
}

// short has a row for each arm: the highest rate at which 99 of 100 records and retrievals are answered in 100 ms.
func (l *load) short(arms []*arm, rows []row) []byte {
	var b bytes.Buffer
	for _, a := range arms {
		var best, next []row
		for i := 0; i+1 < len(rows); i += 2 { // a record's row and a retrieval's
			switch {
			case rows[i].Arm != a.name:
			case rows[i].P99MS <= 100 && rows[i+1].P99MS <= 100 && rows[i].Errors+rows[i+1].Errors == 0:
				best, next = rows[i:i+2], nil
			case next == nil:
				next = rows[i : i+2]
			}
		}
		fmt.Fprintf(&b, "| %s, %d people: most requests a second with p99 below 100 ms |", a.name, l.personas)
		if best == nil {
			fmt.Fprintf(&b, " fewer than %d | | |\n", rates[0])
			continue
		}
		fmt.Fprintf(&b, " %d: record %.1f, retrieve %.1f ms at p50; hosts use %.1f cores of %.1f |", best[0].Rate, best[0].P50MS,
			best[1].P50MS, best[0].HostCores, best[0].AllCores)
		if next != nil {
			fmt.Fprintf(&b, " at %d: %.0f and %.0f ms, %.1f cores of %.1f |", next[0].Rate, next[0].P50MS, next[1].P50MS,
				next[0].HostCores, next[0].AllCores)
		} else {
			b.WriteString(" |")
		}
		b.WriteString(" |\n")
	}
	return b.Bytes()
}

// draw plots p50 and p99 of records and of retrievals against the rate: one line per arm, p99 dashed.
func draw(path string, arms []*arm, rows []row) error {
	canvas := vgsvg.New(24*vg.Centimeter, 11*vg.Centimeter)
	var panels []*plot.Plot
	for _, op := range []string{opRecord, opRetrieve} {
		p, err := panel(op, arms, rows)
		if err != nil {
			return err
		}
		panels = append(panels, p)
	}
	for _, p := range panels { // the same scale in both
		p.Y.Min = min(panels[0].Y.Min, panels[1].Y.Min)
		p.Y.Max = max(panels[0].Y.Max, panels[1].Y.Max)
	}
	tiles := vgdraw.Tiles{Cols: len(panels), Rows: 1, PadX: 5 * vg.Millimeter}
	for i, area := range plot.Align([][]*plot.Plot{panels}, tiles, vgdraw.New(canvas))[0] {
		panels[i].Draw(area)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return errors.Join(err, file.Close())
}

// panel is the part of the plot about one operation.
func panel(op string, arms []*arm, rows []row) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = op+": p50, and p99 dashed", "requests/s", "ms"
	p.BackgroundColor, p.Legend.Top, p.Legend.Left = color.White, true, true
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	colours := []color.RGBA{{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255}}
	for i, a := range arms {
		var half, most plotter.XYs
		for _, r := range rows {
			if r.Arm == a.name && r.Operation == op {
				half = append(half, plotter.XY{X: float64(r.Rate), Y: max(r.P50MS, 0.01)})
				most = append(most, plotter.XY{X: float64(r.Rate), Y: max(r.P99MS, 0.01)})
			}
		}
		for j, points := range []plotter.XYs{half, most} {
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return nil, err
			}
			line.Color, dots.Color, line.Width = colours[i], colours[i], vg.Points(1.5)
			if j == 0 {
				p.Legend.Add(a.name, line)
			} else {
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
			p.Add(line, dots)
		}
	}
	p.Y.Max *= 4 // room for the legend
	return p, nil
}
