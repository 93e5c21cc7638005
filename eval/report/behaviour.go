package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/stats"
)

// behaviourGroup is the group of metrics that measure an agent's conversations.
const behaviourGroup = "behaviour"

// reading says whose definitions the figures on behaviour follow.
const reading = "memhost's reading of CS, PET and IQI, which the source design names and does not define. "

// behaves reports whether the run has conversations of an agent.
func behaves(m *score.Metrics) bool {
	return slices.ContainsFunc(m.Columns, func(c score.Column) bool { return c.Behaviour != nil })
}

// behaviourTables describe what agents did in their conversations; none without conversations.
func behaviourTables(m *score.Metrics) []table {
	if !behaves(m) {
		return nil
	}
	list := []table{}
	for _, budget := range m.Keys.Budgets {
		list = append(list, behaviourFigures(m, budget))
	}
	list = append(list, behaviourVerdicts(m))
	for _, budget := range m.Keys.Budgets {
		list = append(list, behaviourSince(m, budget))
	}
	list = append(list, explainedTable(m), conversations(m))
	return slices.DeleteFunc(list, func(t table) bool { return len(t.Rows) == 0 })
}

// behaviourFigures has the figures at one budget. It has no rows if no conversation had that budget.
func behaviourFigures(m *score.Metrics, budget int64) table {
	t := table{Title: "Behaviour, " + budgetName(budget), Head: []string{"memory"},
		Note: reading + "Mean over sessions, by the agent's first answer, with the 95 % interval over clusters; replicates are " +
			"averaged. An agent that does not retrieve counts as it answers."}
	if n := m.Run.Sessions; n != nil {
		t.Note += fmt.Sprintf(" Of the pack's sessions %d are of cs, %d of pet, %d of both and so of neither; %d have a value that "+
			"never changed, %d none.", n.CS, n.PET, n.Both, n.Plain, n.Unknown)
	}
	var entries []score.Entry
	for _, e := range m.Catalogue {
		if e.Group == behaviourGroup {
			entries = append(entries, e)
			t.Head = append(t.Head, e.Name)
		}
	}
	talked := false
	for i := range m.Columns {
		c := &m.Columns[i]
		b := atBudget(c, budget)
		if b == nil || c.Behaviour == nil {
			continue
		}
		r := row{Name: c.Label}
		for _, e := range entries {
			talked = talked || b.Overall[e.Name].Value != nil
			r.Cells = append(r.Cells, figureCell(b.Overall[e.Name], e))
		}
		t.Rows = append(t.Rows, r)
	}
	if !talked {
		t.Rows = nil
	}
	return t
}

// behaviourFamilies returns the comparisons on behaviour, the sealed one first.
func behaviourFamilies(m *score.Metrics) []score.Family {
	var list []score.Family
	of := func(f *score.Family) {
		i := slices.IndexFunc(m.Catalogue, func(e score.Entry) bool { return e.Name == f.Metric })
		if i >= 0 && m.Catalogue[i].Group == behaviourGroup {
			list = append(list, *f)
		}
	}
	if m.Primary != nil {
		of(m.Primary)
	}
	for i := range m.Exploratory {
		of(&m.Exploratory[i])
	}
	return list
}

// behaviourVerdicts compares the memories with the reference on each headline figure of behaviour.
func behaviourVerdicts(m *score.Metrics) table {
	t := table{Title: "Behaviour against a reference", Head: []string{"memory", "figure", "budget", "against", "difference",
		"p after Holm", "verdict", "sealed"}, Note: "Session by session. A positive difference favours the memory. Only a sealed " +
		"comparison was named before the run."}
	for _, f := range behaviourFamilies(m) {
		sealed := "no"
		if m.Primary != nil && f.Metric == m.Primary.Metric && f.Budget == m.Primary.Budget {
			sealed = "yes"
		}
		for _, c := range f.Comparisons {
			t.Rows = append(t.Rows, row{Name: c.Label, Cells: []cell{{Text: f.Metric}, {Text: strconv.FormatInt(f.Budget, 10)},
				{Text: f.Reference}, {signed(c.Difference.Mean), signed(c.Difference.Low) + " to " + signed(c.Difference.High)},
				{Text: number(c.Adjusted)}, {Text: string(c.Verdict)}, {Text: sealed}}})
		}
	}
	return t
}

// behaviourSentences has the first verdicts in a report with an agent: on cs and pet, unless the sealed comparison is
// about them.
func behaviourSentences(m *score.Metrics) []sentence {
	var list []sentence
	families := behaviourFamilies(m)
	if len(families) == 0 || m.Primary != nil && families[0].Metric == m.Primary.Metric && families[0].Budget == m.Primary.Budget {
		return nil
	}
	for _, f := range families {
		if f.Budget != families[0].Budget || f.Metric != "cs" && f.Metric != "pet" {
			continue
		}
		for _, s := range sentencesOf(&f) {
			s.Label += ", " + f.Metric + " (exploratory)"
			list = append(list, s)
		}
	}
	return list
}

// behaviourSince has pet by the number of sessions since the change.
func behaviourSince(m *score.Metrics, budget int64) table {
	t := table{Title: "PET by sessions since the change, " + budgetName(budget), Head: []string{"memory"},
		Note: "The share of first answers that use the value in force; below it, that of those that use a former one. 0 is the test " +
			"session right after the session in which it changed."}
	unit := score.Entry{Unit: "share"}
	for i := range m.Columns {
		c := &m.Columns[i]
		if c.Behaviour == nil {
			continue
		}
		at := slices.IndexFunc(c.Behaviour.Since, func(s score.SinceCurve) bool { return s.Budget == budget })
		if at < 0 {
			continue
		}
		r := row{Name: c.Label}
		head := []string{"memory"}
		for _, bin := range c.Behaviour.Since[at].Bins {
			name := fmt.Sprintf("%d and more", bin.From)
			if bin.To != nil {
				name = fmt.Sprintf("%d to %d", bin.From, *bin.To)
				if *bin.To == bin.From {
					name = strconv.Itoa(bin.From)
				}
			}
			head = append(head, name)
			current := figureCell(bin.PET, unit)
			if stale := figureCell(bin.Stale, unit); bin.PET.Value != nil {
				current.Note = fmt.Sprintf("%s; stale %s; of %d", current.Note, stale.Text, bin.PET.Value.N)
			}
			r.Cells = append(r.Cells, current)
		}
		t.Head, t.Rows = head, append(t.Rows, r)
	}
	return t
}

// explainedTable compares what was retrieved with what was used.
func explainedTable(m *score.Metrics) table {
	uses := []struct{ name, says string }{{"current", "the value in force"}, {"stale", "a former value"},
		{"elsewhere", "another context's"}, {"several", "several"}, {"none", "none"}}
	t := table{Title: "What was retrieved, and what was used", Head: []string{"memory: retrieved before the first answer"},
		Note: "Sessions with a preference in force, over replicates and budgets. Down: the values in what the agent retrieved. " +
			"Across: the values in its first answer. Each probe below has both."}
	for _, u := range uses {
		t.Head = append(t.Head, "used: "+u.says)
	}
	for i := range m.Columns {
		b := m.Columns[i].Behaviour
		if b == nil {
			continue
		}
		for _, shown := range append([]struct{ name, says string }{{score.NotRetrieved, "nothing was retrieved"}}, uses...) {
			r := row{Name: m.Columns[i].Label + ": " + shown.says}
			total := 0
			for _, used := range uses {
				n := 0
				for _, x := range b.Explained {
					if x.Retrieved == shown.name && x.Used == used.name {
						n = x.Count
					}
				}
				total += n
				r.Cells = append(r.Cells, cell{Text: strconv.Itoa(n)})
			}
			if total > 0 {
				t.Rows = append(t.Rows, r)
			}
		}
	}
	return t
}

// gradeTable has iqi_judge: the grades of conversations, and the comparison with the reference.
func gradeTable(m *score.Metrics, g *model.Grades) table {
	t := table{Title: "iqi_judge", Head: []string{"memory", "budget", "grade of 4", "against", "difference", "p after Holm", "verdict"}}
	if g == nil {
		return t
	}
	t.Note = reading + "Graded from 0 to 4 by " + g.Model + ", who read the conversation, the preferences in force and the rubric. " +
		"No correction is applied."
	if g.Leaked > 0 {
		t.Note += fmt.Sprintf(" %d conversations leaked and count for no memory.", g.Leaked)
	}
	if len(g.Agreement) == 0 {
		t.Note += " Nobody checked the grades: `memhost eval label RUN --grades`."
	}
	for _, x := range g.Agreement {
		t.Note += fmt.Sprintf(" %s and %s graded the same %d conversations", x.A, x.B, x.Items)
		if x.Kappa != nil {
			t.Note += fmt.Sprintf(" (weighted kappa %.2f)", *x.Kappa)
		}
		t.Note += "."
	}
	for _, p := range g.Providers {
		r := row{Name: p.Label, Cells: []cell{{Text: strconv.FormatInt(p.Budget, 10)}, {"–", missing(p.Missing)}, {Text: "–"},
			{Text: "–"}, {Text: "–"}, {Text: "–"}}}
		if p.Mean != nil {
			r.Cells[1] = cell{fmt.Sprintf("%.2f", p.Mean.Mean), strings.TrimSuffix(fmt.Sprintf("%.2f to %.2f, %s", p.Mean.Low,
				p.Mean.High, missing(p.Missing)), ", ")}
		}
		for _, f := range g.Compared {
			for _, c := range f.Comparisons {
				if f.Budget == p.Budget && c.Label == p.Label {
					verdict := string(c.Verdict)
					if breached(m, c.Label) || breached(m, f.Reference) {
						verdict = string(score.Withheld)
					}
					r.Cells = append(r.Cells[:2], cell{Text: f.Reference},
						cell{signed(c.Difference.Mean), signed(c.Difference.Low) + " to " + signed(c.Difference.High)},
						cell{Text: number(c.Adjusted)}, cell{Text: verdict})
				}
			}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// breached reports whether a column's figures may not be about the memory that the pack describes.
func breached(m *score.Metrics, label string) bool {
	return slices.ContainsFunc(m.Columns, func(c score.Column) bool { return c.Label == label && c.Breached() })
}

// conversations counts the outcomes of conversations.
func conversations(m *score.Metrics) table {
	t := table{Title: "Conversations", Head: []string{"memory", "agent", "person", "sessions", "without a retrieval", "given up",
		"agent failed", "simulator failed", "leaked", "breached", "not sent"},
		Note: "Over replicates and budgets. Given up and failed count as the agent answered; where the simulator failed, the session " +
			"is missing; leaked sessions count for no memory."}
	for i := range m.Columns {
		b := m.Columns[i].Behaviour
		if b == nil {
			continue
		}
		of := func(n int) cell { return cell{Text: fmt.Sprintf("%d of %d", n, b.Conversations)} }
		breached := of(b.Breached)
		if b.Breached > 0 {
			breached.Note = classCounts(b.Breaches)
		}
		t.Rows = append(t.Rows, row{Name: m.Columns[i].Label, Cells: []cell{{Text: names(b.Seats)}, {Text: names(b.Simulators)},
			{Text: strconv.Itoa(b.Conversations)}, of(b.NoRetrieval), of(b.GivenUp), of(b.Failed), of(b.SimulatorFailed),
			of(b.Leaked), breached, {Text: classCounts(b.NotSent)}}})
	}
	return t
}

func names(list []score.Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.Name)
	}
	return strings.Join(parts, ", ")
}

// decided describes a verdict in words, and says whether it is for or against a memory.
func decided(v stats.Verdict, reference string) (words, outcome string) {
	switch v {
	case stats.Better:
		return "better than " + reference, good
	case stats.Worse:
		return "worse than " + reference, bad
	}
	return string(v), open
}
