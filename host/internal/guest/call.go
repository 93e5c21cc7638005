package guest

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
)

// Call is one entry into a guest: what it is asked, until when, who answers it, and what was found out about it.
type Call struct {
	// Op is the export that is entered.
	Op string
	// Powers answer what the guest asks.
	Powers Powers
	Account

	// Began and Deadline bound the call.
	Began, Deadline time.Time
	// Queued is how long it waited for an instance, Guest how long it was in the guest, host calls included.
	Queued, Guest time.Duration

	// Border receives the host calls of the call; nil means the Call itself.
	Border Border
	// Memory is the memory of the instance that runs, where host calls find their arguments.
	Memory Memory

	plugin     *Plugin
	ask        Ask      // the host call under way
	pending    [][]byte // result of the last host call, not pulled yet
	headBuffer []byte
	ctx        context.Context
	pace       pace
}

// Left is the rest of the call's time.
func (c *Call) Left() time.Duration { return max(0, time.Until(c.Deadline)) }

// Account is what a call sent to its backend, so far.
type Account struct {
	// IO are the native calls in order, Backend is the time that they took.
	IO      []abi.IO
	Backend time.Duration
	// Effect is what is known of the effect of the native calls that are not reads. Of several, the highest counts.
	Effect egress.Effect
	// OnWrite is called before the first native call that is not a read is sent; Noted is true once it was.
	OnWrite func() error
	Noted   bool
}

// WillSend is called before a native call is sent. An error of OnWrite prevents it.
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

// DidSend accounts for a native call that was sent, or could not be.
func (a *Account) DidSend(io abi.IO, took time.Duration, effect egress.Effect) {
	a.Backend += took
	a.IO = append(a.IO, io)
	if io.Class != string(abi.ClassRead) {
		a.Effect = max(a.Effect, effect)
	}
}

// Memory is memory by address: a module's own, or Extism's blocks.
type Memory interface {
	Read(ptr, n uint32) ([]byte, bool)
	Size() uint32
}

// Breach is the panic, and the error, of a guest that does not keep to the ABI. It becomes a trap.
type Breach string

func (b Breach) Error() string { return string(b) }

// view returns the guest's own bytes: valid until the guest runs again. A range outside of the memory is a breach.
func (c *Call) view(ptr, n uint64) []byte {
	b, ok := c.Memory.Read(uint32(ptr), uint32(n))
	if !ok {
		panic(Breach(fmt.Sprintf("host call with %d bytes at %#x, outside the memory of %d bytes", uint32(n),
			uint32(ptr), c.Memory.Size())))
	}
	return b
}

// inCall carries the call to the host functions.
type inCall struct {
	context.Context
	call *Call
}

type callKey struct{}

// Value implements context.Context.
func (c inCall) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c.call
	}
	return c.Context.Value(key)
}

// CallOf is the call under way in a host function.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// within begins the part of a call that may run guest code.
func (c *Call) within(ctx context.Context, p *Plugin) context.Context {
	c.ctx, c.plugin, c.pace = ctx, p, pace{}
	if c.Border == nil {
		c.Border = c
	}
	return inCall{ctx, c}
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

// pace is the progress of a call: the units that it was given, and whether it holds a thread.
type pace struct {
	looked    time.Duration // after the call began: when a metered guest last asked for more
	yielded   time.Duration // after the call began: when it last gave way to others
	units     int64         // what it was given last
	ownThread bool          // it has computed for so long that nothing else runs on its thread
}

// shareThread ends what moreUnits has begun, when the guest waits for the host or has returned.
func (c *Call) shareThread() {
	if c.pace.ownThread {
		runtime.UnlockOSThread()
		c.pace.ownThread = false
	}
}
