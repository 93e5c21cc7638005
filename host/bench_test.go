package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/testguest"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// neverInterrupt is the baseline of every way to stop a guest: none.
type neverInterrupt struct{}

func (neverInterrupt) name() string                                          { return "wazero, never interrupted" }
func (neverInterrupt) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }
func (neverInterrupt) more() api.GoFunc                                      { return nil }
func (neverInterrupt) prepare(_ string, wasm []byte) ([]byte, error)         { return wasm, nil }

// openWith is a host with a way of interruption of the caller's choice.
func openWith(b testing.TB, way interruption) *Host {
	h := open(b, Options{})
	ctx := context.Background()
	require.NoError(b, h.engine.runtime.Close(ctx))
	require.NoError(b, h.cache.Close(ctx))
	require.NoError(b, h.openEngine(ctx, way))
	return h
}

func echoConfig() ProviderConfig {
	return ProviderConfig{Name: "echo", Module: testguest.Echo(), Source: "builtin"}
}

// bareEcho calls the echo guest with nothing around it: get a buffer, write, run, read.
func bareEcho(b *testing.B, payload []byte) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer func() { _ = r.Close(ctx) }()
	_, err := wasi_snapshot_preview1.Instantiate(ctx, r)
	require.NoError(b, err)
	m, err := r.InstantiateWithConfig(ctx, testguest.Echo(), wazero.NewModuleConfig().WithStartFunctions(abi.InitExport))
	require.NoError(b, err)
	buffer, run := m.ExportedFunction(abi.BufferExport), m.ExportedFunction(abi.OpNativeQuery)
	var stack [1]uint64
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		stack[0] = uint64(len(payload))
		require.NoError(b, buffer.CallWithStack(ctx, stack[:]))
		m.Memory().Write(uint32(stack[0]), payload)
		stack[0] = uint64(len(payload))
		require.NoError(b, run.CallWithStack(ctx, stack[:]))
		high, length, _ := abi.Unpack(stack[0])
		view, _ := m.Memory().Read(high, length)
		out = append(out[:0], view...)
	}
	require.Len(b, out, len(payload))
}

// BenchmarkEcho is the price of the host: an echo through pool, deadline, request and answer, beside the same guest called by hand. The guest is entered at the level of
// one call, since the contract's JSON is a row of its own.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"50B", 50}, {"25KB", 25 << 10}} {
		body := abi.Raw(fmt.Sprintf("%q", strings.Repeat("x", size.bytes)))
		run := func(h *Host) func(b *testing.B) {
			return func(b *testing.B) {
				s := openSlot(b, h, echoConfig())
				p := s.current.Load().provider
				b.ReportAllocs()
				for b.Loop() {
					c := &call{op: abi.OpNativeQuery}
					if err := p.enter(context.Background(), c, &abi.Envelope{Op: c.op, Body: body}, new(abi.Empty)); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(size.name+"/by=host", func(b *testing.B) { run(open(b, Options{}))(b) })
		b.Run(size.name+"/by=host,context-check", func(b *testing.B) { run(openWith(b, contextCheck{}))(b) })
		b.Run(size.name+"/by=host,uninterrupted", func(b *testing.B) { run(openWith(b, neverInterrupt{}))(b) })
		b.Run(size.name+"/by=wazero", func(b *testing.B) { bareEcho(b, body) })
	}
}

// BenchmarkContractInGuest decodes and encodes 3 KB of the contract in the guest, beside encoding/json on the same bytes natively.
func BenchmarkContractInGuest(b *testing.B) {
	request := ask("what tea do I like?")
	request.Filters = map[string]abi.Raw{}
	for i := range 12 {
		request.Filters[fmt.Sprint("item", i)] = abi.Raw(fmt.Sprintf(`{"id":"native-%d","text":%q,"score":0.%d,"at":"2026-01-02T03:04:05Z","valid":true,"tags":["a","b"]}`, i, strings.Repeat("memory ", 20), i+10))
	}
	text := abi.Marshal(request)
	guest := func(h *Host) func(b *testing.B) {
		return func(b *testing.B) {
			s := openSlot(b, h, echoConfig())
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Retrieve(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("by=guest", func(b *testing.B) { guest(open(b, Options{}))(b) })
	b.Run("by=guest,context-check", func(b *testing.B) { guest(openWith(b, contextCheck{}))(b) })
	b.Run("by=guest,uninterrupted", func(b *testing.B) { guest(openWith(b, neverInterrupt{}))(b) })
	b.Run("by=encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			var r abi.RetrieveRequest
			if err := json.Unmarshal(text, &r); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(&r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoad compiles a module without and with the cache on disk.
func BenchmarkLoad(b *testing.B) {
	ctx := context.Background()
	load := func(b *testing.B, cache func(i int) string) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			h, err := New(ctx, Options{DataDir: filepath.Join(b.TempDir(), fmt.Sprint(i)), CacheDir: cache(i)})
			require.NoError(b, err)
			b.StartTimer()
			_, err = h.Load(ctx, probeModule)
			b.StopTimer()
			require.NoError(b, err)
			require.NoError(b, h.Close(ctx))
			b.StartTimer()
		}
	}
	b.Run("cold", func(b *testing.B) {
		dir := b.TempDir()
		load(b, func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) })
	})
	b.Run("cached", func(b *testing.B) {
		dir := b.TempDir()
		load(b, func(int) string { return dir })
	})
}

// BenchmarkInstantiate starts an instance of a loaded module.
func BenchmarkInstantiate(b *testing.B) {
	s := openSlot(b, open(b, Options{}), probeConfig(`{}`))
	pool := s.current.Load().provider.pool
	for b.Loop() {
		in, err := pool.instantiate(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		in.close()
	}
}

// BenchmarkFullHistory records into and retrieves from histories of growing length: record must not grow at all, retrieve with the budget only.
func BenchmarkFullHistory(b *testing.B) {
	wasm, err := os.ReadFile("../plugins/conditions/full_history/full_history.wasm")
	require.NoError(b, err)
	ctx := context.Background()
	for _, turns := range []int{100, 1_000, 10_000, 100_000} {
		s := openSlot(b, open(b, Options{Durability: "process"}), ProviderConfig{Name: "full_history", Module: wasm})
		batch := &abi.EventBatch{}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		turn := func(i int) abi.MemoryEvent {
			e := *event(fmt.Sprint("e", i), fmt.Sprintf("Turn %d: I had a cup of tea and thought about the trip to the mountains that we planned.", i))
			e.Timestamp = at.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
			return e
		}
		for i := range turns {
			if batch.Events = append(batch.Events, turn(i)); len(batch.Events) == 1000 || i == turns-1 {
				_, err := s.RecordEvents(ctx, batch)
				require.NoError(b, err)
				batch.Events = batch.Events[:0]
			}
		}
		next := turns
		b.Run(fmt.Sprintf("record/turns=%d", turns), func(b *testing.B) {
			for b.Loop() {
				e := turn(next)
				next++
				if _, err := s.RecordEvent(ctx, &e); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, budget := range []int64{1000, 8000} {
			b.Run(fmt.Sprintf("retrieve/budget=%d/turns=%d", budget, turns), func(b *testing.B) {
				r := ask("tea?")
				r.Budget.MaxTokens = &budget
				for b.Loop() {
					if _, err := s.Retrieve(ctx, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMemoryOverCalls makes a million calls and reports how the process grew in the second half, in bytes a call: flat is 0 within noise.
func BenchmarkMemoryOverCalls(b *testing.B) {
	const calls = 1_000_000
	s := openSlot(b, open(b, Options{}), echoConfig())
	request := &abi.NativeQuery{Scope: testScope, Name: "x", Params: map[string]abi.Raw{"x": abi.Raw(`"y"`)}}
	resident := func() int64 {
		runtime.GC()
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil { // not Linux: the heap has to do
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapInuse)
		}
		var total, pages int64
		_, _ = fmt.Sscan(string(text), &total, &pages)
		return pages * int64(os.Getpagesize())
	}
	for b.Loop() {
		var half int64
		for i := range calls {
			if i == calls/2 {
				half = resident()
			}
			if _, err := s.NativeQuery(context.Background(), request); err != nil {
				b.Fatal(err)
			}
		}
		grown := resident() - half
		b.ReportMetric(float64(grown)/(calls/2), "grown-B/call")
		b.ReportMetric(float64(half)/(1<<20), "resident-MB")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
}
