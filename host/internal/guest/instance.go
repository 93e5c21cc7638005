package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// Starter starts instances. NewStarter returns the plain one; a tape wraps it.
type Starter interface {
	// Start starts an instance for a call of abi.InitExport. Its error explains to the caller what happened.
	Start(ctx context.Context, c *Call) (Instance, error)
}

// Instance is a guest that has started.
type Instance interface {
	// Enter calls the operation c.Op with an envelope. The answer is in the guest's own memory, valid until the next
	// Enter. An error is an *abi.Error that says why the guest did not answer.
	Enter(ctx context.Context, c *Call, envelope *abi.Envelope) (answer []byte, isError bool, err error)
	// MemoryBytes is the present size of the instance's memory.
	MemoryBytes() int64
	Close()
}

type starter struct {
	plugin  *Plugin
	program Program
	senses  Senses
}

// NewStarter returns a Starter for instances of a program, with their clock and randomness.
func NewStarter(p *Plugin, program Program, senses Senses) Starter {
	return &starter{p, program, senses}
}

// Start implements Starter.
func (s *starter) Start(ctx context.Context, c *Call) (Instance, error) {
	in := &instance{plugin: s.plugin}
	// No files, no arguments, no environment.
	config := wazero.NewModuleConfig().WithStdout(&in.output).WithStderr(&in.output).WithRandSource(s.senses).
		WithNanotime(s.senses.Nano, resolution).WithWalltime(func() (sec int64, nsec int32) {
		now := s.senses.Now()
		return now.Unix(), int32(now.Nanosecond())
	}, resolution)
	guest, err := s.program.Instantiate(c.within(ctx, s.plugin), c, config)
	c.shareThread()
	if err != nil {
		return nil, c.failed(c.explain(in, fmt.Errorf("at its start: %w", err)))
	}
	in.guest = guest
	return in, nil
}

// resolution is the resolution of WASI's clocks, in ns.
const resolution = sys.ClockResolution(time.Microsecond)

// instance is a guest with the host's data about it.
type instance struct {
	plugin   *Plugin
	guest    Guest
	output   output
	envelope []byte
}

// Enter implements Instance.
func (in *instance) Enter(ctx context.Context, c *Call, envelope *abi.Envelope) (answer []byte, isError bool,
	err error) {
	began := time.Now()
	in.output.reset()
	in.envelope = abi.AppendJSON(in.envelope[:0], envelope)
	if n, limit := int64(len(in.envelope)), in.plugin.RequestBytes; n > limit {
		err = abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the request has %d bytes, the limit is %d", n, limit))
		return nil, false, c.failed(err)
	}
	answer, isError, err = in.guest.Enter(c.within(ctx, in.plugin), c, in.envelope)
	c.shareThread()
	c.Guest = time.Since(began)
	if cap(in.envelope) > MaxKeptBuffer {
		in.envelope = nil
	}
	if err != nil {
		return nil, false, c.failed(c.explain(in, err))
	}
	return answer, isError, nil
}

// MaxKeptBuffer bounds the buffers that the host keeps for an idle instance, in bytes.
const MaxKeptBuffer = 1 << 20

// MemoryBytes implements Instance.
func (in *instance) MemoryBytes() int64 { return in.guest.MemoryBytes() }

// Close implements Instance.
func (in *instance) Close() { in.guest.Close() }

// ReasonStopped is the error reason for a guest that was stopped.
const ReasonStopped = "stopped"

// failed completes an error with what is known about the call.
func (c *Call) failed(err error) *abi.Error { return c.plugin.Failed(c.Op, err) }

// Failed adds the operation to an error and removes secrets. A code that is not in the contract becomes internal.
func (p *Plugin) Failed(op string, err error) *abi.Error {
	e := p.Redact(abi.AsError(err))
	if e.Code.HTTPStatus(false) == 500 && e.Code != abi.CodeInternal {
		e.Message = fmt.Sprintf("(unknown code %q) %s", e.Code, e.Message)
		e.Code = abi.CodeInternal
	}
	e.Operation = op
	return e
}

// Breach is the error for a plugin that violates the ABI.
func (p *Plugin) Breach(op, what string) *abi.Error {
	e := abi.NewError(abi.CodeInternal, fmt.Sprintf("plugin %s, export %s: %s", p.Name, op, what)).WithReason("abi").
		WithHint("this is a defect of the module, not of the request; its instance was thrown away")
	e.Operation = op
	return e
}

// explain turns the error of a guest that did not answer into an explanation of what happened.
func (c *Call) explain(in *instance, err error) error {
	var breach Breach
	var exit *sys.ExitError
	var ready *abi.Error
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &breach):
		return c.plugin.Breach(c.Op, string(breach))
	case c.ctx.Err() != nil || errors.As(err, &exit) &&
		(exit.ExitCode() == sys.ExitCodeDeadlineExceeded || exit.ExitCode() == sys.ExitCodeContextCanceled):
		return c.stopped()
	case errors.As(err, &exit):
		return c.plugin.Breach(c.Op, fmt.Sprintf("ended itself with exit code %d", exit.ExitCode()))
	}
	what, _, _ := strings.Cut(err.Error(), "\n")
	e := c.plugin.Breach(c.Op, "trapped: "+what).WithReason("trap")
	if output := in.output.String(); output != "" {
		e.Message += "; it said: " + output
		e.Native = &abi.NativeError{Body: output}
		if strings.Contains(output, "out of memory") {
			e.Hint = in.outOfMemory()
		}
	}
	// A guest in C has no message: its allocator returns nothing, and it reaches unreachable.
	if in.guest != nil && in.plugin.MemoryBytes > 0 && in.guest.MemoryBytes() > in.plugin.MemoryBytes/2 {
		e.Hint = in.outOfMemory()
	}
	return e
}

// outOfMemory is the hint for a guest that reached its memory limit.
func (in *instance) outOfMemory() string {
	return fmt.Sprintf("one operation may use %d MiB of memory (limits.memory_bytes), and this one needed more: raise "+
		"the limit, or ask for less at once; what the plugin can do about it is in docs/write-a-plugin.md",
		in.plugin.MemoryBytes>>20)
}

// stopped is the error for a guest that was stopped at its deadline, or because its caller went away.
func (c *Call) stopped() *abi.Error {
	e := abi.WrapError(abi.CodeTimeout, fmt.Sprintf("plugin %s was stopped in %s after %d ms", c.plugin.Name, c.Op,
		time.Since(c.Began).Milliseconds()),
		cmp.Or(context.Cause(c.ctx), context.DeadlineExceeded))
	if errors.Is(c.ctx.Err(), context.Canceled) {
		e.Message = fmt.Sprintf("the caller of %s went away, plugin %s was stopped", c.Op, c.plugin.Name)
	}
	switch n := len(c.IO); {
	case n > 0 && c.IO[n-1].Status == 0:
		e.Route = c.IO[n-1].Route
		e.Message += ", waiting for route " + e.Route
		e.Hint = "the backend did not answer in time: is it well, and is its URL right?"
	case !errors.Is(c.ctx.Err(), context.Canceled):
		e.Hint = "it was in its own code, not waiting for a backend: it loops, or its deadline is too short for " +
			"it (deadlines_ms in its manifest, else limits.deadline_ms); --log-level debug shows its last log lines"
	}
	return e.WithReason(ReasonStopped)
}
