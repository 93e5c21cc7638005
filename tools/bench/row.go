// Command bench measures what memhost costs. Every row is shown beside its baselines, measured in turns in one run, so
// that whatever else the machine does slows all of them alike. Run it in the checkout's folder:
//
//	go -C tools build -o ../bin/bench ./bench && bin/bench -out bin/bench.txt
//
// A row (row.go) says what is measured, by whom, and which bar is set. A task (task_*.go) measures one or more rows;
// run.go goes through all tasks round by round, and each round sets everything up again. What only package host can
// see, its own Go benchmark measures once a round (inside.go). The intervals and medians are those of benchstat
// (golang.org/x/perf/benchmath); report.go prints them, and writes the rounds as Go benchmark results, so that
// benchstat compares two runs. docs.go and plot.go write docs/performance.md.
package main

import "context"

// Unit is what the figures of a row count.
type Unit string

// Units of figures, as Go's benchmarks name them.
const (
	Nanoseconds Unit = "ns/op"
	Bytes       Unit = "B"
	Count       Unit = "count"
)

// Row is one line of the table: our figure, and those of the baselines.
type Row struct {
	// ID is stable: runs are compared by it.
	ID   string
	What string
	Unit Unit
	// By lists the contestants, ours first.
	By   []string
	Bars []Bar
	// Points places figures in plots, by who.
	Points map[string]Point
	// PlotOnly rows are not in the table.
	PlotOnly bool
	// Exact rows are counted, not timed: their interval is from the least to the most.
	Exact bool
	// Allocations: the table shows the allocations of an operation, too.
	Allocations bool
}

// Point is a place in a plot.
type Point struct {
	Plot   string
	Series string
	X      float64
}

// BarKind is what a bar bounds.
type BarKind int

// A bar bounds the figure itself, its ratio to a baseline's, what it adds to a baseline's, or the allocations of an
// operation.
const (
	AtMost BarKind = iota
	Ratio
	Added
	Allocations
)

// Bar is a promise.
type Bar struct {
	Kind BarKind
	// Over is the baseline of a ratio or a difference.
	Over string
	// Limit is in the row's unit, or a factor, or a number of allocations.
	Limit float64
	// Note says what the limit leaves out.
	Note string
}

// task measures rows.
type task struct {
	name string
	rows []Row
	// round measures every row once.
	round func(ctx context.Context, e *env) (figures, error)
	// once: a second round would see the same.
	once bool
}

// cell names a figure.
type cell struct{ row, by string }

// sample is one figure of a round.
type sample struct {
	value float64
	// allocs and bytes are those of an operation; 0 where they are not counted.
	allocs, bytes float64
}

// figures are those of one round.
type figures map[cell]sample
