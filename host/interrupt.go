package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/meter"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// interruption is how a guest that does not return is stopped at its deadline. It is a seam: how it is done shows nowhere else.
type interruption interface {
	// name is what the run manifest and inspect say.
	name() string
	// configure sets up a runtime of its own.
	configure(wazero.RuntimeConfig) wazero.RuntimeConfig
	// more is the function of the host that prepared modules import, nil where they import none.
	more() api.GoFunc
	// prepare may rewrite a module that was validated and hashed; sha256 is of what it is given. An error says that it cannot.
	prepare(sha256 string, wasm []byte) ([]byte, error)
}

// contextCheck is wazero's own: compiled code asks at each loop header and function entry whether the call's context is done. It takes every module and makes its
// code several times slower.
type contextCheck struct{}

var _ interruption = contextCheck{}

func (contextCheck) name() string { return "wazero, context check" }

func (contextCheck) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCloseOnContextDone(true)
}

func (contextCheck) more() api.GoFunc { return nil }

func (contextCheck) prepare(_ string, wasm []byte) ([]byte, error) { return wasm, nil }

// metered rewrites the module: it counts what it does and asks more when the count has run out.
type metered struct{ kept *rewrittenModules }

var _ interruption = metered{}

func (metered) name() string { return "wazero, metered" }

func (metered) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }

func (metered) more() api.GoFunc { return more }

func (m metered) prepare(sha256 string, wasm []byte) ([]byte, error) {
	return m.kept.find(sha256, func() ([]byte, error) { return meter.RewriteWith(wasm, quickImport) })
}

// Units are handed out so that a guest asks about every lookEvery, and at most maxUnits, because it may go on with instructions a hundred times slower than those
// before, such as loads that miss every cache: even those end maxUnits within some 10 ms. Ordinary code asks every 20 to 50 µs. ownThreadAfter is what a guest
// computes like any other goroutine; from then on it has a thread of its own and gives way to others every lookEvery.
const (
	minUnits       = 1 << 10
	maxUnits       = 1 << 17
	lookEvery      = 250 * time.Microsecond
	ownThreadAfter = 5 * time.Millisecond
)

// more is what a metered guest calls when it has used up its units. It is also where a guest that computes for long gives way to others.
//
// Giving way alone is not enough where the machine is busy. The thread of a guest that computes has used up what the operating system allots to it, and may rest for
// tens of milliseconds; whichever goroutine runs on it next, and whichever timer its processor keeps, rests with it. So the guest takes its thread along: others
// run on threads that are fresh.
func more(ctx context.Context, stack []uint64) {
	c := callOf(ctx)
	at := time.Since(c.began)
	if at >= c.deadline.Sub(c.began) {
		panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded))
	}
	if ctx.Err() != nil {
		panic(sys.NewExitError(sys.ExitCodeContextCanceled))
	}
	switch took := at - c.looked; {
	case c.units == 0:
		c.units = maxUnits
	case took > lookEvery:
		c.units = max(minUnits, c.units*int64(lookEvery)/int64(took))
	default:
		c.units = min(maxUnits, 2*c.units)
	}
	c.looked = at
	if !c.ownThread && at-c.queued-c.backend > ownThreadAfter {
		runtime.LockOSThread()
		c.ownThread = true
	}
	if c.ownThread && at-c.yielded > lookEvery {
		runtime.Gosched()
		c.yielded = at
	}
	stack[0] = uint64(c.units)
}

// shareThread ends what more has begun, when the guest waits for others or has returned.
func (c *call) shareThread() {
	if c.ownThread {
		runtime.UnlockOSThread()
		c.ownThread = false
	}
}

// engine is a wasm runtime with one way to stop its guests.
type engine struct {
	interruption
	runtime wazero.Runtime
}

// meterModule makes what metered modules import available to every guest of the runtime.
func meterModule(ctx context.Context, r wazero.Runtime, ask api.GoFunc) error {
	_, err := r.NewHostModuleBuilder(meter.Module).NewFunctionBuilder().
		WithGoFunction(ask, nil, []api.ValueType{api.ValueTypeI64}).Export(meter.Function).Instantiate(ctx)
	return err
}

// warnUnmetered says that a module runs slowly.
const warnUnmetered = "not_metered: "

// EngineOf tells how a module that Inspect accepts will be run, without compiling it, and warns if that is the slow way.
func EngineOf(m *Module, wasm []byte) (name string, warnings []string) {
	prepare, engine := interruption.prepare, interruption.name
	if m.Manifest.ABI == abi.ABIExtism {
		prepare, engine = prepareExtism, extismName
	}
	quick := metered{keepRewritten("")}
	if _, err := prepare(quick, m.SHA256, wasm); err != nil {
		return engine(contextCheck{}), append(slices.Clone(m.Warnings), notMetered(err))
	}
	return engine(quick), m.Warnings
}

func notMetered(err error) string {
	return warnUnmetered + fmt.Sprintf("the module cannot be rewritten, and is stopped by wazero's own check, which makes it several times slower: %v", err)
}
