package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"gonum.org/v1/gonum/stat"
)

// MemoryRun is the memory of the process over many calls.
type MemoryRun struct {
	Name  string
	Calls int
	// Points are taken during the run, each after a garbage collection.
	Points []MemoryPoint
}

// MemoryPoint is the memory of the process after some calls, in bytes.
type MemoryPoint struct {
	Calls int
	// Resident is anonymous memory; 0 if the system does not report it.
	Resident int64
	// Heap is the size of Go's heap.
	Heap int64
}

// Slope is the growth in bytes per call over the second half, after everything has reached its size: the slope of a
// line fitted to the points. The true slope is within the margin with a probability of some 95 %, if the points scatter
// evenly.
func (m *MemoryRun) Slope(of func(MemoryPoint) int64) (slope, margin float64) {
	var calls, sizes []float64
	for _, p := range m.Points[len(m.Points)/2:] {
		calls, sizes = append(calls, float64(p.Calls)), append(sizes, float64(of(p)))
	}
	begin, slope := stat.LinearRegression(calls, sizes, nil, false)
	var off float64 // the squared distances from the line
	for i := range calls {
		d := sizes[i] - begin - slope*calls[i]
		off += d * d
	}
	n := float64(len(calls))
	return slope, 2 * math.Sqrt(off/(n-2)/(stat.Variance(calls, nil)*(n-1)))
}

// Lines show the memory at the end, and its growth. Memory counts as flat unless the second half grew by more than one
// percent, and significantly.
func (m *MemoryRun) Lines() []Line {
	var list []Line
	for _, k := range []struct {
		name string
		of   func(MemoryPoint) int64
	}{
		{"resident, files not counted", func(p MemoryPoint) int64 { return p.Resident }},
		{"Go's heap", func(p MemoryPoint) int64 { return p.Heap }},
	} {
		size := float64(k.of(m.Points[len(m.Points)-1]))
		if size == 0 {
			continue
		}
		slope, margin := m.Slope(k.of)
		verdict := "not flat"
		if (slope-margin)*float64(m.Calls)/2 < size/100 {
			verdict = "flat"
		}
		growth := fmt.Sprintf("%+.2f ± %.2f KB in 1,000 calls", slope*1000/1024, margin*1000/1024)
		list = append(list, Line{By: k.name, Value: Figure(size, Bytes), Ratio: growth, Verdict: verdict})
	}
	return list
}

// watched is a slot that is used repeatedly.
type watched struct {
	name string
	open func(ctx context.Context, e *env) (*used, error)
}

// used is what is done with it. fresh resets its scope, so that stored data does not grow, and any remaining growth is
// a leak. (The state's store remembers some ten bytes for each page that it has written and that is in use.)
type used struct {
	record   func(i int) error
	retrieve func() error
	fresh    func() error
}

// memoryRuns returns full_history and a backend's plugin.
func memoryRuns(o Options) []watched {
	if o.Memory <= 0 || o.Only != nil && !o.Only.MatchString("memory") {
		return nil
	}
	return []watched{{"full_history", watchedHistory}, {"mem0 over HTTP", watchedBackend}}
}

func watchedHistory(ctx context.Context, e *env) (*used, error) {
	s, err := e.fullHistory(ctx, host.Options{Durability: "process"})
	if err != nil {
		return nil, err
	}
	budget := int64(200)
	r := ask("tea?")
	r.Budget.MaxTokens = &budget
	return &used{
		record:   func(i int) error { _, err := s.RecordEvent(ctx, storedTurn("e", i)); return err },
		retrieve: func() error { _, err := s.Retrieve(ctx, r); return err },
		fresh:    func() error { return reset(ctx, s) },
	}, nil
}

// watchedBackend uses a backend that repeats its first answers, because the memory that a fake needs for its data is
// not ours.
func watchedBackend(ctx context.Context, e *env) (*used, error) {
	c := backendCases[0]
	b, slots, err := c.open(ctx, e)
	if err != nil {
		return nil, err
	}
	s, noted := slots[0], 0
	play := func() error {
		answers := map[string]answer{}
		noted++
		for _, op := range []func() error{func() error { return c.ask(ctx, s) }, func() error {
			return c.record(ctx, s, fmt.Sprint("noted", noted), 999_999)
		}} {
			script, err := b.note(op)
			if err != nil {
				return err
			}
			maps.Copy(answers, script.answers)
		}
		b.play(&script{answers: answers}, 0)
		return nil
	}
	return &used{
		record:   func(i int) error { return c.record(ctx, s, fmt.Sprint("w", i), 1_000_000+i) },
		retrieve: func() error { return c.ask(ctx, s) },
		fresh: func() error {
			b.play(&script{}, 0)
			err := reset(ctx, s)
			b.replace(c.fake()) // the fake keeps a history of erased data, in this process
			return errors.Join(err, c.fill(ctx, s, fmt.Sprint("again", noted)), play())
		},
	}, play()
}

func reset(ctx context.Context, s *host.Slot) error {
	receipt, err := s.ResetScope(ctx, scope)
	if err == nil && receipt.Status != abi.ResetDone {
		err = fmt.Errorf("the reset is %s: %v", receipt.Status, receipt.Warnings)
	}
	return err
}

// memoryPoints is how many points a run has.
const memoryPoints = 100

// watch makes calls, one record after nine retrievals, and takes points at regular intervals, each after a reset.
func (w watched) watch(ctx context.Context, e *env, calls int) (*MemoryRun, error) {
	slot, err := w.open(ctx, e)
	if err != nil {
		return nil, err
	}
	m := &MemoryRun{Name: w.name, Calls: calls}
	each := max(1, calls/memoryPoints)
	for i := range calls {
		if i%10 == 0 {
			err = slot.record(i)
		} else {
			err = slot.retrieve()
		}
		if err == nil && (i+1)%each == 0 {
			if err = slot.fresh(); err == nil {
				m.Points = append(m.Points, memoryNow(i+1))
			}
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
	}
	return m, nil
}

func memoryNow(calls int) MemoryPoint {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return MemoryPoint{Calls: calls, Resident: residentNow(), Heap: int64(s.HeapAlloc)}
}

// residentNow is the process's anonymous memory according to /proc, which excludes the mapped data file.
func residentNow() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}
