package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Line is a line of the table, as text: what it is about and its bar stand in the first of a row only.
type Line struct {
	What, Bar string
	// By is who, Value their figure, Ratio ours divided by it. Allocs is per operation.
	By, Value, Ratio, Allocs string
	// Verdict is what became of the bars, in the first line of a row.
	Verdict string
}

// Lines are the table of a run, without what stands in plots only.
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
		l := Line{By: who, Value: Figure(s.Center, r.Unit) + " " + s.Percent()}
		if r.Unit == Count {
			l.Value = Figure(s.Center, r.Unit)
		}
		if ratio, ok := r.Ratio(who); ok && r.Unit != Count {
			l.Ratio = Factor(ratio.Center) + " " + ratio.Percent()
		}
		if c := r.Cells[who]; r.Allocations {
			l.Allocs = fmt.Sprintf("%.0f, %s", c.Allocs, Figure(c.Bytes, Bytes))
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		list = []Line{{By: "nobody", Value: "not measured"}}
	}
	list[0].What = r.What
	var bars, verdicts []string
	for _, b := range r.Bars {
		bars = append(bars, b.text(r.Unit))
	}
	for _, v := range r.Verdicts() {
		verdicts = append(verdicts, v.Text(r.Unit))
	}
	list[0].Bar, list[0].Verdict = strings.Join(bars, "; "), strings.Join(verdicts, "; ")
	return list
}

// text is the bar in words.
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

// Text says whether the bar holds, and by how much it is missed.
func (v Verdict) Text(u Unit) string {
	seen := ""
	switch v.Bar.Kind {
	case Ratio:
		seen = Factor(v.Seen.Center)
	case Added:
		seen = "+ " + Figure(v.Seen.Center, u)
		if v.Seen.Center < 0 {
			seen = "- " + Figure(-v.Seen.Center, u)
		}
	case AtMost:
		seen = Figure(v.Seen.Center, u)
	case Allocations:
		seen = fmt.Sprintf("%.0f", v.Seen.Center)
	}
	switch {
	case v.Holds:
		return "holds (" + seen + ")"
	case v.Missed && v.Bar.Limit > 0:
		return fmt.Sprintf("missed (%s, %s the bar)", seen, Factor(v.Seen.Center/v.Bar.Limit))
	case v.Missed:
		return "missed (" + seen + ")"
	case math.IsInf(v.Seen.Hi, 0):
		return "too few rounds (" + seen + ")"
	}
	return "within the spread (" + seen + ")"
}

// Figure writes a number with its unit.
func Figure(v float64, u Unit) string {
	steps := map[Unit][]string{Nanoseconds: {"ns", "µs", "ms", "s"}, Bytes: {"B", "KB", "MB", "GB"}}[u]
	if steps == nil {
		return fmt.Sprintf("%.0f", v)
	}
	by := 1000.0
	if u == Bytes {
		by = 1024
	}
	i := 0
	for ; math.Abs(v) >= by && i < len(steps)-1; i++ {
		v /= by
	}
	return digits(v) + " " + steps[i]
}

// Factor writes a ratio.
func Factor(v float64) string { return digits(v) + " ×" }

// digits gives three of them.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == math.Trunc(a) && a < 1000:
		return fmt.Sprintf("%.0f", v)
	case a < 0.1:
		return fmt.Sprintf("%.3f", v)
	case a < 10:
		return fmt.Sprintf("%.2f", v)
	case a < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// About is where and how the run was, in a sentence.
func (r *Result) About() string {
	m := r.Machine
	where := fmt.Sprintf("%d cores", m.Cores)
	if m.CPU != "" {
		where += " of " + m.CPU
	}
	where += fmt.Sprintf(", %s/%s, %s", m.OS, m.Arch, m.Go)
	if m.Wazero != "" {
		where += ", wazero " + m.Wazero
	}
	text := fmt.Sprintf("%s UTC, %s", r.Began.Format("2006-01-02 15:04"), where)
	if r.LoadBefore != "" {
		text += fmt.Sprintf(", load average %s before and %s after", r.LoadBefore, r.LoadAfter)
	}
	return text + fmt.Sprintf(", %d rounds in %.0f s", r.Rounds, r.Seconds)
}

// Print writes the table for people to read.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintln(w, r.About())
	if len(r.Rows) > 0 {
		fmt.Fprintln(w, r.Level())
	}
	if r.Short {
		fmt.Fprintln(w, "a short run: it shows that everything runs, and its figures say nothing")
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.PlotOnly {
			continue
		}
		for j, l := range row.lines() {
			if j == 0 {
				_ = t.Flush()
				fmt.Fprintf(w, "\n%s\n", l.What)
				if l.Bar != "" {
					fmt.Fprintf(w, "  bar: %s: %s\n", l.Bar, l.Verdict)
				}
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", l.By, l.Value, l.Ratio, l.Allocs)
		}
		_ = t.Flush()
		for _, who := range row.By {
			if why := row.Missing[who]; why != "" {
				fmt.Fprintf(w, "  %s: not measured: %s\n", who, why)
			}
		}
	}
	for i := range r.Memory {
		m := &r.Memory[i]
		fmt.Fprintf(w, "\nmemory over %d calls of %s, slope of the second half\n", m.Calls, m.Name)
		for _, l := range m.Lines() {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", l.By, l.Value, l.Ratio, l.Verdict)
		}
		_ = t.Flush()
	}
	for _, p := range r.Profiles {
		fmt.Fprintf(w, "\nprofile of %s (%d samples)\n", p.Name, p.Samples)
		for _, l := range p.Lines() {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", l[0], l[1], l[2], l[3])
		}
		_ = t.Flush()
	}
	return nil
}

// Lines put both lists side by side: a function that the processor was in and its share, and one that was being called and its share.
func (p *Profile) Lines() [][4]string {
	list := make([][4]string, max(len(p.Flat), len(p.Cum)))
	for i, l := range p.Flat {
		list[i][0], list[i][1] = l.Function, fmt.Sprintf("%.1f %%", l.Flat)
	}
	for i, l := range p.Cum {
		list[i][2], list[i][3] = l.Function, fmt.Sprintf("%.1f %%", l.Cum)
	}
	return list
}

// Lines are what became of the memory: Value is how much there was at the end, Ratio the slope.
func (m *MemoryRun) Lines() []Line {
	var list []Line
	if len(m.Points) == 0 {
		return nil
	}
	last := m.Points[len(m.Points)-1]
	for _, k := range []struct {
		name string
		of   func(MemoryPoint) int64
	}{{"resident, files not counted", ResidentOf}, {"Go's heap", HeapOf}} {
		if k.of(last) == 0 {
			continue
		}
		s := m.Slope(k.of)
		verdict := "not flat"
		if s.Flat() {
			verdict = "flat"
		}
		list = append(list, Line{By: k.name, Value: Figure(float64(k.of(last)), Bytes), Ratio: s.String(), Verdict: verdict})
	}
	return list
}
