package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/tetratelabs/wazero/sys"
)

// call is one entry into a guest: what the host functions need to know of it, and what they found out.
type call struct {
	provider   *Provider
	op         string
	scope      abi.MemoryScope
	generation int64
	readOnly   bool
	began      time.Time
	deadline   time.Time
	state      *stateTx // nil: the operation has no scope
	resume     *abi.Resume
	// onFirstWrite is called before the first native call of a write leaves; noted says that it was, landed what became of what was sent.
	onFirstWrite func() error
	noted        bool
	landed       egress.Effect

	ctx        context.Context
	blocks     *blocks  // of an Extism module: the memory that it shares with the host
	pending    [][]byte // result of the last host call, not pulled yet
	headBuffer []byte
	io         []abi.IO
	backend    time.Duration
	queued     time.Duration // waiting for an instance
	guest      time.Duration // in the guest, host calls included
	looked     time.Duration // after began: when a metered guest last asked for more
	yielded    time.Duration // after began: when it last gave way to others
	units      int64         // what it was given
	ownThread  bool          // it has computed for so long that nothing else runs on its thread
	logBytes   int64
	logCut     bool
	tape       *entryTape // nil: nothing is recorded or played
}

// remaining is what is left of the call's time.
func (c *call) remaining() time.Duration {
	if t := c.provider.host.tape; t != nil && t.record != nil && t.record.timeless {
		return c.deadline.Sub(c.began)
	}
	return max(0, time.Until(c.deadline))
}

// callContext carries the call to the host functions.
type callContext struct {
	context.Context
	call *call
}

type callKey struct{}

// Value implements context.Context.
func (c callContext) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c.call
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// enter runs one operation: checkout, request in, answer out. request is the whole envelope; decode reads the answer, whose bytes are valid only until it returns.
//
// Errors: timeout when the deadline ended, internal for a trap or a breach of the ABI, rate_limited when too many calls wait, or what the guest answered.
func (p *Provider) enter(ctx context.Context, c *call, envelope *abi.Envelope, out abi.Decodable) error {
	began := time.Now()
	c.provider, c.began = p, began
	c.deadline = began.Add(p.deadline(c.op) + p.host.tape.slack())
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()
	in, err := p.pool.take(ctx)
	c.queued = time.Since(began)
	if err != nil {
		return c.failed(err)
	}
	c.ctx = ctx
	envelope.DeadlineMS = c.remaining().Milliseconds()
	c.tape = p.host.tape.enter(c, envelope, cancel)
	answer, isError, err := in.run(callContext{ctx, c}, envelope)
	c.guest = time.Since(began) - c.queued
	defer p.pool.give(in, err != nil)
	defer accountOf(ctx).add(c)
	if err != nil {
		err = c.failed(p.explain(ctx, c, in, err))
	}
	if err = c.tape.leave(c, answer, isError, err); err != nil {
		return err
	}
	if isError {
		e := new(abi.Error)
		if err := abi.Unmarshal(answer, e); err != nil || e.Code == "" {
			return c.failed(p.breach(c.op, "answered an error object that cannot be read"))
		}
		return c.failed(e)
	}
	if err := abi.UnmarshalOwned(bytes.Clone(answer), out); err != nil {
		return c.failed(p.breach(c.op, "answered what is no "+c.op+" answer: "+abi.AsError(err).Message))
	}
	return nil
}

// reasonStopped is the reason of the error of a guest that was stopped.
const reasonStopped = "stopped"

// failed completes an error with what the host knows. A guest's error is taken with its code, unless it is none of the contract's.
func (c *call) failed(err error) *abi.Error {
	e := c.provider.network.Redactor().Error(abi.AsError(err))
	if e.Code.HTTPStatus(false) == 500 && e.Code != abi.CodeInternal {
		e.Message = fmt.Sprintf("(unknown code %q) %s", e.Code, e.Message)
		e.Code = abi.CodeInternal
	}
	e.Operation = c.op
	return e
}

// explain turns the error of a run that did not return into what happened.
func (p *Provider) explain(ctx context.Context, c *call, in *instance, err error) error {
	var breach abiBreach
	var exit *sys.ExitError
	var ready *abi.Error
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &breach):
		return p.breach(c.op, breach.message)
	case ctx.Err() != nil || errors.As(err, &exit) && (exit.ExitCode() == sys.ExitCodeDeadlineExceeded || exit.ExitCode() == sys.ExitCodeContextCanceled):
		e := abi.WrapError(abi.CodeTimeout, fmt.Sprintf("plugin %s was stopped in %s after %d ms", p.name, c.op, time.Since(c.began).Milliseconds()), cmp.Or(context.Cause(ctx), context.DeadlineExceeded))
		if errors.Is(ctx.Err(), context.Canceled) {
			e.Message = fmt.Sprintf("the caller of %s went away, plugin %s was stopped", c.op, p.name)
		}
		if n := len(c.io); n > 0 && c.io[n-1].Status == 0 {
			e.Route = c.io[n-1].Route
			e.Message += ", waiting for route " + e.Route
			e.Hint = "the backend did not answer in time: is it well, and is its URL right?"
		}
		return e.WithReason(reasonStopped)
	case errors.As(err, &exit):
		return p.breach(c.op, fmt.Sprintf("ended itself with exit code %d", exit.ExitCode()))
	}
	e := p.breach(c.op, "trapped: "+firstLine(err.Error())).WithReason("trap")
	if said := in.said(); said != "" {
		e.Message += "; it said: " + said
		e.Native = &abi.NativeError{Body: said}
		if strings.Contains(said, "out of memory") {
			e.Hint = "one operation needed more memory than limits.memory_bytes: raise it, or ask for less at once; what the plugin can do about it stands in docs/write-a-plugin.md"
		}
	}
	return e
}

// breach is the error of a plugin that does not keep to the ABI.
func (p *Provider) breach(op, what string) *abi.Error {
	e := abi.NewError(abi.CodeInternal, fmt.Sprintf("plugin %s, export %s: %s", p.name, op, what)).WithReason("abi").
		WithHint("this is a defect of the module, not of the request; its instance was thrown away")
	e.Operation = op
	return e
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i]
		}
	}
	return s
}
