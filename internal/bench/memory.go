package bench

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/memhost/memhost/host"
)

// MemoryRun is the memory of the process over many calls.
type MemoryRun struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
	// Points are taken along the way, each after a collection.
	Points []MemoryPoint `json:"points"`
}

// MemoryPoint is the memory of the process after some calls, in bytes.
type MemoryPoint struct {
	Calls int `json:"calls"`
	// Resident is what is in memory and no file's: 0 where the system does not say.
	Resident int64 `json:"resident"`
	// Heap is what Go's heap holds.
	Heap int64 `json:"heap"`
}

// Slope is growth in bytes a call, and how much that may be off.
type Slope struct{ PerCall, Noise float64 }

// Flat tells whether the growth is within the noise.
func (s Slope) Flat() bool { return math.Abs(s.PerCall) <= s.Noise }

// String says it for 1,000 calls.
func (s Slope) String() string {
	return fmt.Sprintf("%+.1f ± %.1f KB in 1,000 calls", s.PerCall*1000/1024, s.Noise*1000/1024)
}

// Slope fits a line through the second half, when everything has found its size. The noise is twice the standard error, widened for points that resemble the one
// before.
func (m *MemoryRun) Slope(of func(MemoryPoint) int64) Slope {
	points := m.Points[len(m.Points)/2:]
	n := float64(len(points))
	if n < 4 {
		return Slope{0, math.Inf(1)}
	}
	var mx, my float64
	for _, p := range points {
		mx, my = mx+float64(p.Calls)/n, my+float64(of(p))/n
	}
	var sxx, sxy float64
	for _, p := range points {
		dx := float64(p.Calls) - mx
		sxx, sxy = sxx+dx*dx, sxy+dx*(float64(of(p))-my)
	}
	slope := sxy / sxx
	var squares, lagged, before float64
	for i, p := range points {
		off := float64(of(p)) - my - slope*(float64(p.Calls)-mx)
		squares += off * off
		if i > 0 {
			lagged += off * before
		}
		before = off
	}
	if squares == 0 {
		return Slope{slope, 0}
	}
	alike := max(0, min(0.9, lagged/squares))
	return Slope{slope, 2 * math.Sqrt(squares/(n-2)/sxx) * math.Sqrt((1+alike)/(1-alike))}
}

// ResidentOf and HeapOf are what Slope may be asked for.
func ResidentOf(p MemoryPoint) int64 { return p.Resident }

// HeapOf is the other.
func HeapOf(p MemoryPoint) int64 { return p.Heap }

// watched is a slot that is used over and over.
type watched struct {
	name string
	open func(ctx context.Context, e *env) (record func(i int) error, retrieve func() error, err error)
}

// memoryRuns are full_history and a backend's plugin.
func memoryRuns(o Options) []watched {
	if o.Memory <= 0 {
		return nil
	}
	var list []watched
	for _, w := range []watched{
		{"full_history", func(ctx context.Context, e *env) (func(int) error, func() error, error) {
			s, err := e.fullHistory(ctx, host.Options{Durability: "process"})
			if err != nil {
				return nil, nil, err
			}
			budget := int64(200)
			r := ask("tea?")
			r.Budget.MaxTokens = &budget
			return func(i int) error { _, err := s.RecordEvent(ctx, storedTurn("e", i)); return err }, func() error { _, err := s.Retrieve(ctx, r); return err }, nil
		}},
		{"mem0 over HTTP", func(ctx context.Context, e *env) (func(int) error, func() error, error) {
			c := backendCases[0]
			b, slots, err := c.open(ctx, e)
			if err != nil {
				return nil, nil, err
			}
			answers := map[string]answer{}
			for _, op := range []func() error{func() error { return c.ask(ctx, slots[0]) }, func() error { return c.record(ctx, slots[0], "noted", 999_999) }} {
				s, err := b.note(op)
				if err != nil {
					return nil, nil, err
				}
				for kind, a := range s.answers {
					answers[kind] = a
				}
			}
			b.play(&script{answers: answers}, 0)
			return func(i int) error { return c.record(ctx, slots[0], fmt.Sprint("w", i), 1_000_000+i) }, func() error { return c.ask(ctx, slots[0]) }, nil
		}},
	} {
		if o.Only == nil || o.Only.MatchString("memory") {
			list = append(list, w)
		}
	}
	return list
}

// memoryPoints is how often a run is looked at.
const memoryPoints = 100

// watch makes calls, one record after nine retrievals, and looks at the memory along the way.
func (w watched) watch(ctx context.Context, e *env, calls int) (*MemoryRun, error) {
	record, retrieve, err := w.open(ctx, e)
	if err != nil {
		return nil, err
	}
	m := &MemoryRun{Name: w.name, Calls: calls}
	each := max(1, calls/memoryPoints)
	for i := range calls {
		if i%10 == 0 {
			err = record(i)
		} else {
			err = retrieve()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		if (i+1)%each == 0 {
			m.Points = append(m.Points, memoryNow(i+1))
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

// residentNow is the process's anonymous memory by /proc: the data file, which is mapped, does not count.
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
