// Command bench measures what memhost costs. Every row is compared with its baselines, alternately measured in one run,
// so that other load on the machine slows all of them equally. Run it in the checkout's folder:
//
//	go -C tools build -o ../bin/bench ./bench && bin/bench -out bin/bench.txt
//
// A row (row.go) says what is measured, its contestants, and its bars. A task (task_*.go) measures one or more rows;
// run.go runs all tasks round by round, and each round sets everything up again. Internals of package host are measured
// by its own Go benchmark, once per round (inside.go). The intervals and medians are those of benchstat
// (golang.org/x/perf/benchmath); report.go prints them, and writes the rounds as Go benchmark results, so that
// benchstat compares two runs. docs.go and plot.go write docs/reference/performance.md.
package main

import "context"

// Unit is the unit of a row's figures.
type Unit string

// Units of figures, as Go's benchmarks name them.
const (
	Nanoseconds Unit = "ns/op"
	Bytes       Unit = "B"
	Count       Unit = "count"
)

// Row is one line of the table: our figure, and those of the baselines.
type Row struct {
	// ID is a stable id, by which runs are compared.
	ID   string
	What string
	Unit Unit
	// By lists the contestants, ours first.
	By   []string
	Bars []Bar
	// Points are the positions of figures in plots, by contestant.
	Points map[string]Point
	// PlotOnly means that the row is not in the table.
	PlotOnly bool
	// Exact means that the figures are counted, not timed: their interval is from the minimum to the maximum.
	Exact bool
	// Allocations means that the table also shows the allocations per operation.
	Allocations bool
}

// Point is a position in a plot.
type Point struct {
	Plot   string
	Series string
	X      float64
}

// BarKind is what a bar limits.
type BarKind int

// A bar limits the figure itself, its ratio to a baseline, its difference from a baseline, or the allocations per
// operation.
const (
	AtMost BarKind = iota
	Ratio
	Added
	Allocations
)

// Bar is a limit that a figure must not exceed.
type Bar struct {
	Kind BarKind
	// Over is the baseline of a ratio or a difference.
	Over string
	// Limit is in the row's unit, a factor, or a number of allocations.
	Limit float64
	// Note says what the limit does not include.
	Note string
}

// task measures rows.
type task struct {
	name string
	rows []Row
	// round measures every row once.
	round func(ctx context.Context, e *env) (figures, error)
	// once means that further rounds would give the same result.
	once bool
}

// cell identifies a figure.
type cell struct{ row, by string }

// sample is one figure in a round.
type sample struct {
	value float64
	// allocs and bytes are per operation; 0 if they are not counted.
	allocs, bytes float64
}

// figures are the figures of one round.
type figures map[cell]sample
