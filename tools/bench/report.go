package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
)

// Line is a line of the table, as text. What, Bar and Verdict are only set in the first line of a row.
type Line struct {
	What, Bar string
	// By is the contestant, Value its figure, Ratio ours divided by it. Allocs is per operation.
	By, Value, Ratio, Allocs string
	// Verdict says whether the bars hold.
	Verdict string
}

// Lines returns the table of a run, without the rows that are only plotted.
func (r *Result) Lines() []Line {
	var list []Line
	for i := range r.Rows {
		if row := &r.Rows[i]; !row.PlotOnly {
			list = append(list, row.lines()...)
		}
	}
	return list
}

func (r *RowResult) lines() []Line {
	var list []Line
	for _, who := range r.By {
		s, ok := r.Value(who)
		if !ok {
			continue
		}
		l := Line{By: who, Value: Figure(s.Center, r.Unit)}
		if !r.Exact {
			l.Value += " ± " + s.PctRangeString()
		}
		if ratio, ok := r.Ratio(who); ok {
			l.Ratio = Factor(ratio.Center) + " ± " + ratio.PctRangeString()
		}
		if last := r.Samples[who][len(r.Samples[who])-1]; r.Allocations {
			l.Allocs = fmt.Sprintf("%.0f, %s", last.allocs, Figure(last.bytes, Bytes))
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		list = []Line{{Value: "not measured"}}
	}
	var bars, verdicts []string
	for _, b := range r.Bars {
		bars = append(bars, b.text(r.Unit))
	}
	for _, v := range r.Verdicts() {
		verdicts = append(verdicts, v.Text(r.Unit))
	}
	list[0].What, list[0].Bar, list[0].Verdict = r.What, strings.Join(bars, "; "), strings.Join(verdicts, "; ")
	return list
}

// text describes the bar in words.
func (b Bar) text(u Unit) string {
	limit := "≤ " + Figure(b.Limit, u)
	switch b.Kind {
	case Ratio:
		limit = "≤ " + Factor(b.Limit) + " " + b.Over
	case Added:
		limit = "adds ≤ " + Figure(b.Limit, u)
	case Allocations:
		limit = fmt.Sprintf("≤ %.0f allocations", b.Limit)
	}
	if b.Note != "" {
		limit += ", " + b.Note
	}
	return limit
}

// Text says whether the bar holds, and if not, by how much it is missed.
func (v Verdict) Text(u Unit) string {
	figure := Figure(v.Seen.Center, u)
	switch v.Bar.Kind {
	case Ratio:
		figure = Factor(v.Seen.Center)
	case Added:
		figure = "+ " + figure
	case Allocations:
		figure = Figure(v.Seen.Center, Count)
	}
	switch {
	case v.Holds:
		return "holds (" + figure + ")"
	case v.Missed && v.Bar.Limit > 0:
		return fmt.Sprintf("missed (%s, %s the bar)", figure, Factor(v.Seen.Center/v.Bar.Limit))
	case v.Missed:
		return "missed (" + figure + ")"
	case math.IsInf(v.Seen.Hi, 0):
		return "too few rounds (" + figure + ")"
	}
	return "within the interval (" + figure + ")"
}

// Figure formats a number with its unit, with three digits: 57.1 ns, 400 KB.
func Figure(v float64, u Unit) string {
	steps, by := []string{"ns", "µs", "ms", "s"}, 1000.0
	switch u {
	case Bytes:
		steps, by = []string{"B", "KB", "MB", "GB"}, 1024
	case Count:
		return fmt.Sprintf("%.0f", v)
	}
	i := 0
	for ; math.Abs(v) >= by && i < len(steps)-1; i++ {
		v /= by
	}
	return digits(v) + " " + steps[i]
}

// Factor formats a ratio.
func Factor(v float64) string { return digits(v) + " ×" }

// digits formats three digits.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == math.Trunc(a) && a < 1000 || a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a < 0.1:
		return fmt.Sprintf("%.3f", v)
	case a < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// About says where and how the run took place.
func (r *Result) About() string {
	m := r.Machine
	text := fmt.Sprintf("%s UTC, %d cores of %s, %s/%s, %s, wazero %s", r.Began.UTC().Format("2006-01-02 15:04"),
		m.Cores, m.CPU, m.OS, m.Arch, m.Go, m.Wazero)
	if r.LoadBefore != "" {
		text += fmt.Sprintf(", load average %s before and %s after", r.LoadBefore, r.LoadAfter)
	}
	return text + fmt.Sprintf(", %d rounds in %.0f s", r.Rounds, r.Ended.Sub(r.Began).Seconds())
}

// level explains the intervals.
const level = "a figure is the median of the rounds, ± the interval in which the true one lies at 95 %; a ratio is " +
	"computed round by round"

// Print writes the table for people to read.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n", r.About(), level)
	if r.Short {
		fmt.Fprintln(w, "a short run: it shows that everything runs, and its figures say nothing")
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, l := range r.Lines() {
		if l.What != "" {
			_ = t.Flush()
			fmt.Fprintf(w, "\n%s\n", l.What)
		}
		if l.Bar != "" {
			fmt.Fprintf(w, "  bar: %s: %s\n", l.Bar, l.Verdict)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", l.By, l.Value, l.Ratio, l.Allocs)
	}
	_ = t.Flush()
	for i := range r.Memory {
		m := &r.Memory[i]
		fmt.Fprintf(w, "\nmemory over %d calls of %s, growth in the second half\n", m.Calls, m.Name)
		for _, l := range m.Lines() {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", l.By, l.Value, l.Ratio, l.Verdict)
		}
		_ = t.Flush()
	}
	return nil
}

// WriteBenchmarks writes every round as a line of a Go benchmark, which benchstat can read:
// BenchmarkEcho/50B/by=bare_wazero 1 96.1 ns/op.
func (r *Result) WriteBenchmarks(out io.Writer) error {
	w := benchfmt.NewWriter(out)
	name := strings.NewReplacer(" ", "_", ",", "")
	for i := range r.Rows {
		row := &r.Rows[i]
		for _, who := range row.By {
			for _, s := range row.Samples[who] {
				values := []benchfmt.Value{{Value: s.value, Unit: string(row.Unit)}}
				if row.Allocations {
					values = append(values, benchfmt.Value{Value: s.allocs, Unit: "allocs/op"})
				}
				line := &benchfmt.Result{Name: benchfmt.Name(name.Replace(row.ID + "/by=" + who)), Iters: 1,
					Values: values}
				if err := w.Write(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
