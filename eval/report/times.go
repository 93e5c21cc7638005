package report

import (
	"strconv"

	"github.com/memhost/memhost/eval/score"
)

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

// fresh is how soon what was acknowledged could be retrieved. Without measurements it has no rows.
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
