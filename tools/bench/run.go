package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Options say what to measure, and how often.
type Options struct {
	// Rounds is the number of rounds of every row.
	Rounds int
	// Short measures almost nothing: it only shows that everything runs.
	Short bool
	// Only selects tasks by name; nil means all.
	Only *regexp.Regexp
	// Memory is the number of calls during which the memory of the process is observed; 0 means none.
	Memory int
	// Progress is called before each step.
	Progress func(what string, step, of int)
}

// Run measures. If ctx ends early, the result has the complete rounds, and there is an error.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	e, err := newEnv(o.Short)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.end()) }()
	r := &Result{Began: time.Now(), Machine: thisMachine(), LoadBefore: loadAverage(), Rounds: o.Rounds, Short: o.Short}
	var list []task
	for _, t := range tasks(o.Short) {
		if o.Only == nil || o.Only.MatchString(t.name) {
			list = append(list, t)
			for _, row := range t.rows {
				r.Rows = append(r.Rows, RowResult{Row: row, Samples: map[string][]sample{}})
			}
		}
	}
	watched := memoryRuns(o)
	steps, step := len(list)*o.Rounds+len(watched), 0
	for round := range o.Rounds {
		for _, t := range list {
			if step++; t.once && round > 0 {
				continue
			}
			o.Progress(fmt.Sprintf("round %d: %s", round+1, t.name), step, steps)
			f, err := t.round(ctx, e)
			if err = errors.Join(err, e.endRound()); err != nil {
				return r, fmt.Errorf("%s: %w", t.name, err)
			}
			r.take(f)
		}
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
	r.LoadAfter, r.Ended = loadAverage(), time.Now()
	return r, nil
}

// tasks returns all tasks, in the order of the table.
func tasks(short bool) []task {
	list := echoTasks()
	list = append(list, callersTask(), meteringTask(), contractTask(), spinTask(), loadTask(), startTask(),
		moduleTask())
	list = append(list, backendTasks()...)
	return append(list, boltTask(), commitTask(), recordSizeTask(), historyTask(short), swapTask())
}
