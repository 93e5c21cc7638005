package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testguest"
)

// The contestants.
const (
	byMemhost      = "memhost"
	byWazero       = "bare wazero"
	byWazeroCheck  = "bare wazero with its check"
	byExtismModule = "memhost, the guest built for Extism"
	byExtism       = "go-sdk of Extism with its time-out"
	byExtismBare   = "go-sdk of Extism, nothing stops the guest"
)

// echoSize is a message size for which the echo is measured.
type echoSize struct {
	name  string
	bytes int
	bars  []Bar
	plot  bool // in the plot only
}

var echoSizes = []echoSize{
	{"50 B", 50, []Bar{{Kind: AtMost, Limit: 3e3}, {Kind: Allocations, Limit: 12}}, false},
	{"500 B", 500, nil, true},
	{"5 KB", 5 << 10, nil, true},
	{"25 KB", 25 << 10, []Bar{{Kind: AtMost, Limit: 20e3}}, false},
	{"250 KB", 250 << 10, nil, true},
	{"1 MB", 1 << 20, nil, true},
}

// plotSize is the plot of cost by message size.
const plotSize = "size"

// echoTasks measure the cost of a call, for every size.
func echoTasks() []task {
	var list []task
	for _, size := range echoSizes {
		list = append(list, echoTask(size))
	}
	return list
}

// text is a JSON string of n bytes.
func text(n int) []byte { return fmt.Appendf(nil, "%q", strings.Repeat("x", n-2)) }

// echoTask is an echo including pool, deadline, request and answer, which package host measures itself, compared with
// the same guest called directly and with Extism.
func echoTask(size echoSize) task {
	id := "echo/" + strings.ReplaceAll(size.name, " ", "")
	row := Row{ID: id, What: "call overhead of the host: echo of " + size.name, Unit: Nanoseconds, Bars: size.bars,
		PlotOnly: size.plot, Allocations: true,
		By: []string{byMemhost, byWazero, byExtismModule, byExtism, byExtismBare}, Points: map[string]Point{}}
	for _, who := range row.By[:4] {
		row.Points[who] = Point{plotSize, who, float64(size.bytes)}
	}
	return inTurns(id, quick, []Row{row}, func(ctx context.Context, e *env) ([]contestant, error) {
		body := text(size.bytes)
		bare, err := e.bareGuest(ctx, unchecked, testguest.Echo())
		if err != nil {
			return nil, err
		}
		list, err := extismEchoes(ctx, e, id, body)
		return append(list, by(id, byWazero, repeat(func() error { return bare.echo(ctx, body) }))), err
	}).andInside()
}

// echoed runs the echo in a slot, as an operation of the contract.
func (e *env) echoed(ctx context.Context, o host.Options, wasm, body []byte) (func() error, error) {
	s, err := e.slot(ctx, o, host.ProviderConfig{Name: "echo", Module: wasm, Source: "builtin"})
	request := &abi.NativeQuery{Scope: scope, Name: "x", Params: map[string]abi.Raw{"x": abi.Raw(body)}}
	return func() error { _, err := s.NativeQuery(ctx, request); return err }, err
}

// callersTask has eight concurrent callers, with one instance for all and with one for each, and an operation of the
// contract with one caller, which includes the JSON of request and answer, the trace, and the scope.
func callersTask() task {
	const id, callers = "callers", 8
	rows := []Row{{ID: id, What: "the echo of 50 B as an operation of the contract, 8 callers at once: time by calls " +
		"answered", Unit: Nanoseconds, Allocations: true,
		By: []string{"memhost, pool of 8", "memhost, pool of 1", "memhost, one caller"}}}
	return inTurns(id, pace{stretch: 5 * time.Millisecond, round: 100 * time.Millisecond}, rows,
		func(ctx context.Context, e *env) ([]contestant, error) {
			var list []contestant
			for i, pool := range []int{8, 1, 1} {
				one, err := e.echoed(ctx, host.Options{Limits: host.Limits{Pool: pool}}, testguest.Echo(), text(50))
				if err != nil {
					return nil, err
				}
				at := callers
				if i == 2 {
					at = 1
				}
				list = append(list, by(id, rows[0].By[i], func(n int) error { return runConcurrently(at, n, one) }))
			}
			return list, nil
		})
}

// runConcurrently runs an operation n times in total, by concurrent callers.
func runConcurrently(callers, n int, op func() error) error {
	var wait sync.WaitGroup
	failed := make([]error, callers)
	for i := range callers {
		wait.Go(func() { failed[i] = repeat(op)((n + i) / callers) })
	}
	wait.Wait()
	return errors.Join(failed...)
}

// scope is the scope of all recorded events.
var scope = abi.MemoryScope{RunID: "bench", PersonaID: "mara"}
