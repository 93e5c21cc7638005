package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/stats"
)

// view is what page.html shows.
type view struct {
	Policy  string
	CSS     template.CSS
	JS      template.JS
	Index   template.JS
	Chunks  []chunk
	LeftOut int

	Name     string
	Facts    []fact
	Alarms   []string
	Verdicts []verdict
	Primary  []sentence
	Tables   []table
	Labels   []table
	More     []table // without pending probes, by speaker, errors
	Plots    []plot
	Audit    []table // figures before and after an audit, one for each budget
	Judged   table
	ByJudge  []table // one for each budget: labels down, memories across
	Cost     table
	Latency  table
	Fresh    table
	Modules  table
	Missing  []fact
	Again    []string
	Terms    []fact
	Text     bool
}

type fact struct{ Name, Value string }

// verdict is one check with its outcome: good, bad or open.
type verdict struct{ Name, Outcome, Detail string }

// sentence is the verdict of one comparison.
type sentence struct{ Label, Verdict, Outcome, Detail string }

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

type plot struct {
	Title, Note string
	SVG         template.HTML
}

func viewOf(in Input) *view {
	m := in.Metrics
	v := &view{Name: m.Run.Name, Text: !in.WithoutText, Alarms: m.Notes}
	counts := m.Run.Pack.Counts
	v.Facts = []fact{{"pack", fmt.Sprintf("%s: %d personas in %d clusters, %d events, %d probes (%d answerable)",
		m.Run.Pack.Name, counts.Personas, counts.Clusters, counts.Events,
		m.Run.Probes, m.Run.Answerable)}, {"content", m.Keys.PackSHA256}, {"lab", m.Run.LabSHA256},
		{"tokenizer, frame", m.Keys.Tokenizer + ", " + m.Keys.Frame}, {"profile", m.Keys.Profile},
		{"program", strings.TrimSpace(m.Run.Program + " " + m.Run.Commit)}}
	if s := m.Run.Pack.Source; s != nil {
		v.Facts = append(v.Facts, fact{"source", fmt.Sprintf("%s, sha256 %.12s, licence %s", s.Name, s.SHA256,
			s.Licence)})
	}
	for _, r := range m.Run.Pack.Repairs {
		v.Facts = append(v.Facts, fact{"mended in the source", fmt.Sprintf("%s: %d", r.Kind, r.Count)})
	}
	v.Verdicts = verdicts(m)
	v.Primary = sentences(m)
	for _, budget := range m.Keys.Budgets {
		v.Tables = append(v.Tables, overall(m, budget))
		v.Labels = append(v.Labels, byLabel(m, budget)...)
	}
	v.More, v.Audit = more(m), auditTables(m)
	if in.Run != nil && in.Run.Lab != nil {
		v.Facts = append(v.Facts, models(in.Run.Lab)...)
	}
	v.Plots = plots(m, in.Timings)
	v.Cost, v.Latency, v.Fresh, v.Modules = cost(in.Timings), latency(in.Timings), fresh(in.Timings), modules(m)
	v.Judged, v.ByJudge = judgedTable(in.Judge), judgedByLabel(in.Judge)
	v.Missing = notMeasured(m, in.Timings)
	if in.Judge != nil && in.Judge.Stub {
		v.Alarms = append([]string{"A stub judged instead of a model: nothing here says anything about behaviour."},
			v.Alarms...)
	}
	for _, e := range m.Catalogue {
		v.Terms = append(v.Terms, fact{e.Name, e.What})
	}
	v.Again = []string{"memhost eval verify RUN --head " + in.Run.Head(), "memhost eval score RUN",
		"memhost eval run LAB.yaml --out ANOTHER", "memhost eval compare RUN ANOTHER"}
	return v
}

// outcomes of a verdict, which are classes of the page, too.
const (
	good = "good"
	bad  = "bad"
	open = "open"
)

// verdicts are the checks without which no figure counts.
func verdicts(m *score.Metrics) []verdict {
	var list []verdict
	add := func(name, outcome, format string, args ...any) {
		list = append(list, verdict{name, outcome, fmt.Sprintf(format, args...)})
	}
	switch m.LeakControl.Detector {
	case "works":
		add("leak detector", good, "found %d of %d planted leaks", m.LeakControl.Found, m.LeakControl.Planted)
	case "broken":
		add("leak detector", bad, "missed %d of %d planted leaks: no isolation verdict holds",
			m.LeakControl.Planted-m.LeakControl.Found, m.LeakControl.Planted)
	default:
		add("leak detector", open, "not tested")
	}
	switch m.SelfTest.Verdict {
	case "pass":
		add("self-test", good, "%s without a limit shows all evidence of %d personas", m.SelfTest.Label,
			m.SelfTest.Personas)
	case "broken":
		add("self-test", bad, "%s without a limit misses evidence: the chain from pack to metric is broken (%s)",
			m.SelfTest.Label, strings.Join(m.SelfTest.Missed, ", "))
	default:
		add("self-test", open, "not measured: %s", m.SelfTest.Reason)
	}
	for _, c := range m.Columns {
		if c.Kind == "reference" {
			continue
		}
		switch w := c.Wall; {
		case w.Breached > 0 || w.CanariesFound > 0:
			add(c.Label+": wall", bad, "breached in %d of %d test sessions, %d canaries found: %s", w.Breached,
				w.Breached+w.Clean+w.Inconclusive, w.CanariesFound, strings.Join(w.Breaches, "; "))
		case w.Inconclusive > 0:
			add(c.Label+": wall", open, "%d test sessions clean, %d without inventories that could be compared; %d "+
				"canaries skipped, 0 found", w.Clean, w.Inconclusive, w.CanariesSkipped)
		default:
			add(c.Label+": wall", good, "%d test sessions clean; %d canaries skipped, 0 found", w.Clean,
				w.CanariesSkipped)
		}
		switch i := c.Isolation; {
		case !i.Measured:
			add(c.Label+": isolation", open, "not measured: %s", i.Reason)
		case i.Leaking > 0:
			add(c.Label+": isolation", bad, "%d of %d clusters show text of others (%d canaries, %d sequences)",
				i.Leaking, i.Clusters, i.Canaries, i.Sequences)
		case i.Bound != nil:
			add(c.Label+": isolation", good, "0 of %d clusters show text of others; up to %s could, at 95 %%",
				i.Clusters, percent(*i.Bound))
		}
		if r := c.Readiness; r.TimedOut > 0 || r.Errors > 0 {
			add(c.Label+": readiness", open, "%d of %d waits timed out, %d failed: %d probes were asked while memory "+
				"was pending", r.TimedOut, r.Waits, r.Errors, r.PendingProbes)
		}
		if c.Partial {
			add(c.Label+": complete", bad, "partial column: what was not asked is missing, not zero (%s)",
				cellStates(c.Cells))
		}
	}
	return list
}

func cellStates(cells []score.Cell) string {
	var parts []string
	for _, c := range cells {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("replicate %d %s, %d of %d asked, %s", c.Replicate,
			c.State, c.Asked, c.Wanted, c.Error), ", "))
	}
	return strings.Join(parts, "; ")
}

// sentences are the verdicts of the sealed comparison.
func sentences(m *score.Metrics) []sentence {
	if m.Primary == nil {
		return nil
	}
	var list []sentence
	for _, c := range m.Primary.Comparisons {
		s := sentence{Label: c.Label, Verdict: string(c.Verdict), Outcome: open}
		switch c.Verdict {
		case stats.Better:
			s.Outcome, s.Verdict = good, "better than "+m.Primary.Reference
		case stats.Worse:
			s.Outcome, s.Verdict = bad, "worse than "+m.Primary.Reference
		}
		s.Detail = fmt.Sprintf("difference %s [%s, %s], p %s after Holm, %d probes in %d clusters",
			signed(c.Difference.Mean), signed(c.Difference.Low), signed(c.Difference.High),
			number(c.Adjusted), c.Difference.N, c.Difference.Clusters)
		if c.MissingA+c.MissingB > 0 {
			s.Detail += fmt.Sprintf("; %d probes missing: between %s and %s", c.MissingA+c.MissingB, signed(c.Worst),
				signed(c.Best))
		}
		if c.Verdict == stats.NoDifference && c.Detectable != nil {
			s.Detail += fmt.Sprintf("; a difference of %s would have been found with power 0.8", number(*c.Detectable))
		}
		list = append(list, s)
	}
	return list
}

// overall is the table of one budget: a row for each column, references last.
func overall(m *score.Metrics, budget int64) table {
	entries := headline(m)
	t := table{Title: budgetName(budget), Head: []string{"memory"},
		Note: "Mean over probes, with the 95 % interval over clusters."}
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

// auditTables are the headline figures with the probes that an audit leaves out, and without them.
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
	if f.Missing > 0 {
		c.Note += fmt.Sprintf(", %d missing", f.Missing)
	}
	return c
}

func value(x float64, unit string) string {
	if unit == "share" {
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return number(x)
}

func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 1:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

func signed(x float64) string { return fmt.Sprintf("%+.3f", x) }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

func budgetName(budget int64) string {
	if budget == 0 {
		return "no limit"
	}
	return fmt.Sprintf("at most %d tokens", budget)
}

// byLabel are tables of one budget, one for each headline metric: labels down, columns across.
func byLabel(m *score.Metrics, budget int64) []table {
	var list []table
	for _, e := range headline(m) {
		if !strings.HasPrefix(e.Group, "budgeted") && e.Group != "answer" {
			continue
		}
		t := table{Title: e.Name + ", " + budgetName(budget), Note: e.What, Head: []string{"label"}}
		rows := map[string]*row{}
		var order []string
		for _, c := range m.Columns {
			i := slices.IndexFunc(c.Budgets, func(b score.Budgeted) bool { return b.Budget == budget })
			if i < 0 {
				continue
			}
			t.Head = append(t.Head, c.Label)
			for _, s := range c.Budgets[i].ByLabel {
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
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// judgedTable is the judge's verdicts, corrected by its own errors. Without a judge it has no rows.
func judgedTable(v *model.Verdicts) table {
	t := table{Title: "Answers that are right", Head: []string{"memory", "budget", "answers", "judged", "false accepts",
		"false rejects", "corrected", "unclipped"}}
	if v == nil {
		return t
	}
	t.Note = "Judged by " + v.Model + "; corrected on " + v.CorrectedOn + "."
	for _, s := range v.Errors {
		t.Note += fmt.Sprintf(" %s: %d of %d accepted.", s.Sort, s.Accepted, s.Items)
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
			{Text: strconv.Itoa(p.Answers), Note: missing(p.Missing)}, {Text: value(p.Rate.Judged, "share")},
			{Text: value(p.Rate.FalseAccepts, "share")}, {Text: value(p.Rate.FalseRejects, "share")}}}
		if p.Rate.Identifiable {
			r.Cells = append(r.Cells, cell{value(p.Rate.Clipped, "share"), value(p.Rate.Low, "share") + " to " +
				value(p.Rate.High, "share")}, cell{Text: value(p.Rate.Rate, "share")})
		} else {
			r.Cells = append(r.Cells, cell{Text: "not identifiable"}, cell{Text: "–"})
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// judgedByLabel are the judge's corrected rates by the label of a probe.
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

func missing(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d missing", n)
}

// cost is what each column sent to its backend.
func cost(t *score.Timings) table {
	list := table{Title: "Native calls", Head: []string{"memory", "retrievals", "calls", "bytes out", "bytes in",
		"retries", "records", "calls", "bytes out", "bytes in", "retries"}}
	for _, c := range t.Columns {
		r := row{Name: c.Label}
		for _, n := range []score.Native{c.Retrieve, c.Record} {
			for _, x := range []int64{int64(n.Operations), n.Calls, n.BytesOut, n.BytesIn, n.Retries} {
				r.Cells = append(r.Cells, cell{Text: strconv.FormatInt(x, 10)})
			}
		}
		list.Rows = append(list.Rows, r)
	}
	return list
}

// latency is the table of columns whose cells ran alone. Without any, it has no rows.
func latency(t *score.Timings) table {
	list := table{Title: "Latency of a retrieval, in ms",
		Head: []string{"memory", "p50", "p95", "p99", "backend p50", "module p50", "host p50", "record p50",
			"record p95"}}
	for _, c := range t.Columns {
		if c.Latency == nil {
			continue
		}
		l, r := c.Latency, row{Name: c.Label}
		for _, x := range []float64{l.Retrieve.Total.P50, l.Retrieve.Total.P95, l.Retrieve.Total.P99,
			l.Retrieve.Backend.P50, l.Retrieve.Module.P50, l.Retrieve.Host.P50,
			l.Record.P50, l.Record.P95} {
			r.Cells = append(r.Cells, cell{Text: number(x)})
		}
		list.Rows = append(list.Rows, r)
	}
	return list
}

// fresh is how soon what was acknowledged could be retrieved. Where nobody measured, it has no rows.
func fresh(t *score.Timings) table {
	list := table{Title: "Acknowledged until retrievable, in ms",
		Head: []string{"memory", "events", "shown", "failed", "p50", "max"},
		Note: "In scopes of their own, after everything else. Not shown: memory was ready and did not show it, or " +
			"the time was over."}
	for _, c := range t.Columns {
		f := c.Freshness
		if f == nil {
			continue
		}
		r := row{Name: c.Label, Cells: []cell{{Text: strconv.Itoa(f.Tried)}, {Text: strconv.Itoa(f.Found)},
			{Text: strconv.Itoa(f.Failed)}, {Text: "–"}, {Text: "–"}}}
		if f.Found > 0 {
			r.Cells[3].Text, r.Cells[4].Text = number(f.AfterMS.P50), number(f.AfterMS.Max)
		}
		list.Rows = append(list.Rows, r)
	}
	return list
}

// modules is what served each column: the difference between their manifests.
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

func short(hash string) string { return hash[:min(12, len(hash))] }

// notMeasured lists what has no figure, and why.
func notMeasured(m *score.Metrics, t *score.Timings) []fact {
	var list []fact
	for _, c := range m.Columns {
		for _, n := range c.Notes {
			list = append(list, fact{c.Label, n})
		}
		reasons := map[string][]string{}
		var order []string
		for _, b := range c.Budgets {
			for _, e := range m.Catalogue {
				f := b.Overall[e.Name]
				if f.Value == nil && f.Reason != "" {
					if reasons[f.Reason] == nil {
						order = append(order, f.Reason)
					}
					if !slices.Contains(reasons[f.Reason], e.Name) {
						reasons[f.Reason] = append(reasons[f.Reason], e.Name)
					}
				}
			}
		}
		for _, reason := range order {
			list = append(list, fact{c.Label, strings.Join(reasons[reason], ", ") + ": " + reason})
		}
	}
	for _, c := range t.Columns {
		if c.Freshness == nil {
			list = append(list, fact{c.Label, "freshness: the lab asked for none"})
		}
		if c.Latency == nil && c.Reason != "" {
			list = append(list, fact{c.Label, "latency: " + c.Reason})
		}
	}
	return list
}
