package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/host"
)

// swapTask swaps one provider for another while two callers keep making requests.
func swapTask() task {
	const id = "swap"
	rows := []Row{
		{ID: id + "/failed", What: "swap under load: failed calls", Unit: Count, Exact: true,
			By: []string{byMemhost, "calls made meanwhile"}, Bars: []Bar{{Kind: AtMost, Limit: 0}}},
		{ID: id + "/time", What: "swap under load: time of a swap, module loaded before", Unit: Nanoseconds,
			By: []string{byMemhost}},
		{ID: id + "/call", What: "swap under load: the slowest call", Unit: Nanoseconds, By: []string{byMemhost}},
	}
	return task{name: id, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		s, err := e.slot(ctx, host.Options{}, probeProvider())
		if err != nil {
			return nil, err
		}
		var wait sync.WaitGroup
		var made, failed, slowest atomic.Int64
		stop := make(chan struct{})
		for range 2 {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					began := time.Now()
					if _, err := s.Retrieve(ctx, ask("echo fine")); err != nil {
						failed.Add(1)
					}
					made.Add(1)
					for took := int64(time.Since(began)); ; {
						if old := slowest.Load(); took <= old || slowest.CompareAndSwap(old, took) {
							break
						}
					}
				}
			})
		}
		var took []float64
		for range e.times(5) {
			began := time.Now()
			if _, err = s.Swap(ctx, probeProvider()); err != nil {
				break
			}
			took = append(took, float64(time.Since(began)))
		}
		close(stop)
		wait.Wait()
		if err != nil {
			return nil, err
		}
		return figures{
			{rows[0].ID, byMemhost}:     {value: float64(failed.Load())},
			{rows[0].ID, rows[0].By[1]}: {value: float64(made.Load())},
			{rows[1].ID, byMemhost}:     {value: median(took)},
			{rows[2].ID, byMemhost}:     {value: float64(slowest.Load())},
		}, nil
	}}
}
