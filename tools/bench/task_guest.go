package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/memhost/memhost/plugins"
)

// contractRequest is a retrieve of 3 KB with 12 items.
func contractRequest() *abi.RetrieveRequest {
	r := &abi.RetrieveRequest{Query: "what tea do I like?", Scope: scope, SessionID: "s", Filters: map[string]abi.Raw{}}
	for i := range 12 {
		r.Filters[fmt.Sprint("item", i)] = abi.Raw(fmt.Sprintf(`{"id":"native-%d","text":%q,"score":0.%d,`+
			`"at":"2026-01-02T03:04:05Z","valid":true,"tags":["a","b"]}`, i, strings.Repeat("memory ", 20), i+10))
	}
	return r
}

// meteringTask measures a guest that only reads and writes JSON.
func meteringTask() task {
	const id = "metering"
	rows := []Row{{ID: id, What: "metering cost on a parse-heavy guest (JSON of 3 KB)", Unit: Nanoseconds,
		By:   []string{"metered", "unmetered", byWazeroCheck},
		Bars: []Bar{{Kind: Ratio, Over: "unmetered", Limit: 1.35}}}}
	return inTurns(id, quick, rows, func(ctx context.Context, e *env) ([]contestant, error) {
		metered, err := meter.Rewrite(testguest.Echo())
		if err != nil {
			return nil, err
		}
		request := abi.AppendJSON(nil, &abi.Envelope{Op: abi.OpRetrieve, Body: abi.Marshal(contractRequest())})
		plain, err1 := e.bareGuest(ctx, unchecked, testguest.Echo())
		counted, err2 := e.bareGuest(ctx, unchecked, metered)
		asked, err3 := e.bareGuest(ctx, checked, testguest.Echo())
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		var list []contestant
		for i, g := range []*bare{counted, plain, asked} {
			list = append(list, by(id, rows[0].By[i], repeat(func() error {
				return g.ask(ctx, abi.OpRetrieve, request)
			})))
		}
		return list, nil
	})
}

// contractTask decodes and encodes 3 KB of the contract in the guest, which package host measures itself, compared with
// encoding/json on the same bytes.
func contractTask() task {
	const id, native = "contract", "native encoding/json"
	rows := []Row{{ID: id, What: "contract decode and encode in the guest, 3 KB, metered", Unit: Nanoseconds,
		By:   []string{byMemhost, native},
		Bars: []Bar{{Kind: Ratio, Over: native, Limit: 3}}}}
	return inTurns(id, quick, rows, func(context.Context, *env) ([]contestant, error) {
		body := abi.Marshal(contractRequest())
		return []contestant{by(id, native, repeat(func() error {
			var r abi.RetrieveRequest
			if err := json.Unmarshal(body, &r); err != nil {
				return err
			}
			_, err := json.Marshal(&r)
			return err
		}))}, nil
	}).andInside()
}

// loadTask compiles a module, or finds it in the cache. A new host loads it each time; opening the host is not counted.
func loadTask() task {
	const id, cold = "load", "memhost, nothing cached"
	rows := []Row{{ID: id, What: "load a module from the cache", Unit: Nanoseconds, By: []string{byMemhost, cold},
		Bars: []Bar{{Kind: AtMost, Limit: 10e6}}}}
	return task{name: id, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		f, took := figures{}, map[string][]float64{}
		for i := range e.times(5) {
			for _, who := range rows[0].By { // alternately
				var o host.Options
				if who == cold {
					e.made++
					o.CacheDir = filepath.Join(e.dir, "cold", strconv.Itoa(e.made))
				}
				h, err := e.host(ctx, o)
				if err != nil {
					return f, err
				}
				runtime.GC() // of what was opened before
				began := time.Now()
				if _, err := h.Load(ctx, testguest.Unhurried()); err != nil {
					return f, err
				}
				if i > 0 || who == cold || e.short { // the very first one fills the cache
					took[who] = append(took[who], float64(time.Since(began)))
				}
				if err := e.endRound(); err != nil {
					return f, err
				}
			}
		}
		for who, list := range took {
			f[cell{id, who}] = sample{value: median(list)}
		}
		return f, nil
	}}
}

// times is how often something is repeated in a round, if contestants don't alternate.
func (e *env) times(n int) int {
	if e.short {
		return 1
	}
	return n
}

// startTask starts instances of a loaded module; ours are started in package host.
func startTask() task {
	const id = "instantiate"
	rows := []Row{{ID: id, What: "instantiate a module", Unit: Nanoseconds, Allocations: true,
		By:   []string{byMemhost, byExtism},
		Bars: []Bar{{Kind: AtMost, Limit: 150e3}}}}
	return inTurns(id, quick, rows, func(ctx context.Context, e *env) ([]contestant, error) {
		start, err := extismStart(ctx, e, id)
		return []contestant{start}, err
	}).andInside()
}

func probeProvider() host.ProviderConfig {
	return host.ProviderConfig{Name: "probe", Module: testguest.Unhurried(), Source: "builtin", Block: abi.Raw(`{}`)}
}

// moduleTask measures the sizes of the modules in the program.
func moduleTask() task {
	const id = "module"
	row := Row{ID: id, What: "the largest first-party module", Unit: Bytes, Exact: true, By: []string{byMemhost},
		Bars: []Bar{{Kind: AtMost, Limit: 512 << 10}}}
	var largest plugins.Module
	all := plugins.Builtin()
	for _, m := range all {
		if len(m.Wasm) > len(largest.Wasm) {
			largest = m
		}
	}
	row.What += " of " + strconv.Itoa(len(all)) + " (" + largest.Name + ")"
	return task{name: id, rows: []Row{row}, once: true, round: func(context.Context, *env) (figures, error) {
		return figures{{id, byMemhost}: {value: float64(len(largest.Wasm))}}, nil
	}}
}
