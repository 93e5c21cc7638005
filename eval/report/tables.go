package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/score"
)

type table struct {
	Title, Note string
	Head        []string
	Rows        []row
}

type row struct {
	Name      string
	Reference bool
	Cells     []cell
}

type cell struct{ Text, Note string }

// overall is the table for one budget: one row per column, references last.
func overall(m *score.Metrics, budget int64) table {
	entries, without := measured(m, budget)
	t := table{Title: budgetName(budget), Head: []string{"memory"},
		Note: strings.Join(append([]string{"Mean over probes, with the 95 % interval over clusters.", evidenceLevel(m)}, without...), " ")}
	for _, e := range entries {
		t.Head = append(t.Head, e.Name)
	}
	columns := slices.Clone(m.Columns)
	slices.SortStableFunc(columns, func(a, b score.Column) int {
		return cmp.Compare(boolean(a.Kind == "reference"), boolean(b.Kind == "reference"))
	})
	for _, c := range columns {
		i := slices.IndexFunc(c.Budgets, func(b score.Budgeted) bool { return b.Budget == budget })
		if i < 0 {
			continue
		}
		r := row{Name: c.Label, Reference: c.Kind == "reference"}
		if c.Partial {
			r.Name += " (partial)"
		}
		for _, e := range entries {
			r.Cells = append(r.Cells, figureCell(c.Budgets[i].Overall[e.Name], e))
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// measured returns the headline metrics of what memory shows that any column has at a budget, and a sentence for each
// that none has.
func measured(m *score.Metrics, budget int64) (entries []score.Entry, without []string) {
	for _, e := range evidence(m) {
		var reason string
		has := false
		for i := range m.Columns {
			if b := atBudget(&m.Columns[i], budget); b != nil {
				f := b.Overall[e.Name]
				has = has || f.Value != nil
				if m.Columns[i].Kind != "reference" {
					reason = cmp.Or(reason, f.Reason)
				}
			}
		}
		if has {
			entries = append(entries, e)
		} else {
			without = append(without, fmt.Sprintf("Without %s: %s.", e.Name, cmp.Or(reason, "no column has it")))
		}
	}
	return entries, without
}

// evidenceLevel says at which level evidence was counted, and what is known about the source's annotations.
func evidenceLevel(m *score.Metrics) string {
	b := m.Run.Pack.Builder
	level := "Evidence was counted by event, as the pack has them."
	if group := b.Options["group"]; group != "" {
		level = fmt.Sprintf("Evidence was counted by %s (group=%s).", group, group)
		if group == "pair" {
			level += " Showing the neighbour of the evidence counts, too: figures are higher than by message."
		}
	}
	if b.Name == "locomo" {
		level += " Its annotation is incomplete, so recall is a lower bound; captions of images are part of the text."
	}
	return level
}

// auditTables compare the headline figures with and without the probes that an audit excludes.
func auditTables(m *score.Metrics) []table {
	if m.Audit == nil {
		return nil
	}
	var list []table
	entries := headline(m)
	for _, budget := range m.Keys.Budgets {
		t := table{Title: "Before and after the audit, " + budgetName(budget), Head: []string{"memory"},
			Note: fmt.Sprintf("%s checked %d probes and found %d wrong keys. Above: without these probes; below: "+
				"with all.", m.Audit.By, m.Audit.Checked,
				len(m.Audit.Excluded))}
		for _, e := range entries {
			t.Head = append(t.Head, e.Name)
		}
		for _, u := range m.Audit.Before {
			c := slices.IndexFunc(m.Columns, func(c score.Column) bool { return c.Label == u.Label })
			if c < 0 || u.Budget != budget {
				continue
			}
			b := slices.IndexFunc(m.Columns[c].Budgets, func(b score.Budgeted) bool { return b.Budget == budget })
			if b < 0 {
				continue
			}
			r := row{Name: u.Label, Reference: m.Columns[c].Kind == "reference"}
			for _, e := range entries {
				r.Cells = append(r.Cells, cell{figureCell(m.Columns[c].Budgets[b].Overall[e.Name], e).Text,
					figureCell(u.Figures[e.Name], e).Text})
			}
			t.Rows = append(t.Rows, r)
		}
		list = append(list, t)
	}
	return list
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// evidence returns the headline metrics of what memory shows, which explain behaviour.
func evidence(m *score.Metrics) []score.Entry {
	return slices.DeleteFunc(headline(m), func(e score.Entry) bool { return e.Group == behaviourGroup })
}

func headline(m *score.Metrics) []score.Entry {
	return slices.DeleteFunc(slices.Clone(m.Catalogue), func(e score.Entry) bool { return !e.Headline })
}

func figureCell(f score.Figure, e score.Entry) cell {
	if f.Value == nil {
		return cell{"–", f.Reason}
	}
	c := cell{Text: value(f.Value.Mean, e.Unit)}
	if f.Value.Clusters > 1 {
		c.Note = value(f.Value.Low, e.Unit) + " to " + value(f.Value.High, e.Unit)
	}
	if f.Failed > 0 {
		c.Note += fmt.Sprintf(", %d failed and count as the worst", f.Failed)
	}
	if f.Missing > 0 {
		c.Note += fmt.Sprintf(", %d missing", f.Missing)
	}
	if f.Bounds != nil {
		c.Note += fmt.Sprintf(": between %s and %s", value(f.Bounds.Worst, e.Unit), value(f.Bounds.Best, e.Unit))
	}
	c.Note = strings.TrimPrefix(c.Note, ", ")
	return c
}

// byLabel returns the tables for one budget, one per headline metric of what a context shows.
func byLabel(m *score.Metrics, budget int64) []table {
	var list []table
	for _, e := range headline(m) {
		if t := labelTable(m, e, budget); len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// labelTable has one metric at one budget: labels down, columns across. It has no rows for a metric that is not of what
// a context shows.
func labelTable(m *score.Metrics, e score.Entry, budget int64) table {
	t := table{Title: e.Name + ", " + budgetName(budget), Note: e.What + ". " + evidenceLevel(m), Head: []string{"label"}}
	if !strings.HasPrefix(e.Group, "budgeted") && e.Group != "answer" {
		return t
	}
	rows := map[string]*row{}
	var order []string
	for i := range m.Columns {
		b := atBudget(&m.Columns[i], budget)
		if b == nil {
			continue
		}
		t.Head = append(t.Head, m.Columns[i].Label)
		for _, s := range b.ByLabel {
			r := rows[s.Name]
			if r == nil {
				r = &row{Name: fmt.Sprintf("%s (%d)", s.Name, s.Probes)}
				rows[s.Name], order = r, append(order, s.Name)
			}
			for len(r.Cells) < len(t.Head)-2 {
				r.Cells = append(r.Cells, cell{Text: "–"})
			}
			r.Cells = append(r.Cells, figureCell(s.Figures[e.Name], e))
		}
	}
	for _, name := range order {
		t.Rows = append(t.Rows, *rows[name])
	}
	return t
}

// byType is the table of a metric by label, at the sealed budget or else the first one with a limit.
func byType(m *score.Metrics, e score.Entry) table {
	budget := append(limited(m), m.Keys.Budgets...)[0]
	if m.Primary != nil {
		budget = m.Primary.Budget
	}
	return labelTable(m, e, budget)
}

// judgedTable has the judge's verdicts, corrected by its own errors. Without a judge it has no rows.
func judgedTable(v *model.Verdicts) table {
	t := table{Title: "Answers that are right", Head: []string{"memory", "budget", "answers", "judged", "false accepts",
		"false rejects", "corrected", "unclipped", "says that nothing is known"}}
	if v == nil {
		return t
	}
	t.Note = "Judged by " + cmp.Or(v.Model, "nobody") + "; corrected on " + v.CorrectedOn + "."
	if v.Exact > 0 {
		t.Note += fmt.Sprintf(" %d answers chose one of a question's options, and were compared with it.", v.Exact)
	}
	t.Note += " The last column is of questions whose answer was never said; they are no part of the others."
	for _, s := range v.Errors {
		t.Note += fmt.Sprintf(" %s: %d of %d accepted%s.", s.Sort, s.Accepted, s.Items, noVerdict(s.Missing))
	}
	for _, a := range v.Agreement {
		t.Note += fmt.Sprintf(" %s and %s agree on %d of %d answers", a.A, a.B, a.Agreed, a.Items)
		if a.Kappa != nil {
			t.Note += fmt.Sprintf(" (kappa %.2f)", *a.Kappa)
		}
		t.Note += "."
	}
	for _, p := range v.Providers {
		r := row{Name: p.Label, Cells: []cell{{Text: strconv.FormatInt(p.Budget, 10)},
			{Text: strconv.Itoa(p.Answers), Note: missing(p.Missing)}}}
		if p.Answers == 0 { // without verdicts there is no rate, rather than a rate of 0
			for len(r.Cells) < len(t.Head)-2 {
				r.Cells = append(r.Cells, cell{Text: "–"})
			}
			r.Cells = append(r.Cells, abstained(&p))
			t.Rows = append(t.Rows, r)
			continue
		}
		r.Cells = append(r.Cells, cell{Text: value(p.Rate.Judged, "share")},
			cell{Text: value(p.Rate.FalseAccepts, "share")}, cell{Text: value(p.Rate.FalseRejects, "share")})
		if p.Rate.Identifiable {
			r.Cells = append(r.Cells, cell{value(p.Rate.Clipped, "share"), value(p.Rate.Low, "share") + " to " +
				value(p.Rate.High, "share")}, cell{Text: value(p.Rate.Rate, "share")})
		} else {
			r.Cells = append(r.Cells, cell{Text: "not identifiable"}, cell{Text: "–"})
		}
		r.Cells = append(r.Cells, abstained(&p))
		t.Rows = append(t.Rows, r)
	}
	return t
}

func abstained(p *model.Judged) cell {
	if p.Abstained == nil {
		return cell{Text: "–", Note: missing(p.AbstainedMissing)}
	}
	note := fmt.Sprintf("%s to %s, of %d", value(p.Abstained.Low, "share"), value(p.Abstained.High, "share"), p.Abstained.N)
	if p.AbstainedMissing > 0 {
		note += ", " + missing(p.AbstainedMissing)
	}
	return cell{Text: value(p.Abstained.Mean, "share"), Note: note}
}

// judgedCompared compares the providers with the reference on judged accuracy, on the same questions.
func judgedCompared(v *model.Verdicts) table {
	t := table{Title: "Answers that are right, against a reference", Head: []string{"memory", "budget", "against", "difference",
		"p after Holm", "verdict"}, Note: "As judged, question by question; replicates are averaged."}
	if v == nil {
		return t
	}
	for _, family := range v.Compared {
		for _, c := range family.Comparisons {
			difference := cell{Text: signed(c.Difference.Mean), Note: signed(c.Difference.Low) + " to " + signed(c.Difference.High)}
			if n := c.MissingA + c.MissingB; n > 0 {
				difference.Note += fmt.Sprintf(", %d missing: between %s and %s", n, signed(c.Worst), signed(c.Best))
			}
			t.Rows = append(t.Rows, row{Name: c.Label, Cells: []cell{{Text: strconv.FormatInt(family.Budget, 10)},
				{Text: family.Reference}, difference, {Text: number(c.Adjusted)}, {Text: string(c.Verdict)}}})
		}
	}
	return t
}

// judgedByLabel has the judge's corrected rates by the label of a probe.
func judgedByLabel(v *model.Verdicts) []table {
	if v == nil {
		return nil
	}
	var list []table
	at := map[int64]int{}
	for _, p := range v.Providers {
		i, there := at[p.Budget]
		if !there {
			i = len(list)
			at[p.Budget] = i
			list = append(list, table{Title: "Answers that are right, by label, " + budgetName(p.Budget),
				Note: "Corrected rate, unclipped; judged rate below.",
				Head: []string{"label"}})
		}
		t := &list[i]
		t.Head = append(t.Head, p.Label)
		for _, l := range p.ByLabel {
			n := slices.IndexFunc(t.Rows, func(r row) bool { return r.Name == l.Label })
			if n < 0 {
				n = len(t.Rows)
				t.Rows = append(t.Rows, row{Name: l.Label})
			}
			for len(t.Rows[n].Cells) < len(t.Head)-2 {
				t.Rows[n].Cells = append(t.Rows[n].Cells, cell{Text: "–"})
			}
			c := cell{"not identifiable", fmt.Sprintf("judged %s of %d", value(l.Rate.Judged, "share"), l.Answers)}
			if l.Rate.Identifiable {
				c.Text = value(l.Rate.Rate, "share")
			}
			t.Rows[n].Cells = append(t.Rows[n].Cells, c)
		}
	}
	for i := range list {
		for n := range list[i].Rows {
			r := &list[i].Rows[n]
			for len(r.Cells) < len(list[i].Head)-1 {
				r.Cells = append(r.Cells, cell{Text: "–"})
			}
		}
	}
	return list
}

// noVerdict says for how many calibration items the judge answered neither yes nor no.
func noVerdict(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d without a verdict", n)
}

func missing(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d missing", n)
}

// modules describes what served each column, from the manifests.
func modules(m *score.Metrics) table {
	t := table{Title: "What served", Head: []string{"memory", "provider", "kind", "module", "sha256", "configuration",
		"contract", "smokes"}}
	for _, c := range m.Columns {
		if c.Module == nil {
			continue
		}
		var smokes []string
		for _, s := range c.Smokes {
			smokes = append(smokes, s.Name+": "+s.Verdict)
		}
		t.Rows = append(t.Rows, row{Name: c.Label,
			Cells: []cell{{Text: c.Provider}, {Text: c.Kind}, {Text: c.Module.Name + " " + c.Module.Version},
				{Text: short(c.Module.SHA256)},
				{Text: short(c.Module.ConfigHash)}, {Text: c.Module.ABI}, {Text: strings.Join(smokes, ", ")}}})
	}
	return t
}
