package guest

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// interruption is a way to stop a guest at its deadline. The rest of the package does not depend on which one is used.
type interruption interface {
	// name is the name in the run manifest and in inspect.
	name() string
	// configure configures a runtime.
	configure(wazero.RuntimeConfig) wazero.RuntimeConfig
	// more is the host function that prepared modules import; nil if they import none.
	more() api.GoFunc
	// prepare may rewrite a checked module with a given hash. quick reports whether an import only moves a few bytes.
	//
	// Errors: wasmbin.ErrBeyond for features that it does not support; any other error means that the module is not
	// valid.
	prepare(sha256 string, wasm []byte, quick func(module, name string) bool) ([]byte, error)
}

// contextCheck is wazero's own way: compiled code checks at each loop header and function entry whether the call's
// context is done. It supports every module, but makes its code several times slower.
type contextCheck struct{}

func (contextCheck) name() string { return "wazero, context check" }

func (contextCheck) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCloseOnContextDone(true)
}

func (contextCheck) more() api.GoFunc { return nil }

func (contextCheck) prepare(_ string, wasm []byte, _ func(module, name string) bool) ([]byte, error) {
	return wasm, nil
}

// meteredEngine rewrites the module to count the instructions that it executes, and to ask for more units when the count has
// run out.
type meteredEngine struct{ modules *rewrittenModules }

func (meteredEngine) name() string { return "wazero, metered" }

func (meteredEngine) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }

func (meteredEngine) more() api.GoFunc { return moreUnits }

func (m meteredEngine) prepare(sha256 string, wasm []byte, quick func(module, name string) bool) ([]byte, error) {
	return m.modules.find(sha256, func() ([]byte, error) { return meter.RewriteWith(wasm, quick) })
}

// A unit is about one instruction. Units are handed out so that a guest asks about every lookEvery. They are limited to
// maxUnits, because the next instructions may be a hundred times slower than those before, such as loads that miss
// every cache; even then maxUnits take only some 10 ms. Ordinary code asks every 20 to 50 µs. After ownThreadAfter a
// computing guest gets its own thread, and yields to others every lookEvery.
const (
	minUnits       = 1 << 10
	maxUnits       = 1 << 17
	lookEvery      = 250 * time.Microsecond
	ownThreadAfter = 5 * time.Millisecond
)

// moreUnits is called by a metered guest when it has used up its units. It also makes a guest that computes for long
// yield to others.
//
// Yielding is not enough on a busy machine. The thread of a computing guest has used up its time slice, and the
// operating system may suspend it for tens of milliseconds, together with the next goroutine on it and the timers of
// its processor. So the guest keeps its thread to itself: others run on fresh threads.
func moreUnits(ctx context.Context, stack []uint64) {
	c := CallOf(ctx)
	p := &c.pace
	at := time.Since(c.Began)
	if at >= c.Deadline.Sub(c.Began) {
		panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded))
	}
	if ctx.Err() != nil {
		panic(sys.NewExitError(sys.ExitCodeContextCanceled))
	}
	switch took := at - p.looked; {
	case p.units == 0:
		p.units = maxUnits
	case took > lookEvery:
		p.units = max(minUnits, p.units*int64(lookEvery)/int64(took))
	default:
		p.units = min(maxUnits, 2*p.units)
	}
	p.looked = at
	if !p.ownThread && at-c.Queued-c.Backend > ownThreadAfter {
		runtime.LockOSThread()
		p.ownThread = true
	}
	if p.ownThread && at-p.yielded > lookEvery {
		runtime.Gosched()
		p.yielded = at
	}
	stack[0] = uint64(p.units)
}

// instantiateMeter makes the imports of metered modules available to all guests of a runtime.
func instantiateMeter(ctx context.Context, r wazero.Runtime, more api.GoFunc) error {
	_, err := r.NewHostModuleBuilder(meter.Module).NewFunctionBuilder().
		WithGoFunction(more, nil, []api.ValueType{api.ValueTypeI64}).Export(meter.Function).Instantiate(ctx)
	return err
}

// notMetered is the warning for a module that runs slowly.
func notMetered(err error) string {
	return fmt.Sprintf("not_metered: the module cannot be rewritten, and is stopped by wazero's own check, "+
		"which makes it several times slower: %v", err)
}
