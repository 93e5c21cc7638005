package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/score"
)

// cost has what each column sent to its backend: to record, to retrieve, and to become ready.
func cost(t *score.Timings) table {
	list := table{Title: "Native calls", Head: []string{"memory", "for", "operations", "calls", "bytes out", "bytes in",
		"retries", "calls by route"},
		Note: "Getting ready: the memory's readiness checks, and its work in the background, in which some memories call a model."}
	for _, c := range t.Columns {
		for _, part := range []struct {
			name string
			of   score.Native
		}{{"records", c.Record}, {"retrievals", c.Retrieve}, {"getting ready", c.Ready}} {
			var routes []string
			for _, r := range part.of.Routes {
				routes = append(routes, fmt.Sprintf("%s %d", r.Name, r.Count))
			}
			r := row{Name: c.Label, Cells: []cell{{Text: part.name}}}
			for _, x := range []int64{int64(part.of.Operations), part.of.Calls, part.of.BytesOut, part.of.BytesIn, part.of.Retries} {
				r.Cells = append(r.Cells, cell{Text: strconv.FormatInt(x, 10)})
			}
			r.Cells = append(r.Cells, cell{Text: strings.Join(routes, ", ")})
			list.Rows = append(list.Rows, r)
		}
	}
	return list
}

// latency has the columns whose cells ran alone. It has no rows if there are none.
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

// fresh has how soon acknowledged content could be retrieved. Without measurements it has no rows.
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

// modelCosts has the token counts of the agent's endpoint for each memory, and the judge's for all, with their cost by
// the lab's prices. Model calls of a memory's own backend are not included: they are only estimated in its manifest,
// because no endpoint reports them here. Without counts it has no rows.
func modelCosts(l *lab.Lab, m *score.Metrics, judge *model.Verdicts) table {
	list := table{Title: "Tokens of models", Head: []string{"memory", "asked", "model", "answers", "prompt tokens",
		"completion tokens", "cost", "cost of an answer"},
		Note: "As the endpoints counted them. Costs are by the lab's prices, in their currency. What a memory's backend asks of " +
			"models is not counted here; `memhost eval plan` estimates it."}
	add := func(name, asked, model string, answers int, u journal.Usage) {
		r := row{Name: name, Cells: []cell{{Text: asked}, {Text: model}, {Text: strconv.Itoa(answers)},
			{Text: strconv.FormatInt(u.PromptTokens, 10)}, {Text: strconv.FormatInt(u.CompletionTokens, 10)}}}
		price, known := l.Prices[model]
		if !known || answers == 0 {
			r.Cells = append(r.Cells, cell{Text: "–", Note: "no price"}, cell{Text: "–"})
		} else {
			cost := (float64(u.PromptTokens)*price.Prompt + float64(u.CompletionTokens)*price.Completion) / 1e6
			r.Cells = append(r.Cells, cell{Text: number(cost)}, cell{Text: number(cost / float64(answers))})
		}
		list.Rows = append(list.Rows, r)
	}
	for i := range m.Columns {
		a := m.Columns[i].Agent
		if a == nil || l.Agent == nil || a.Counted == 0 {
			continue
		}
		add(m.Columns[i].Label, "agent", l.Agent.Model.Model, a.Counted,
			journal.Usage{PromptTokens: a.PromptTokens, CompletionTokens: a.CompletionTokens})
	}
	if judge != nil && judge.Counted > 0 && l.Judge != nil {
		add("all", "judge", l.Judge.Model.Model, judge.Counted, judge.Usage)
	}
	return list
}
