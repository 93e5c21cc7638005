package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// instance is one guest with what the host keeps beside it.
type instance struct {
	guest
	output   *tail
	envelope []byte
}

// run enters the guest once. The answer is the guest's own memory.
func (in *instance) run(ctx callContext, envelope *abi.Envelope) (answer []byte, isError bool, err error) {
	in.output.reset()
	in.envelope = abi.AppendJSON(in.envelope[:0], envelope)
	if n, limit := int64(len(in.envelope)), ctx.call.provider.limits.RequestBytes; n > limit {
		return nil, false, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the request has %d bytes, the limit is %d", n, limit))
	}
	defer ctx.call.shareThread()
	return in.enter(ctx, in.envelope)
}

// said is the end of what the guest printed during the last call: a panic's text.
func (in *instance) said() string { return in.output.String() }

// pool keeps the instances of a provider: at most size, each used by one call at a time.
type pool struct {
	provider *Provider
	seats    chan struct{} // one token per instance that may be in use

	waiting atomic.Int64
	made    atomic.Int64
	dropped atomic.Int64

	mu   sync.Mutex
	idle []*instance // the last used on top, since its memory is warm
}

func newPool(p *Provider) *pool {
	return &pool{provider: p, seats: make(chan struct{}, p.limits.Pool)}
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
	if broken || in.memoryBytes() > l.provider.limits.HighWaterBytes {
		l.dropped.Add(1)
		in.close()
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
	// Its own clocks and randomness; no files, no arguments, no environment.
	config := wazero.NewModuleConfig().WithStdout(output).WithStderr(output).WithSysWalltime().WithSysNanotime().WithRandSource(randomness{})
	if t := p.host.tape; t != nil {
		config = config.WithWalltime(t.walltime, sys.ClockResolution(tick)).WithNanotime(t.nanotime, sys.ClockResolution(tick)).WithRandSource(t)
	}
	g, err := p.module.program.instantiate(callContext{ctx, c}, config)
	c.shareThread()
	if err != nil {
		err = p.explain(ctx, c, &instance{output: output}, fmt.Errorf("at its start: %w", err))
	}
	if err = c.tape.leave(c, nil, false, err); err != nil {
		if g != nil {
			g.close()
		}
		return nil, err
	}
	in := &instance{guest: g, output: output}
	l.made.Add(1)
	return in, nil
}

// close throws away every idle instance. The caller has seen to it that none is in use.
func (l *pool) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.idle {
		in.close()
	}
	l.idle = nil
}
