// Package bench measures what memhost costs: every row beside its baselines, all in one run and in turns, so that what else the machine does falls on all alike.
//
// The rows are data (row.go): what is measured, by whom, and which bar is set. A task (task_*.go) measures one or more rows. run.go goes round by round through all
// tasks, so that the rounds of a row are spread over the whole run and each begins with everything set up anew; what differs between rounds is the spread that is
// printed (spread.go). result.go is what a run leaves, report.go shows it, and compare.go puts two runs side by side. `memhost bench host` and the benchmarks of this package are two ways to start the same
// tasks; cmd/benchdocs writes the documentation's table and plots.
package bench

import "context"

// Unit is what the figures of a row count.
type Unit string

// Units of figures.
const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "bytes"
	Count       Unit = "count"
)

// Row is one line of the table: a figure of ours, and the same by others.
type Row struct {
	// ID is stable: runs are compared by it.
	ID   string `json:"id"`
	What string `json:"what"`
	Unit Unit   `json:"unit"`
	// By are who is measured, ours first. Who could not be measured in a run is left out there.
	By   []string `json:"by"`
	Bars []Bar    `json:"bars,omitempty"`
	// Points say where figures stand in plots, by who.
	Points map[string]Point `json:"points,omitempty"`
	// PlotOnly rows are not in the table.
	PlotOnly bool `json:"plot_only,omitempty"`
	// Exact rows are counted, not timed: their interval is from the least to the most.
	Exact bool `json:"exact,omitempty"`
	// Allocations tells that those of an operation are counted, too.
	Allocations bool `json:"allocations,omitempty"`
}

// Point is a place in a plot.
type Point struct {
	Plot   string  `json:"plot"`
	Series string  `json:"series"`
	X      float64 `json:"x"`
}

// BarKind is what a bar bounds.
type BarKind string

// A bar bounds the figure itself, its ratio to a baseline's, what it adds to a baseline's, or the allocations of an operation.
const (
	AtMost      BarKind = "at_most"
	Ratio       BarKind = "ratio"
	Added       BarKind = "added"
	Allocations BarKind = "allocations"
)

// Bar is what was promised.
type Bar struct {
	Kind BarKind `json:"kind"`
	// Over is the baseline of a ratio or a difference.
	Over string `json:"over,omitempty"`
	// Limit is in the row's unit, or a factor, or a number of allocations.
	Limit float64 `json:"limit"`
	// Note says what the limit leaves out.
	Note string `json:"note,omitempty"`
}

// task measures rows.
type task struct {
	name string
	rows []Row
	// round measures every row once.
	round func(ctx context.Context, e *env) (figures, error)
	// once tells that a second round would see the same.
	once bool
}

// cell names a figure.
type cell struct{ row, by string }

// sample is one figure of a round.
type sample struct {
	value float64
	// allocs and bytes are those of an operation; NaN where nobody counted.
	allocs, bytes float64
}

// figures are those of one round. Who could not be measured stands in missing, with the reason.
type figures struct {
	samples map[cell]sample
	missing map[cell]string
	// loop is what the reference loop took meanwhile, in nanoseconds; 0 where it did not take turns with what was measured.
	loop float64
}
