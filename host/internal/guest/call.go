package guest

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
)

// Call is one entry into a guest: the operation, its limits, who serves its host calls, and what was measured.
type Call struct {
	// Op is the export to call.
	Op string
	// Powers serves the guest's host calls.
	Powers Powers
	Account

	// Began and Deadline are the start and the deadline of the call.
	Began, Deadline time.Time
	// Queued is how long the call waited for an instance, Guest how long it was in the guest, including host calls.
	Queued, Guest time.Duration

	// Border receives the call's host calls; nil means the Call itself.
	Border Border
	// Memory is the memory of the running instance, where host calls find their arguments.
	Memory Memory

	plugin     *Plugin
	ask        Ask      // the present host call
	pending    [][]byte // result of the last host call, not yet pulled
	headBuffer []byte
	ctx        context.Context
	pace       pace
}

// Left is how much of the call's time is left.
func (c *Call) Left() time.Duration { return max(0, time.Until(c.Deadline)) }

// Account is what a call has sent to its backend so far.
type Account struct {
	// IO lists the native calls in order; Backend is the time that they took.
	IO      []abi.IO
	Backend time.Duration
	// Effect is what is known about the effect of the native calls that are not reads. The highest value of several
	// counts.
	Effect egress.Effect
	// OnWrite is called before the first native call that is not a read; Noted is true afterwards.
	OnWrite func() error
	Noted   bool
}

// WillSend must be called before a native call is sent. An error of OnWrite prevents the call.
func (a *Account) WillSend(class abi.Class) error {
	if class == abi.ClassRead || a.OnWrite == nil || a.Noted {
		return nil
	}
	if err := a.OnWrite(); err != nil {
		return err
	}
	a.Noted = true
	return nil
}

// DidSend accounts for a native call that was sent or failed to be sent.
func (a *Account) DidSend(io abi.IO, took time.Duration, effect egress.Effect) {
	a.Backend += took
	a.IO = append(a.IO, io)
	if io.Class != string(abi.ClassRead) {
		a.Effect = max(a.Effect, effect)
	}
}

// Memory is memory that host calls address: a module's own, or Extism's blocks.
type Memory interface {
	Read(ptr, n uint32) ([]byte, bool)
	Size() uint32
}

// Breach is the panic, and the error, of a guest that violates the ABI. It becomes a trap.
type Breach string

func (b Breach) Error() string { return string(b) }

// view returns a view of the guest's memory, valid until the guest runs again. A range outside the memory is a breach.
func (c *Call) view(ptr, n uint64) []byte {
	b, ok := c.Memory.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(Breach(fmt.Sprintf("host call with %d bytes at %#x, outside the memory of %d bytes", uint32(n),
			uint32(ptr), c.Memory.Size())))
	}
	return b
}

// callContext is a context that carries the call to the host functions.
type callContext struct {
	context.Context
	call *Call
}

type callKey struct{}

// Value implements context.Context.
func (c callContext) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c.call
	}
	return c.Context.Value(key)
}

// CallOf returns the call that a host function belongs to.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// within starts the part of a call that may run guest code.
func (c *Call) within(ctx context.Context, p *Plugin) context.Context {
	c.ctx, c.plugin, c.pace = ctx, p, pace{}
	if c.Border == nil {
		c.Border = c
	}
	return callContext{ctx, c}
}

// Plugin is the plugin that is called, for errors.
func (c *Call) Plugin() *Plugin { return c.plugin }

// MayAnswer checks the length of an answer in bytes against the limit.
//
// Errors: too_large.
func (c *Call) MayAnswer(length int64) error {
	if limit := c.plugin.ResponseBytes; length > limit {
		return abi.NewError(abi.CodeTooLarge, fmt.Sprintf("plugin %s answered %s with %d bytes, the limit is %d",
			c.plugin.Name, c.Op, length, limit)).
			WithHint("ask for less (budget.max_tokens, max_items), or raise limits.response_bytes")
	}
	return nil
}

// pace tracks how long a guest has computed: the units that it was given, and whether it has its own thread.
type pace struct {
	looked    time.Duration // time into the call when a metered guest last asked for more
	yielded   time.Duration // time into the call when it last yielded
	units     int64         // number of units last given
	ownThread bool          // it has computed for so long that nothing else runs on its thread
}

// shareThread undoes the thread lock of moreUnits, when the guest waits for the host or has returned.
func (c *Call) shareThread() {
	if c.pace.ownThread {
		runtime.UnlockOSThread()
		c.pace.ownThread = false
	}
}
