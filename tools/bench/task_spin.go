package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// spinTask has a guest that spins until its deadline while another caller makes 1,000 calls per second. Late is how
// long after its deadline the spinning guest returned; the others' answers are timed from when a call was due, so that
// a stall counts for every call that it delays. The baseline has no spinning guest: it shows the delays of machine and
// timers.
func spinTask() task {
	const id, nobody = "spin", "nobody spins"
	const allowed, every = 100 * time.Millisecond, time.Millisecond
	who := []string{byMemhost, nobody}
	row := func(name, what string, bars ...Bar) Row {
		return Row{ID: id + "/" + name, What: what, Unit: Nanoseconds, By: who, Bars: bars}
	}
	rows := []Row{
		row("late/p50", "a spinning guest is stopped: after its deadline, median of a round"),
		row("late/max", "a spinning guest is stopped: after its deadline, the latest of a round", Bar{Kind: AtMost, Limit: 20e6}),
		row("others/p50", "1,000 other calls a second meanwhile: answered after, p50"),
		row("others/p99", "the same, p99", Bar{Kind: AtMost, Limit: 5e6}),
		row("others/max", "the same, the slowest of a round"),
	}
	spin := func(ctx context.Context, s *host.Slot) error {
		ctx, cancel := context.WithTimeout(ctx, allowed)
		defer cancel()
		if _, err := s.Retrieve(ctx, ask("spin")); abi.CodeOf(err) != abi.CodeTimeout {
			return fmt.Errorf("the spin ended with %w", err)
		}
		return nil
	}
	rest := func(ctx context.Context, _ *host.Slot) error {
		timer := time.NewTimer(allowed)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return task{name: id, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		f := figures{}
		for i, do := range []func(context.Context, *host.Slot) error{spin, rest} {
			s, err := e.slot(ctx, host.Options{}, probeProvider())
			if err != nil {
				return f, err
			}
			if _, err := s.Retrieve(ctx, ask("echo fine")); err != nil {
				return f, err
			}
			var late, others []float64
			for range e.times(5) {
				l, o, err := beside(ctx, s, allowed, every, do)
				if err != nil {
					return f, err
				}
				late, others = append(late, l), append(others, o...)
			}
			for name, value := range map[string]float64{"late/p50": median(late), "late/max": quantile(late, 1),
				"others/p50": median(others),
				"others/p99": quantile(others, 0.99), "others/max": quantile(others, 1)} {
				f[cell{id + "/" + name, who[i]}] = sample{value: value}
			}
			if err := e.endRound(); err != nil {
				return f, err
			}
		}
		return f, nil
	}}
}

// beside runs do while another caller makes a call at regular intervals. It returns how late do returned, and how long
// after it was due each call was answered, in nanoseconds.
func beside(ctx context.Context, s *host.Slot, allowed, every time.Duration,
	do func(context.Context, *host.Slot) error) (late float64, others []float64, err error) {
	type end struct {
		late time.Duration
		err  error
	}
	done := make(chan end, 1)
	began := time.Now()
	go func() {
		err := do(ctx, s)
		done <- end{time.Since(began) - allowed, err}
	}()
	for due := began; ; due = due.Add(every) {
		time.Sleep(time.Until(due))
		select {
		case e := <-done:
			return float64(max(0, e.late)), others, errors.Join(err, e.err)
		default:
		}
		_, failed := s.Retrieve(ctx, ask("echo fine"))
		err = errors.Join(err, failed)
		others = append(others, float64(time.Since(due)))
	}
}

// ask is a retrieval for the test guest, whose query is a command, or for any other.
func ask(query string) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "now"}
}
