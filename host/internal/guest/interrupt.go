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

// interruption is how a guest that does not return is stopped at its deadline. Nothing else knows how it is done.
type interruption interface {
	// name is what the run manifest and inspect say.
	name() string
	// configure sets up a runtime of its own.
	configure(wazero.RuntimeConfig) wazero.RuntimeConfig
	// more is the function of the host that prepared modules import, nil where they import none.
	more() api.GoFunc
	// prepare may rewrite a module that was checked, of a hash; quick reports whether an import only moves some bytes.
	//
	// Errors: wasmbin.ErrBeyond for a form that it does not know; any other error says that the module is not valid.
	prepare(sha256 string, wasm []byte, quick func(module, name string) bool) ([]byte, error)
}

// contextCheck is wazero's own: compiled code asks at each loop header and function entry whether the call's context is
// done. It takes every module and makes its code several times slower.
type contextCheck struct{}

func (contextCheck) name() string { return "wazero, context check" }

func (contextCheck) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCloseOnContextDone(true)
}

func (contextCheck) more() api.GoFunc { return nil }

func (contextCheck) prepare(_ string, wasm []byte, _ func(module, name string) bool) ([]byte, error) {
	return wasm, nil
}

// metered rewrites the module: it counts what it does and asks for more units when the count has run out.
type metered struct{ kept *rewrittenModules }

func (metered) name() string { return "wazero, metered" }

func (metered) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }

func (metered) more() api.GoFunc { return moreUnits }

func (m metered) prepare(sha256 string, wasm []byte, quick func(module, name string) bool) ([]byte, error) {
	return m.kept.find(sha256, func() ([]byte, error) { return meter.RewriteWith(wasm, quick) })
}

// A unit is about one instruction. Units are handed out so that a guest asks about every lookEvery, and at most
// maxUnits, because it may go on with instructions a hundred times slower than those before, such as loads that miss
// every cache: even those end maxUnits within some 10 ms. Ordinary code asks every 20 to 50 µs. After ownThreadAfter a
// guest that computes has a thread of its own and gives way to others every lookEvery.
const (
	minUnits       = 1 << 10
	maxUnits       = 1 << 17
	lookEvery      = 250 * time.Microsecond
	ownThreadAfter = 5 * time.Millisecond
)

// moreUnits is what a metered guest calls when it has used up its units. It is also where a guest that computes for
// long gives way to others.
//
// Giving way alone is not enough where the machine is busy. The thread of a guest that computes has used up what the
// operating system allots to it, and may rest for tens of milliseconds; the next goroutine on it, and the timers of its
// processor, rest with it. So the guest takes its thread along: others run on threads that are fresh.
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

// instantiateMeter makes what metered modules import available to every guest of a runtime.
func instantiateMeter(ctx context.Context, r wazero.Runtime, more api.GoFunc) error {
	_, err := r.NewHostModuleBuilder(meter.Module).NewFunctionBuilder().
		WithGoFunction(more, nil, []api.ValueType{api.ValueTypeI64}).Export(meter.Function).Instantiate(ctx)
	return err
}

// notMetered is the warning of a module that runs slowly.
func notMetered(err error) string {
	return fmt.Sprintf("not_metered: the module cannot be rewritten, and is stopped by wazero's own check, "+
		"which makes it several times slower: %v", err)
}
