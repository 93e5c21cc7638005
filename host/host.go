package host

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/text/tokens"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Host owns what all providers share: the wasm runtime with its compilation cache, the host functions and the data folder.
type Host struct {
	options Options
	limits  Limits
	logger  hclog.Logger
	now     func() time.Time
	cache   wazero.CompilationCache
	store   state.Store
	tape    *tape // nil: nothing is recorded or played

	// engine runs every module that its interruption can prepare, fallback the others. It is opened when the first needs it.
	engine     *engine
	fallbackMu sync.Mutex
	fallback   *engine

	mu       sync.Mutex
	counters map[string]tokens.Counter
	extism   map[*extismProgram]bool // each has a runtime of its own

	sweepMu sync.Mutex
	sweptTo []byte // where the next write goes on looking for old receipts

	scopesMu sync.Mutex
	scopes   map[scopeName]*scopeState
}

// New opens a Host on a data folder and takes it for this process. Close it to give the folder free.
//
// Errors: invalid_argument for a folder that cannot be used as asked, unavailable when another process owns it or it cannot be written.
func New(ctx context.Context, o Options) (*Host, error) { return newHost(ctx, o, nil) }

// newHost is New with a tape to play.
func newHost(ctx context.Context, o Options, playing *tape) (*Host, error) {
	if o.DataDir == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.Options.DataDir: required")
	}
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(o.DataDir, "cache")
	}
	if o.Durability == "" {
		o.Durability = string(state.DurabilityPower)
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Host{options: o, limits: o.Limits.withDefaults(), logger: o.Logger, now: o.Now,
		counters: map[string]tokens.Counter{}, extism: map[*extismProgram]bool{}, scopes: map[scopeName]*scopeState{}}
	store, err := state.Open(o.DataDir, state.Options{Durability: state.Durability(o.Durability)})
	if err != nil {
		return nil, stateError(err)
	}
	h.store, h.tape = store, playing
	if err := h.useTape(); err != nil {
		_ = store.Close()
		return nil, err
	}
	if err := h.openEngine(ctx, metered{keepRewritten(h.options.CacheDir)}); err != nil {
		_ = h.Close(ctx)
		return nil, err
	}
	return h, nil
}

// useTape begins a recording, where one is asked for, and gives the host the tape's clock, store and single instance.
func (h *Host) useTape() (err error) {
	if o := h.options.Cassette; o != nil && h.tape == nil {
		version, commit := h.version()
		if h.tape, err = startRecording(o, h.now, h.logger, version, commit); err != nil {
			return err
		}
	}
	if h.tape != nil {
		h.now, h.limits.Pool = h.tape.now, 1
		h.store = &tapedStore{Store: h.store, tape: h.tape}
	}
	return nil
}

// openEngine opens the cache and the engine that modules run on.
func (h *Host) openEngine(ctx context.Context, way interruption) (err error) {
	if h.cache, err = wazero.NewCompilationCacheWithDir(h.options.CacheDir); err != nil {
		return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("compilation cache %s: %v", h.options.CacheDir, err), err)
	}
	h.engine, err = h.newEngine(ctx, way)
	return err
}

// newEngine opens a runtime. All share the cache, which keeps what was compiled for one way of interruption apart from the others.
func (h *Host) newEngine(ctx context.Context, way interruption) (*engine, error) {
	e := &engine{interruption: way, runtime: wazero.NewRuntimeWithConfig(ctx, way.configure(h.runtimeConfig()))}
	_, err := wasi_snapshot_preview1.Instantiate(ctx, e.runtime)
	if err == nil {
		err = instantiateHostModule(ctx, e.runtime)
	}
	if ask := way.more(); err == nil && ask != nil {
		err = meterModule(ctx, e.runtime, ask)
	}
	if err != nil {
		_ = e.runtime.Close(ctx)
		return nil, abi.WrapError(abi.CodeInternal, "host functions: "+err.Error(), err)
	}
	return e, nil
}

// runtimeConfig is what all runtimes have in common.
func (h *Host) runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(uint32(h.limits.MemoryBytes / pageBytes)).
		WithCompilationCache(h.cache).WithDebugInfoEnabled(false)
}

// slowEngine is for modules that the engine cannot prepare.
func (h *Host) slowEngine(ctx context.Context) (_ *engine, err error) {
	h.fallbackMu.Lock()
	defer h.fallbackMu.Unlock()
	if h.fallback == nil {
		h.fallback, err = h.newEngine(ctx, contextCheck{})
	}
	return h.fallback, err
}

// Close gives the data folder free. Slots of this host must have been closed before.
func (h *Host) Close(ctx context.Context) error {
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for p := range maps.Clone(h.extism) {
		keep(p.close(ctx))
	}
	for _, e := range []*engine{h.engine, h.fallback} {
		if e != nil {
			keep(e.runtime.Close(ctx))
		}
	}
	if h.cache != nil {
		keep(h.cache.Close(ctx))
	}
	keep(h.store.Close())
	keep(h.tape.close())
	if first != nil {
		return abi.AsError(first)
	}
	return nil
}
