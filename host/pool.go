package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// instance is one instantiation of a module. It runs one call at a time.
type instance struct {
	module    api.Module
	memory    api.Memory
	buffer    api.Function
	functions map[string]api.Function
	output    *tail
	stack     [1]uint64
	envelope  []byte
	limits    *Limits
	name      string
}

// run enters the guest once. The answer is the guest's own memory.
func (in *instance) run(ctx context.Context, c *call, envelope *abi.Envelope) (answer []byte, isError bool, err error) {
	in.output.reset()
	in.envelope = abi.AppendJSON(in.envelope[:0], envelope)
	n := uint64(len(in.envelope))
	if int64(n) > in.limits.RequestBytes {
		return nil, false, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the request has %d bytes, the limit is %d", n, in.limits.RequestBytes))
	}
	in.stack[0] = n
	if err := in.buffer.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, false, err
	}
	if ptr := uint32(in.stack[0]); ptr == 0 || !in.memory.Write(ptr, in.envelope) {
		return nil, false, abiBreach{fmt.Sprintf("%s(%d) gave %#x, which has no room for it in the memory of %d bytes", abi.BufferExport, n, ptr, in.memory.Size())}
	}
	in.stack[0] = n
	if err := in.function(c.op).CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, false, err
	}
	if in.stack[0] == 0 {
		return nil, false, abiBreach{"answered zero"}
	}
	ptr, length, isError := abi.Unpack(in.stack[0])
	if int64(length) > in.limits.ResponseBytes {
		return nil, false, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("plugin %s answered %s with %d bytes, the limit is %d", in.name, c.op, length, in.limits.ResponseBytes)).
			WithHint("ask for less (budget.max_tokens, max_items), or raise limits.response_bytes")
	}
	answer, ok := in.memory.Read(ptr, length)
	if !ok || length == 0 {
		return nil, false, abiBreach{fmt.Sprintf("answered %d bytes at %#x, outside the memory of %d bytes", length, ptr, in.memory.Size())}
	}
	return answer, isError, nil
}

// function finds an operation. Each costs a stack of 10 KiB, so an instance has those that it was asked for.
func (in *instance) function(op string) api.Function {
	f, ok := in.functions[op]
	if !ok {
		f = in.module.ExportedFunction(op)
		in.functions[op] = f
	}
	return f
}

// said is the end of what the guest printed during the last call: a panic's text.
func (in *instance) said() string { return in.output.String() }

// pool keeps the instances of a provider: at most size, each used by one call at a time.
type pool struct {
	provider *Provider
	compiled wazero.CompiledModule
	seats    chan struct{} // one token per instance that may be in use

	waiting atomic.Int64
	made    atomic.Int64
	dropped atomic.Int64

	mu   sync.Mutex
	idle []*instance // the last used on top, since its memory is warm
}

func newPool(p *Provider, compiled wazero.CompiledModule) *pool {
	return &pool{provider: p, compiled: compiled, seats: make(chan struct{}, p.limits.Pool)}
}

// take waits for a seat until ctx ends and hands out an idle instance or a new one.
func (l *pool) take(ctx context.Context) (*instance, error) {
	select {
	case l.seats <- struct{}{}:
	default:
		if err := l.queue(ctx); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		in := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return in, nil
	}
	l.mu.Unlock()
	in, err := l.instantiate(ctx)
	if err != nil {
		<-l.seats
	}
	return in, err
}

func (l *pool) queue(ctx context.Context) error {
	defer l.waiting.Add(-1)
	if limit := int64(l.provider.limits.CallsInFlight); l.waiting.Add(1)+int64(cap(l.seats)) > limit {
		e := abi.NewError(abi.CodeRateLimited, fmt.Sprintf("more than %d calls in flight at plugin %s", limit, l.provider.name))
		after := int64(100)
		e.RetryAfterMS = &after
		return e
	}
	select {
	case l.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("no instance of plugin %s came free in time: all %d are busy", l.provider.name, cap(l.seats)), context.Cause(ctx)).
			WithReason("busy").WithHint("raise limits.pool, or send fewer calls at once")
	}
}

// give returns an instance. A broken one, or one that grew beyond the high-water mark, is thrown away.
func (l *pool) give(in *instance, broken bool) {
	if broken || int64(in.memory.Size()) > l.provider.limits.HighWaterBytes {
		l.dropped.Add(1)
		_ = in.module.Close(context.Background())
	} else {
		if cap(in.envelope) > maxKeptBuffer {
			in.envelope = nil
		}
		l.mu.Lock()
		l.idle = append(l.idle, in)
		l.mu.Unlock()
	}
	<-l.seats
}

// maxKeptBuffer bounds the request buffer that an idle instance keeps on the host's side.
const maxKeptBuffer = 1 << 20

// instantiate starts an instance: a module's start function and _initialize run under the start deadline.
func (l *pool) instantiate(ctx context.Context) (*instance, error) {
	p := l.provider
	began := time.Now()
	c := &call{provider: p, op: abi.InitExport, began: began, deadline: began.Add(p.limits.StartDeadline), tape: p.host.tape.start()}
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()
	c.ctx = ctx
	output := new(tail)
	// Its own clocks and randomness; no files, no arguments, no environment. Anonymous, so that several live side by side.
	config := wazero.NewModuleConfig().WithName("").WithStdout(output).WithStderr(output).
		WithSysWalltime().WithSysNanotime().WithRandSource(randomness{}).WithStartFunctions(abi.InitExport)
	if t := p.host.tape; t != nil {
		config = config.WithWalltime(t.walltime, sys.ClockResolution(tick)).WithNanotime(t.nanotime, sys.ClockResolution(tick)).WithRandSource(t)
	}
	module, err := p.module.engine.runtime.InstantiateModule(callContext{ctx, c}, l.compiled, config)
	if err != nil {
		err = p.explain(ctx, c, &instance{output: output}, fmt.Errorf("at its start: %w", err))
	}
	if err = c.tape.leave(c, nil, false, err); err != nil {
		return nil, err
	}
	in := &instance{module: module, memory: module.Memory(), buffer: module.ExportedFunction(abi.BufferExport),
		functions: map[string]api.Function{}, output: output, limits: &p.limits, name: p.name}
	l.made.Add(1)
	return in, nil
}

// close throws away every idle instance. The caller has seen to it that none is in use.
func (l *pool) close(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.idle {
		_ = in.module.Close(ctx)
	}
	l.idle = nil
}
