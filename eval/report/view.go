package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/eval/score"
	g "maragu.dev/gomponents"
)

// view is what the page shows.
type view struct {
	Policy  string
	Index   string // JSON in which encoding/json has escaped <, > and &: it cannot end a script element
	Chunks  []chunk
	LeftOut int

	Name     string
	Summary  []string
	Lead     []plot // at most one, under the summary
	Facts    []fact
	Alarms   []string
	Verdicts []Verdict
	// Primary has the sealed verdicts. First has those above them: on behaviour, if there were conversations.
	First   []sentence
	Primary []sentence
	Behaved []table
	Tables  []table
	Labels  []table
	More    []table // without pending probes, by speaker, errors
	Plots   []plot
	Audit   []table // figures before and after an audit, one table per budget
	Judged  table
	ByJudge []table // against the reference; then one per budget: labels down, memories across
	Models  table   // tokens and cost of models
	// Type has the main metric by the type of a question.
	Type table
	// Worth shows what the main metric reached for its tokens.
	Worth   []plot
	Cost    table
	Latency table
	Fresh   table
	Modules table
	Missing []fact
	Again   []string
	Terms   []fact
	Text    bool
}

type fact struct{ Name, Value string }

type plot struct {
	Title, Note string
	SVG         g.Node
}

func viewOf(in Input) *view {
	m := in.Metrics
	v := &view{Name: m.Run.Name, Text: !in.WithoutText, Alarms: m.Notes}
	v.Summary = summary(m)
	if e, ok := mainMetric(m); ok {
		if p, ok := overBudgets(m, e); ok {
			v.Lead = []plot{p}
		}
		v.Type = byType(m, e)
		if p, ok := overTokens(m, e); ok {
			v.Worth = []plot{p}
		}
	}
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
	v.First, v.Primary, v.Behaved = behaviourSentences(m), sentences(m), behaviourTables(m)
	for _, budget := range m.Keys.Budgets {
		v.Tables = append(v.Tables, overall(m, budget))
		v.Labels = append(v.Labels, byLabel(m, budget)...)
	}
	v.More, v.Audit = more(m), auditTables(m)
	if in.Run != nil && in.Run.Lab != nil {
		v.Facts = append(v.Facts, models(in.Run.Lab)...)
	}
	if t := gradeTable(m, in.Grades); len(t.Rows) > 0 {
		v.Behaved = append(v.Behaved, t)
	}
	if in.Grades != nil && in.Grades.Stub {
		v.Alarms = append([]string{"A stub graded instead of a model: iqi_judge says nothing about behaviour."}, v.Alarms...)
	}
	v.Plots = plots(m, in.Timings)
	v.Cost, v.Latency, v.Fresh, v.Modules = cost(in.Timings), latency(in.Timings), fresh(in.Timings), modules(m)
	v.Judged, v.ByJudge = judgedTable(in.Judge), judgedByLabel(in.Judge)
	if t := judgedCompared(in.Judge); len(t.Rows) > 0 {
		v.ByJudge = append([]table{t}, v.ByJudge...)
	}
	if in.Run != nil && in.Run.Lab != nil {
		v.Models = modelCosts(in.Run.Lab, m, in.Judge)
	}
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

func cellStates(cells []score.Cell) string {
	var parts []string
	for _, c := range cells {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("replicate %d %s, %d of %d asked, %s", c.Replicate,
			c.State, c.Asked, c.Wanted, c.Error), ", "))
	}
	return strings.Join(parts, "; ")
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
