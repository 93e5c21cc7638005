package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/measure"
	"github.com/memhost/memhost/internal/testguest"
)

// Who is measured.
const (
	byMemhost       = "memhost"
	byCheck         = "memhost with wazero's check"
	byUninterrupted = "memhost, nothing stops the guest"
	byWazero        = "bare wazero"
	byWazeroCheck   = "bare wazero with its check"
	byExtismModule  = "memhost, the guest built for Extism"
	byExtism        = "go-sdk of Extism with its time-out"
	byExtismBare    = "go-sdk of Extism, nothing stops the guest"
)

// quick is for operations of microseconds.
var quick = pace{stretch: 200 * time.Microsecond, round: 60 * time.Millisecond}

// echoSize is a length of message whose echo is measured.
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

// plotSize is the plot of cost against the size of a message.
const plotSize = "size"

// callTasks are what a call costs: of every size, with several callers, and as an operation of the contract.
func callTasks() []task {
	var list []task
	for _, size := range echoSizes {
		list = append(list, echoTask(size))
	}
	return append(list, poolTask(), operationTask())
}

func echoProvider(wasm []byte) host.ProviderConfig {
	return host.ProviderConfig{Name: "echo", Module: wasm, Source: "builtin"}
}

// inside is a provider with the echo behind it, on a host of its own.
func (e *env) inside(ctx context.Context, way measure.Way, o host.Options, wasm []byte) (measure.Provider, error) {
	s, err := e.slot(ctx, way, o, echoProvider(wasm))
	if err != nil {
		return nil, err
	}
	return measure.Of(s), nil
}

// text is a JSON string of n bytes.
func text(n int) []byte { return fmt.Appendf(nil, "%q", strings.Repeat("x", n-2)) }

// echoTask is an echo through pool, deadline, request and answer, beside the same guest called by hand. The contract's JSON is a row of its own.
func echoTask(size echoSize) task {
	id := "echo/" + strings.ReplaceAll(size.name, " ", "")
	row := Row{ID: id, What: "call overhead of the host: echo of " + size.name, Unit: Nanoseconds, Bars: size.bars, PlotOnly: size.plot, Allocations: true,
		By:     []string{byMemhost, byCheck, byUninterrupted, byWazero, byExtismModule, byExtism, byExtismBare},
		Points: map[string]Point{}}
	for _, who := range []string{byMemhost, byWazero, byExtismModule, byExtism} {
		row.Points[who] = Point{plotSize, who, float64(size.bytes)}
	}
	return inTurns(id, quick, []Row{row}, func(ctx context.Context, e *env) ([]contestant, error) {
		body := text(size.bytes)
		var list []contestant
		for _, w := range []struct {
			who string
			way measure.Way
		}{{byMemhost, measure.Metered}, {byCheck, measure.ContextCheck}, {byUninterrupted, measure.Uninterrupted}} {
			p, err := e.inside(ctx, w.way, host.Options{}, testguest.Echo())
			if err != nil {
				return nil, err
			}
			list = append(list, by(id, w.who, repeat(func() error { return p.Enter(ctx, abi.OpNativeQuery, body) })))
		}
		bare, err := e.bareGuest(ctx, unchecked, testguest.Echo())
		if err != nil {
			return nil, err
		}
		list = append(list, by(id, byWazero, repeat(func() error { return bare.echo(ctx, body) })))
		extism, err := extismEchoes(ctx, e, id, body)
		return append(list, extism...), err
	})
}

// poolTask has eight callers at once, with an instance for all and one for each.
func poolTask() task {
	const id, callers = "callers", 8
	rows := []Row{{ID: id, What: "a call, 8 callers at once: time by calls answered", Unit: Nanoseconds, By: []string{"memhost, pool of 8", "memhost, pool of 1", "memhost, one caller"}}}
	return inTurns(id, pace{stretch: 5 * time.Millisecond, round: 100 * time.Millisecond}, rows, func(ctx context.Context, e *env) ([]contestant, error) {
		body := text(50)
		var list []contestant
		for i, pool := range []int{8, 1, 1} {
			p, err := e.inside(ctx, measure.Metered, host.Options{Limits: host.Limits{Pool: pool}}, testguest.Echo())
			if err != nil {
				return nil, err
			}
			one := func() error { return p.Enter(ctx, abi.OpNativeQuery, body) }
			at := callers
			if i == 2 {
				at = 1
			}
			list = append(list, by(id, rows[0].By[i], func(n int) error { return together(at, n, one) }))
		}
		return list, nil
	})
}

// together runs an operation n times in all, by callers at once.
func together(callers, n int, op func() error) error {
	var wait sync.WaitGroup
	failed := make([]error, callers)
	for i := range callers {
		wait.Go(func() {
			for range (n + i) / callers {
				if failed[i] = op(); failed[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// operationTask is the least that an operation of the contract costs: the request's and the answer's JSON, the trace, the scope.
func operationTask() task {
	const id = "operation"
	rows := []Row{{ID: id, What: "the echo of 50 B as an operation of the contract, with its trace", Unit: Nanoseconds, Allocations: true, By: []string{byMemhost, "the call alone"}}}
	return inTurns(id, quick, rows, func(ctx context.Context, e *env) ([]contestant, error) {
		s, err := e.slot(ctx, measure.Metered, host.Options{}, echoProvider(testguest.Echo()))
		if err != nil {
			return nil, err
		}
		p, body := measure.Of(s), text(50)
		request := &abi.NativeQuery{Scope: scope, Name: "x", Params: map[string]abi.Raw{"x": abi.Raw(text(50))}}
		return []contestant{
			by(id, byMemhost, repeat(func() error { _, err := s.NativeQuery(ctx, request); return err })),
			by(id, "the call alone", repeat(func() error { return p.Enter(ctx, abi.OpNativeQuery, body) })),
		}, nil
	})
}

// scope is where everything is recorded.
var scope = abi.MemoryScope{RunID: "bench", PersonaID: "mara"}
