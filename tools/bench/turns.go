package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// contestant runs an operation n times. Its figure is stored in one or more cells.
type contestant struct {
	cells []cell
	run   func(n int) error
}

// by is a contestant with a single cell.
func by(row, name string, run func(n int) error) contestant {
	return contestant{cells: []cell{{row, name}}, run: run}
}

// repeat makes a run function from a single operation.
func repeat(op func() error) func(int) error {
	return func(n int) error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}
}

// pace is how much to measure in a round.
type pace struct {
	// stretch is the shortest duration to time at once: shorter operations are repeated.
	stretch time.Duration
	// round is the time to spend on each contestant; stretches, if not 0, limits the number of stretches.
	round     time.Duration
	stretches int
}

// quick is for operations of microseconds.
var quick = pace{stretch: 200 * time.Microsecond, round: 60 * time.Millisecond}

// turns runs contestants alternately, stretch by stretch, and returns the median of each.
func turns(ctx context.Context, p pace, list []contestant) (figures, error) {
	f := figures{}
	repeats, took := make([]int, len(list)), make([][]float64, len(list))
	for i, c := range list {
		var err error
		if repeats[i], err = calibrate(p, c); err != nil {
			return f, err
		}
	}
	runtime.GC()
	least := 3
	if p.stretches > 0 {
		least = min(least, p.stretches)
	}
	limit := p.round * time.Duration(len(list))
	for began, n := time.Now(), 0; n < least || time.Since(began) < limit &&
		(p.stretches == 0 || n < p.stretches); n++ {
		for i, c := range list {
			began := time.Now()
			if err := c.run(repeats[i]); err != nil {
				return f, fmt.Errorf("%s: %w", c.cells[0].by, err)
			}
			took[i] = append(took[i], float64(time.Since(began))/float64(repeats[i]))
		}
		if err := ctx.Err(); err != nil {
			return f, err
		}
	}
	for i, c := range list {
		s := sample{value: median(took[i])}
		var err error
		if s.allocs, s.bytes, err = allocations(c, repeats[i]); err != nil {
			return f, err
		}
		for _, at := range c.cells {
			f[at] = s
		}
	}
	return f, nil
}

// calibrate finds out how often a contestant can run in a stretch, which also warms it up. It uses the best of three,
// because other programs may interfere.
func calibrate(p pace, c contestant) (int, error) {
	for n := 1; ; n *= 2 {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			began := time.Now()
			if err := c.run(n); err != nil {
				return 0, fmt.Errorf("%s: %w", c.cells[0].by, err)
			}
			best = min(best, time.Since(began))
		}
		if best >= p.stretch || n >= 1<<20 {
			return n, nil
		}
	}
}

// allocations counts the allocations of an operation, and of whatever else runs at the same time.
func allocations(c contestant, n int) (count, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.run(n)
	runtime.ReadMemStats(&after)
	return math.Floor(float64(after.Mallocs-before.Mallocs) / float64(n)),
		float64(after.TotalAlloc-before.TotalAlloc) / float64(n), err
}

func median(list []float64) float64 { return quantile(list, 0.5) }

// quantile sorts list.
func quantile(list []float64, q float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// inTurns is a task whose contestants are set up again in each round.
func inTurns(name string, p pace, rows []Row, setUp func(ctx context.Context, e *env) ([]contestant, error)) task {
	return task{name: name, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		list, err := setUp(ctx, e)
		if err != nil {
			return nil, err
		}
		return turns(ctx, e.pace(p), list)
	}}
}

// andInside adds to a task, as our figure, what package host's own benchmark measures for the row's id.
func (t task) andInside() task {
	others := t.round
	t.round = func(ctx context.Context, e *env) (figures, error) {
		f, err := others(ctx, e)
		if err != nil {
			return nil, err
		}
		if err = e.endRound(); err == nil {
			f[cell{t.rows[0].ID, t.rows[0].By[0]}], err = e.inside(ctx, t.rows[0].ID)
		}
		return f, err
	}
	return t
}
