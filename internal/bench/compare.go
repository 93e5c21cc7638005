package bench

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// comparison is what two runs are held against each other by. A ratio of two who took turns stays when the machine's speed does not, and so does a figure in
// reference loops; figures themselves are not compared.
type comparison struct {
	row  *RowResult
	by   string
	kind string
	seen Spread
	// bold: a bar bounds it.
	bold bool
}

// What is compared.
const (
	kindRatio  = "ratio"
	kindLoops  = "figure, by the reference loop"
	kindFigure = "figure"
)

// comparisons are of each row its ratios, or where it has none its figure.
func (r *Result) comparisons() []comparison {
	var list []comparison
	for i := range r.Rows {
		row := &r.Rows[i]
		if !row.Exact {
			before := len(list)
			for _, who := range row.By {
				if s, ok := row.Ratio(who); ok {
					list = append(list, comparison{row, who, kindRatio, s, row.bounds(who)})
				}
			}
			if len(list) > before {
				continue
			}
			if s, ok := row.Loop(row.Ours()); ok && row.Unit == Nanoseconds {
				list = append(list, comparison{row, row.Ours(), kindLoops, s, row.bounds("")})
				continue
			}
		}
		if s, ok := row.Value(row.Ours()); ok {
			list = append(list, comparison{row, row.Ours(), kindFigure, s, row.bounds("")})
		}
	}
	return list
}

// bounds tells whether a bar is about the ratio to somebody, "" for the figure.
func (r *RowResult) bounds(who string) bool {
	for _, b := range r.Bars {
		if b.Over == who {
			return true
		}
	}
	return false
}

// settle computes, when everything has been measured, how much lies outside of the spreads.
func (r *Result) settle() {
	n := len(r.comparisons())
	for i := range r.Rows {
		r.Rows[i].Outside = outside(r.Rows[i].measured(), n)
	}
}

// Level says what the spreads are.
func (r *Result) Level() string {
	n, rounds, out := len(r.comparisons()), 0, 0
	for i := range r.Rows {
		if m := r.Rows[i].measured(); m > rounds {
			rounds, out = m, r.Rows[i].Outside
		}
	}
	if out < 0 {
		return fmt.Sprintf("%d rounds are too few for a spread of %d comparisons at once", rounds, n)
	}
	what := "the least to the most"
	if out > 0 {
		what = fmt.Sprintf("the least to the most without %d at either end", out)
	}
	return fmt.Sprintf("a spread is %s of %d rounds: the median lies in it at %.2f %%, and two runs of the same disagree on any of %d comparisons with a probability of at most %.2g %%",
		what, rounds, 100*(1-2*below(rounds, out)), n, 100*math.Min(1, float64(n)*apart(rounds, out)))
}

// Difference is a comparison of two runs.
type Difference struct {
	Row, By, Kind string
	Then, Now     Spread
	Unit          Unit
	Agree, Bold   bool
}

// Compare puts two runs side by side. They agree where their spreads overlap.
func Compare(then, now *Result) []Difference {
	type key struct{ row, by, kind string }
	before := map[key]comparison{}
	for _, c := range then.comparisons() {
		before[key{c.row.ID, c.by, c.kind}] = c
	}
	var list []Difference
	for _, c := range now.comparisons() {
		if old, ok := before[key{c.row.ID, c.by, c.kind}]; ok {
			list = append(list, Difference{Row: c.row.ID, By: c.by, Kind: c.kind, Then: old.seen, Now: c.seen, Unit: c.row.Unit, Agree: old.seen.overlaps(c.seen), Bold: c.bold})
		}
	}
	return list
}

// PrintComparison writes what two runs do not agree on, and how many comparisons they agree on.
func PrintComparison(w io.Writer, then, now *Result) error {
	list := Compare(then, now)
	fmt.Fprintf(w, "\nbeside the run of %s\n", then.About())
	if then.Loop > 0 && now.Loop > 0 {
		fmt.Fprintf(w, "the reference loop takes %s the time that it took then\n", Factor(now.Loop/then.Loop))
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	agree := 0
	for _, d := range list {
		if d.Agree {
			agree++
			continue
		}
		write := func(s Spread) string {
			if d.Kind == kindFigure {
				return Figure(s.Center, d.Unit) + " " + s.Percent()
			}
			return Factor(s.Center) + " " + s.Percent()
		}
		mark := ""
		if d.Bold {
			mark = "what a bar bounds"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\tthen %s\tnow %s\t%s\n", d.Row, d.By, d.Kind, write(d.Then), write(d.Now), mark)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the runs agree within their spreads on %d of %d comparisons\n", agree, len(list))
	return err
}
