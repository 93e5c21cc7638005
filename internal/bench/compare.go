package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Difference is a figure of two runs.
type Difference struct {
	Row, By string
	// Kind is "figure" or "ratio".
	Kind        string
	Then, Now   Spread
	Unit        Unit
	Agree, Bold bool
}

// Compare puts two runs side by side. Two figures agree when their intervals overlap. Bold are those that a bar bounds.
func Compare(then, now *Result) []Difference {
	var list []Difference
	before := map[string]*RowResult{}
	for i := range then.Rows {
		before[then.Rows[i].ID] = &then.Rows[i]
	}
	for i := range now.Rows {
		r := &now.Rows[i]
		old := before[r.ID]
		if old == nil {
			continue
		}
		bounded := map[string]bool{}
		for _, b := range r.Bars {
			bounded[b.Over] = true
		}
		add := func(who, kind string, bold bool, of func(*RowResult) (Spread, bool)) {
			a, ok1 := of(old)
			b, ok2 := of(r)
			if ok1 && ok2 {
				list = append(list, Difference{Row: r.ID, By: who, Kind: kind, Then: a, Now: b, Unit: r.Unit, Agree: a.overlaps(b), Bold: bold})
			}
		}
		for _, who := range r.By {
			add(who, "figure", who == r.Ours(), func(r *RowResult) (Spread, bool) { return r.Value(who) })
			add(who, "ratio", bounded[who], func(r *RowResult) (Spread, bool) { return r.Ratio(who) })
		}
	}
	return list
}

// PrintComparison writes what two runs do not agree on, and how many figures they agree on.
func PrintComparison(w io.Writer, then, now *Result) error {
	list := Compare(then, now)
	fmt.Fprintf(w, "\nbeside the run of %s\n", then.About())
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	agree, of := map[string]int{}, map[string]int{}
	for _, d := range list {
		of[d.Kind]++
		if d.Agree {
			agree[d.Kind]++
			continue
		}
		write := func(s Spread) string {
			if d.Kind == "ratio" {
				return Factor(s.Center) + " " + s.Percent()
			}
			return Figure(s.Center, d.Unit) + " " + s.Percent()
		}
		mark := ""
		if d.Bold {
			mark = "what the row is about"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\tthen %s\tnow %s\t%s\n", d.Row, d.By, d.Kind, write(d.Then), write(d.Now), mark)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the runs agree within their spreads on %d of %d ratios and %d of %d figures\n", agree["ratio"], of["ratio"], agree["figure"], of["figure"])
	return err
}
