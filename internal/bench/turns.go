package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// contestant runs an operation n times. Its figure goes into one or more cells.
type contestant struct {
	cells []cell
	run   func(n int) error
	// missing is why it cannot run here; "" that it can.
	missing string
}

// by is a contestant with a cell of its own.
func by(row, name string, run func(n int) error) contestant {
	return contestant{cells: []cell{{row, name}}, run: run}
}

// repeat makes a contestant's run of a single operation.
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

// pace is how much is measured in a round.
type pace struct {
	// stretch is what is timed at once, at least: an operation that takes less is repeated.
	stretch time.Duration
	// round is spent on each contestant; no more than stretches are taken, where that is not 0.
	round     time.Duration
	stretches int
}

// turns runs contestants in turns, stretch by stretch, and takes the median of each. The reference loop is one of them.
func turns(ctx context.Context, p pace, list []contestant) (figures, error) {
	f := figures{samples: map[cell]sample{}, missing: map[cell]string{}}
	list = append(slices.Clone(list), contestant{cells: []cell{{by: "the reference loop"}}, run: referenceLoop})
	repeats, took := make([]int, len(list)), make([][]float64, len(list))
	for i, c := range list {
		if c.missing != "" {
			for _, at := range c.cells {
				f.missing[at] = c.missing
			}
			continue
		}
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
	for began, n := time.Now(), 0; n < least || time.Since(began) < p.round*time.Duration(len(list)) && (p.stretches == 0 || n < p.stretches); n++ {
		for i, c := range list {
			if c.missing != "" {
				continue
			}
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
		if c.missing != "" {
			continue
		}
		s := sample{value: median(took[i])}
		if i == len(list)-1 {
			f.loop = s.value
			break
		}
		var err error
		if s.allocs, s.bytes, err = allocations(c, repeats[i]); err != nil {
			return f, err
		}
		for _, at := range c.cells {
			f.samples[at] = s
		}
	}
	return f, nil
}

// calibrate finds how often a contestant runs in a stretch, which warms it up. Something else may run meanwhile, so it is the best of some.
func calibrate(p pace, c contestant) (int, error) {
	for n := 1; ; n *= 2 {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			began := time.Now()
			if err := c.run(n); err != nil {
				return 0, fmt.Errorf("%s: %w", c.cells[0].by, err)
			}
			if best = min(best, time.Since(began)); best < p.stretch {
				break
			}
		}
		if best >= p.stretch || n >= 1<<20 {
			return n, nil
		}
	}
}

// allocations counts those of an operation. What runs beside it is counted, too.
func allocations(c contestant, n int) (count, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.run(n)
	runtime.ReadMemStats(&after)
	return math.Floor(float64(after.Mallocs-before.Mallocs) / float64(n)), float64(after.TotalAlloc-before.TotalAlloc) / float64(n), err
}

// referenceLoop is work that depends on nothing but the speed of the processor: some 10 µs, n times.
func referenceLoop(n int) error {
	for range n {
		h := uint64(14695981039346656037)
		for i := range 8 << 10 {
			h = (h ^ uint64(byte(i))) * 1099511628211
		}
		loopResult.Store(h)
	}
	return nil
}

// loopResult keeps the compiler from leaving the loop out.
var loopResult atomic.Uint64

// timeLoop runs the reference loop by itself, for tasks that do not take turns.
func timeLoop() float64 {
	took := make([]float64, 101)
	for i := range took {
		began := time.Now()
		_ = referenceLoop(1)
		took[i] = float64(time.Since(began))
	}
	return median(took)
}

func median(list []float64) float64 { return quantile(list, 0.5) }

// quantile sorts list.
func quantile(list []float64, q float64) float64 {
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// inTurns is a task whose contestants are set up anew in each round.
func inTurns(name string, p pace, rows []Row, setUp func(ctx context.Context, e *env) ([]contestant, error)) task {
	return task{name: name, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		list, err := setUp(ctx, e)
		if err != nil {
			return figures{}, err
		}
		return turns(ctx, e.pace(p), list)
	}}
}
