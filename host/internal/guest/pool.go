package guest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
)

// Plugin is what all instances of a provider share.
type Plugin struct {
	// Name is the provider's name, for messages.
	Name string
	// RequestBytes and ResponseBytes bound a guest's requests and answers. An instance whose memory exceeds
	// HighWaterBytes is discarded after use.
	RequestBytes, ResponseBytes, HighWaterBytes int64
	// MemoryBytes bounds the memory of an instance, for messages.
	MemoryBytes int64
	// Size is the number of instances; CallsInFlight is the most callers that run or wait.
	Size, CallsInFlight int
	// StartDeadline bounds the start of an instance.
	StartDeadline time.Duration
	// Redact returns an error without the operator's secrets.
	Redact func(*abi.Error) *abi.Error
	// Starting returns the call for an instance that starts, with its powers.
	Starting func() *Call
}

// Pool holds the instances of a provider: at most Plugin.Size, each used by one call at a time.
type Pool struct {
	plugin *Plugin
	from   Starter
	seats  chan struct{} // one token for each instance that may be in use

	waiting atomic.Int64

	mu   sync.Mutex
	idle []Instance // the last used on top, because its memory is warm
}

// NewPool creates a pool that gets its instances from a Starter.
func NewPool(p *Plugin, from Starter) *Pool {
	return &Pool{plugin: p, from: from, seats: make(chan struct{}, p.Size)}
}

// Enter runs one call: it takes or starts an instance, passes the envelope in and returns the answer. It sets the
// envelope's DeadlineMS. isError means that the guest answered with an error object.
//
// Errors: timeout if the deadline passed; internal for a trap or a breach of the ABI; rate_limited if too many calls
// wait.
func (l *Pool) Enter(ctx context.Context, c *Call, envelope *abi.Envelope) (answer []byte, isError bool, err error) {
	began := c.Began
	c.plugin = l.plugin
	in, err := l.take(ctx)
	c.Queued = time.Since(began)
	if err != nil {
		return nil, false, c.failed(err)
	}
	envelope.DeadlineMS = c.Left().Milliseconds()
	answer, isError, err = in.Enter(ctx, c, envelope)
	answer = bytes.Clone(answer)
	l.give(in, err != nil)
	return answer, isError, err
}

// Warm starts the first instance, so that a module that cannot start is detected before it serves.
func (l *Pool) Warm(ctx context.Context) error {
	in, err := l.take(ctx)
	if err != nil {
		return err
	}
	l.give(in, false)
	return nil
}

// take waits for a seat until ctx ends, and returns an idle instance or a new one.
func (l *Pool) take(ctx context.Context) (Instance, error) {
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
	in, err := l.start(ctx)
	if err != nil {
		<-l.seats
	}
	return in, err
}

// start starts an instance: a module's start function and _initialize run under the start deadline.
func (l *Pool) start(ctx context.Context) (Instance, error) {
	c := l.plugin.Starting()
	c.plugin, c.Began = l.plugin, time.Now()
	c.Deadline = c.Began.Add(l.plugin.StartDeadline)
	ctx, cancel := context.WithDeadline(ctx, c.Deadline)
	defer cancel()
	return l.from.Start(ctx, c)
}

func (l *Pool) queue(ctx context.Context) error {
	defer l.waiting.Add(-1)
	if limit := int64(l.plugin.CallsInFlight); l.waiting.Add(1)+int64(cap(l.seats)) > limit {
		e := abi.NewError(abi.CodeRateLimited,
			fmt.Sprintf("more than %d calls in flight at plugin %s", limit, l.plugin.Name))
		after := int64(100)
		e.RetryAfterMS = &after
		return e
	}
	select {
	case l.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("no instance of plugin %s came free in time: all %d are busy",
			l.plugin.Name, cap(l.seats)), context.Cause(ctx)).
			WithReason("busy").WithHint("raise limits.pool, or send fewer calls at once")
	}
}

// give returns an instance to the pool. It discards one that is broken, or whose memory exceeds the high-water mark.
func (l *Pool) give(in Instance, broken bool) {
	if broken || in.MemoryBytes() > l.plugin.HighWaterBytes {
		in.Close()
	} else {
		l.mu.Lock()
		l.idle = append(l.idle, in)
		l.mu.Unlock()
	}
	<-l.seats
}

// Close discards every idle instance. The caller ensures that none is in use.
func (l *Pool) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.idle {
		in.Close()
	}
	l.idle = nil
}
