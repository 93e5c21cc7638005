package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Options say how much is measured.
type Options struct {
	// Rounds of every row; 0 means 12.
	Rounds int
	// Short measures next to nothing: it shows that everything runs.
	Short bool
	// Only are the tasks whose name or rows' ids match; nil means all.
	Only *regexp.Regexp
	// Memory is how many calls the memory of the process is watched over; 0 means none.
	Memory int
	// Profile is how long each of the hot paths is profiled; 0 means not at all.
	Profile time.Duration
	// Version names the program.
	Version string
	// Progress is told of each step before it begins, of how many.
	Progress func(what string, step, of int)
}

// defaultRounds lets a spread do without the extremes (spread.go).
const defaultRounds = 12

// Run measures. Rounds that were whole when ctx ended are in the result, beside the error.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
		if o.Short {
			o.Rounds = 1
		}
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	e, err := newEnv(o.Short)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.end()) }()
	began := time.Now()
	r := &Result{Began: began.UTC().Truncate(time.Second), Machine: thisMachine(), LoadBefore: loadAverage(), Rounds: o.Rounds, Short: o.Short, Version: o.Version}
	var list []task
	for _, t := range tasks(o.Short) {
		if o.Only == nil || o.Only.MatchString(t.name) {
			list = append(list, t)
			for _, row := range t.rows {
				r.Rows = append(r.Rows, RowResult{Row: row, Cells: map[string]*Cell{}, Missing: map[string]string{}})
			}
		}
	}
	watched := memoryRuns(o)
	var loops []float64
	var profiled []profiled
	if o.Profile > 0 {
		profiled = profiles()
	}
	steps, step := len(list)*o.Rounds+len(watched)+len(profiled), 0
	for round := range o.Rounds {
		for _, t := range list {
			if step++; t.once && round > 0 {
				continue
			}
			o.Progress(fmt.Sprintf("round %d: %s", round+1, t.name), step, steps)
			loop := timeLoop()
			f, err := t.round(ctx, e)
			if err = errors.Join(err, e.endRound()); err != nil {
				return r, fmt.Errorf("%s: %w", t.name, err)
			}
			if f.loop == 0 {
				f.loop = (loop + timeLoop()) / 2
			}
			loops = append(loops, f.loop)
			r.take(f)
		}
	}
	if r.settle(); len(loops) > 0 {
		r.Loop = median(loops)
	}
	for _, w := range watched {
		step++
		o.Progress("memory: "+w.name, step, steps)
		run, err := w.watch(ctx, e, o.Memory)
		if err = errors.Join(err, e.endRound()); err != nil {
			return r, fmt.Errorf("memory of %s: %w", w.name, err)
		}
		r.Memory = append(r.Memory, *run)
	}
	for _, p := range profiled {
		step++
		o.Progress("profile: "+p.name, step, steps)
		profile, err := p.take(ctx, e, o.Profile)
		if err = errors.Join(err, e.endRound()); err != nil {
			return r, fmt.Errorf("profile of %s: %w", p.name, err)
		}
		r.Profiles = append(r.Profiles, *profile)
	}
	r.LoadAfter, r.Seconds = loadAverage(), time.Since(began).Round(time.Second).Seconds()
	return r, nil
}

// tasks are all rows, in the order of the table.
func tasks(short bool) []task {
	var list []task
	list = append(list, callTasks()...)
	list = append(list, guestTasks()...)
	list = append(list, spinTask(), loadTask(), startTask(), moduleTask())
	list = append(list, backendTasks()...)
	list = append(list, waitTask())
	list = append(list, boltTask(), commitTask(), recordSizeTask(), historyTask(short), swapTask())
	return list
}
