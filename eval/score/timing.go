package score

import (
	"math"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
)

// timing has a cell's times and native calls.
type timing struct {
	retrieve, record native
	ready            native // its operations are the waits for readiness
	retrievals       []latency
	records, waits   []float64 // milliseconds
	fresh            freshness
}

// freshness is how soon acknowledged content was shown.
type freshness struct {
	tried, failed int
	after         []float64 // milliseconds, for what was shown
}

func (f *freshness) add(l *journal.Freshness) {
	switch {
	case l.Duplicate:
		return
	case l.Error != nil:
		f.failed++
	case l.Found:
		f.after = append(f.after, l.AfterMS)
	}
	f.tried++
}

// latency is that of one retrieval, in milliseconds.
type latency struct {
	budget                       int64
	total, backend, module, host float64
}

type native struct {
	Native
	routes map[string]int
}

// add counts the native calls of one operation.
func (n *native) add(calls []abi.IO) {
	n.Operations++
	for i := range calls {
		c := &calls[i]
		n.addRoute(&journal.RouteCalls{Route: c.Route, Calls: 1, Retries: c.Retries, BytesOut: c.BytesOut, BytesIn: c.BytesIn})
	}
}

func (n *native) addRoute(c *journal.RouteCalls) {
	if n.routes == nil {
		n.routes = map[string]int{}
	}
	n.Calls += c.Calls
	n.Retries += c.Retries
	n.BytesOut += c.BytesOut
	n.BytesIn += c.BytesIn
	n.routes[c.Route] += int(c.Calls)
}

// merge adds another replicate.
func (t *timing) merge(o *timing) {
	for _, pair := range [][2]*native{{&t.retrieve, &o.retrieve}, {&t.record, &o.record}, {&t.ready, &o.ready}} {
		into, from := pair[0], pair[1]
		into.Operations += from.Operations
		into.Calls += from.Calls
		into.Retries += from.Retries
		into.BytesOut += from.BytesOut
		into.BytesIn += from.BytesIn
		if into.routes == nil {
			into.routes = map[string]int{}
		}
		for route, n := range from.routes {
			into.routes[route] += n
		}
	}
	t.retrievals = append(t.retrievals, o.retrievals...)
	t.records = append(t.records, o.records...)
	t.waits = append(t.waits, o.waits...)
	t.fresh.tried += o.fresh.tried
	t.fresh.failed += o.fresh.failed
	t.fresh.after = append(t.fresh.after, o.fresh.after...)
}

// timing is the column's part of timings.json.
func (c *column) timing(budgets []int64) ColumnTiming {
	all, alone := timing{}, true
	for _, cell := range c.cells {
		all.merge(&cell.timing)
		alone = alone && cell.Alone
	}
	t := ColumnTiming{Label: c.Label}
	for _, part := range []struct {
		into *Native
		from *native
	}{{&t.Retrieve, &all.retrieve}, {&t.Record, &all.record}, {&t.Ready, &all.ready}} {
		*part.into = part.from.Native
		part.into.Routes = counted(part.from.routes)
	}
	if len(all.waits) > 0 {
		q := quantiles(all.waits)
		t.ReadinessMS = &q
	}
	if f := all.fresh; f.tried > 0 {
		t.Freshness = &Freshness{Tried: f.tried, Found: len(f.after), Failed: f.failed, AfterMS: quantiles(f.after)}
	}
	switch {
	case !alone:
		t.Reason = "not measured: a cell did not run alone, with one persona at a time, from its beginning to its end"
	case len(all.retrievals) == 0:
		t.Reason = "not measured: nothing was retrieved"
	default:
		t.Latency = &Latency{Retrieve: split(all.retrievals), Budgets: []Split{}, Record: quantiles(all.records)}
		for _, budget := range budgets {
			s := split(slices.DeleteFunc(slices.Clone(all.retrievals),
				func(l latency) bool { return l.budget != budget }))
			s.Budget = budget
			t.Latency.Budgets = append(t.Latency.Budgets, s)
		}
	}
	return t
}

func split(list []latency) Split {
	of := func(part func(*latency) float64) Quantiles {
		values := make([]float64, len(list))
		for i := range list {
			values[i] = part(&list[i])
		}
		return quantiles(values)
	}
	return Split{Total: of(func(l *latency) float64 { return l.total }),
		Backend: of(func(l *latency) float64 { return l.backend }),
		Module:  of(func(l *latency) float64 { return l.module }), Host: of(func(l *latency) float64 { return l.host })}
}

// quantiles sorts values and computes their quantiles: the q quantile of n values is the one at rank ceil(q*n).
func quantiles(values []float64) Quantiles {
	if len(values) == 0 {
		return Quantiles{}
	}
	slices.Sort(values)
	total := 0.0
	for _, v := range values {
		total += v
	}
	at := func(q float64) float64 { return values[max(1, int(math.Ceil(q*float64(len(values)))))-1] }
	return Quantiles{N: len(values), Mean: total / float64(len(values)), P50: at(0.5), P95: at(0.95), P99: at(0.99),
		Max: values[len(values)-1]}
}
