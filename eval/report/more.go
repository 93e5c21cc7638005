package report

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/score"
)

// more returns the tables below the figures: the figures without the probes that were asked while memory was pending, the
// figures by speaker, and errors by class.
func more(m *score.Metrics) []table {
	var list []table
	for _, budget := range m.Keys.Budgets {
		for _, t := range []table{withoutPending(m, budget), bySpeaker(m, budget)} {
			if len(t.Rows) > 0 {
				list = append(list, t)
			}
		}
	}
	if t := errorTable(m); len(t.Rows) > 0 {
		list = append(list, t)
	}
	return list
}

// atBudget returns a column's figures at one budget; nil if it was not used.
func atBudget(c *score.Column, budget int64) *score.Budgeted {
	i := slices.IndexFunc(c.Budgets, func(b score.Budgeted) bool { return b.Budget == budget })
	if i < 0 {
		return nil
	}
	return &c.Budgets[i]
}

func withoutPending(m *score.Metrics, budget int64) table {
	entries := headline(m)
	t := table{Title: "Without what was asked while memory was pending, " + budgetName(budget),
		Head: []string{"memory"},
		Note: "The tables above hold these probes, too."}
	for _, e := range entries {
		t.Head = append(t.Head, e.Name)
	}
	for i := range m.Columns {
		b := atBudget(&m.Columns[i], budget)
		if b == nil || b.WithoutPending == nil {
			continue
		}
		r := row{Name: m.Columns[i].Label}
		for _, e := range entries {
			r.Cells = append(r.Cells, figureCell(b.WithoutPending[e.Name], e))
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// bySpeaker shows the first headline metric by speaker of the evidence, if the pack names speakers.
func bySpeaker(m *score.Metrics, budget int64) table {
	e := evidence(m)[0]
	t := table{Title: e.Name + " by who said the evidence, " + budgetName(budget), Note: e.What,
		Head: []string{"speaker"}}
	var columns []*score.Budgeted
	var names []string
	for i := range m.Columns {
		b := atBudget(&m.Columns[i], budget)
		if b == nil || len(b.BySpeaker) == 0 {
			continue
		}
		columns, t.Head = append(columns, b), append(t.Head, m.Columns[i].Label)
		for _, s := range b.BySpeaker {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	const most = 20 // limit on speakers: a pack may have thousands
	for _, name := range names[:min(len(names), most)] {
		r := row{Name: name}
		for _, b := range columns {
			at := slices.IndexFunc(b.BySpeaker, func(s score.Slice) bool { return s.Name == name })
			c := cell{Text: "–"}
			if at >= 0 {
				c = figureCell(b.BySpeaker[at].Figures[e.Name], e)
				r.Name = fmt.Sprintf("%s (%d)", name, b.BySpeaker[at].Probes)
			}
			r.Cells = append(r.Cells, c)
		}
		t.Rows = append(t.Rows, r)
	}
	if len(names) > most {
		t.Note += fmt.Sprintf(" The first %d of %d speakers; metrics.json has all.", most, len(names))
	}
	return t
}

// errorTable counts what failed, by class.
func errorTable(m *score.Metrics) table {
	t := table{Title: "What failed, by class", Head: []string{"memory", "retrievals", "never asked", "writes",
		"agent's answers"},
		Note: "An error is no empty result: the probe counts as the worst, and every verdict is held against both extremes."}
	for i := range m.Columns {
		c := &m.Columns[i]
		failed, missing := map[string]int{}, 0
		for _, b := range c.Budgets {
			missing += b.Missing
			for _, e := range b.Errors {
				failed[e.Name] += e.Count
			}
		}
		var agent []score.Count
		if c.Agent != nil {
			agent = c.Agent.Errors
		}
		if len(failed)+missing+len(c.WriteErrs)+len(agent) == 0 {
			continue
		}
		var classes []string
		for name := range failed {
			classes = append(classes, name)
		}
		slices.Sort(classes)
		var retrievals []score.Count
		for _, name := range classes {
			retrievals = append(retrievals, score.Count{Name: name, Count: failed[name]})
		}
		t.Rows = append(t.Rows, row{Name: c.Label,
			Cells: []cell{{Text: classCounts(retrievals)}, {Text: strconv.Itoa(missing)},
				{Text: classCounts(c.WriteErrs)}, {Text: classCounts(agent)}}})
	}
	return t
}

func classCounts(list []score.Count) string {
	if len(list) == 0 {
		return "0"
	}
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.Count))
	}
	return strings.Join(parts, ", ")
}

// models lists the models that answered, played and judged: the same for every memory.
func models(l *lab.Lab) []fact {
	var list []fact
	add := func(name string, m *lab.Model, template string) {
		list = append(list, fact{name, fmt.Sprintf("%s, temperature %g, seed %d, template sha256 %s", m.Model,
			m.Temperature, l.Seed,
			short(fmt.Sprintf("%x", sha256.Sum256([]byte(template)))))})
	}
	if l.Agent != nil {
		add("agent", &l.Agent.Model, l.Agent.Template)
	}
	if s := l.Simulator; s != nil {
		list = append(list, fact{"simulator", fmt.Sprintf("%s, %d turns", s.Model.Model, s.Turns)})
	}
	if l.Judge != nil {
		add("judge", &l.Judge.Model, l.Judge.Rubric)
	}
	return list
}
