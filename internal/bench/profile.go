package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/measure"
	"github.com/memhost/memhost/internal/testguest"
)

// Profile is where an operation spends the processor's time.
type Profile struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
	// Flat are the functions that the processor was in, Cum those that were being called, each with the most samples first. The guest's code is one of them.
	Flat []ProfileLine `json:"flat"`
	Cum  []ProfileLine `json:"cum"`
}

// ProfileLine is a function with its share of the samples, in percent.
type ProfileLine struct {
	Function string  `json:"function"`
	Flat     float64 `json:"flat,omitempty"`
	Cum      float64 `json:"cum,omitempty"`
}

// profileTop is how many functions are kept.
const profileTop = 10

// profiled is an operation whose profile is taken.
type profiled struct {
	name string
	open func(ctx context.Context, e *env) (func() error, error)
}

// profiles are the hot path without a backend and with one.
func profiles() []profiled {
	return []profiled{
		{"the echo of 50 B as an operation of the contract", func(ctx context.Context, e *env) (func() error, error) {
			s, err := e.slot(ctx, measure.Metered, host.Options{}, echoProvider(testguest.Echo()))
			request := &abi.NativeQuery{Scope: scope, Name: "x", Params: map[string]abi.Raw{"x": abi.Raw(text(50))}}
			return func() error { _, err := s.NativeQuery(ctx, request); return err }, err
		}},
		{"mem0: retrieve, backend answers at once", func(ctx context.Context, e *env) (func() error, error) {
			c := backendCases[0]
			b, slots, err := c.open(ctx, e)
			if err != nil {
				return nil, err
			}
			search := func() error { return c.ask(ctx, slots[0]) }
			s, err := b.note(search)
			if err == nil {
				b.play(s, 0)
			}
			return search, err
		}},
	}
}

// backendLabel marks the fake backend's goroutines, whose time is not ours.
const backendLabel = "backend"

// take runs the operation for a while under Go's profiler.
func (p profiled) take(ctx context.Context, e *env, lasting time.Duration) (*Profile, error) {
	op, err := p.open(ctx, e)
	if err != nil {
		return nil, err
	}
	for range 100 { // warm
		if err := op(); err != nil {
			return nil, err
		}
	}
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	for began := time.Now(); time.Since(began) < lasting && err == nil && ctx.Err() == nil; {
		err = op()
	}
	pprof.StopCPUProfile()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	return summarize(p.name, &raw)
}

// summarize counts a profile's samples by function. Frames of the benchmark and of those who started it are left out.
func summarize(name string, raw io.Reader) (*Profile, error) {
	stacks, err := readStacks(raw)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p, lines := &Profile{Name: name}, map[string]*ProfileLine{}
	line := func(function string) *ProfileLine {
		if lines[function] == nil {
			lines[function] = &ProfileLine{Function: function}
		}
		return lines[function]
	}
	for _, s := range stacks {
		if s.labels[backendLabel] {
			continue
		}
		seen := map[string]bool{}
		for i, function := range s.functions {
			function, ok := profileName(function)
			if i == 0 {
				line(function).Flat += float64(s.count)
			}
			if ok && !seen[function] {
				seen[function] = true
				line(function).Cum += float64(s.count)
			}
		}
		p.Samples += s.count
	}
	for _, l := range lines {
		l.Flat, l.Cum = 100*l.Flat/float64(p.Samples), 100*l.Cum/float64(p.Samples)
	}
	top := func(of func(*ProfileLine) float64) (list []ProfileLine) {
		for _, l := range slices.SortedFunc(maps.Values(lines), func(a, b *ProfileLine) int {
			return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.Function, b.Function))
		}) {
			if len(list) < profileTop && of(l) > 0 {
				list = append(list, *l)
			}
		}
		return list
	}
	p.Flat, p.Cum = top(func(l *ProfileLine) float64 { return l.Flat }), top(func(l *ProfileLine) float64 { return l.Cum })
	return p, nil
}

// profileName shortens a function's name, and tells whether it is of what was measured.
func profileName(function string) (string, bool) {
	const ours = "github.com/memhost/memhost/"
	function, _, _ = strings.Cut(function, "[") // without type arguments
	switch {
	case function == "runtime._ExternalCode":
		return "the guest's code", true
	case function == "runtime._System" || function == "runtime.goexit" || function == "runtime.main" || function == "runtime.mstart":
		return function, false
	case strings.HasPrefix(function, "main.") || strings.HasPrefix(function, "testing.") || strings.HasPrefix(function, "github.com/spf13/cobra"):
		return function, false
	case strings.HasPrefix(function, ours+"internal/bench") || strings.HasPrefix(function, ours+"internal/cli") || strings.HasPrefix(function, ours+"internal/measure"):
		return function, false
	}
	return strings.TrimPrefix(strings.TrimPrefix(function, ours), "github.com/"), true
}
