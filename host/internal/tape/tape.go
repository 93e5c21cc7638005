// Package tape records what a slot does, and replays it. It does so from outside: a Tape wraps the operations of the
// contract (Begin), the instances of a guest (Starter), the guest's host calls (guest.Border), the host's clock (Now,
// Pause, Measured) and its store (Store). A replay runs everything in between, the host's own code, again, so that it
// checks the whole answer and not only the guest's part.
//
// Reading order: tape.go (operations and clock), record.go, play.go, store.go. Package cassette has the file format.
package tape

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/guest"
)

// Tape records or replays. It runs one operation at a time, with a virtual clock and seeded randomness.
type Tape struct {
	logger hclog.Logger
	seed   []byte
	// turn is held by the running operation.
	turn chan struct{}

	mu      sync.Mutex
	current *operation // nil between operations
	last    time.Time  // last reading of the clock

	record *recording // nil while replaying
	play   *playback  // nil while recording
}

var _ guest.Senses = (*Tape)(nil)

// operation is the one being recorded or replayed.
type operation struct {
	cassette.Operation
	random *rand.ChaCha8
	// entry, elapsed and usage are the indexes of the next ones to replay; commits counts commits.
	entry, elapsed, usage int
	commits               int64
}

func newTape(logger hclog.Logger, seed []byte) *Tape {
	return &Tape{logger: logger, seed: seed, turn: make(chan struct{}, 1)}
}

type operationKey struct{}

// Inside marks a context as belonging to an operation on the tape.
func Inside(ctx context.Context) context.Context {
	return context.WithValue(ctx, operationKey{}, true)
}

func inside(ctx context.Context) bool { return ctx.Value(operationKey{}) != nil }

// tick is how far the clock advances with each reading.
const tick = time.Microsecond

// Begin waits for its turn and opens an operation; end closes it. An operation inside another one is part of that one.
//
// Errors: timeout if ctx ends before the operation's turn.
func (t *Tape) Begin(ctx context.Context, name string, request abi.Encodable) (_ context.Context,
	end func(answer abi.Encodable, err error), err error) {
	if inside(ctx) {
		return ctx, func(abi.Encodable, error) {}, nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		e := abi.WrapError(abi.CodeTimeout, "another operation ran: a slot that records does one at a time",
			context.Cause(ctx)).WithReason("busy")
		e.Operation = name
		return ctx, nil, e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.play == nil {
		t.open(&operation{Operation: cassette.Operation{Name: name, Request: t.encoded(request)}})
	}
	return Inside(ctx), func(answer abi.Encodable, err error) {
		t.mu.Lock()
		t.end(answer, err)
		t.mu.Unlock()
		<-t.turn
	}, nil
}

// open makes an operation the present one, with a clock that never goes back behind the previous operation's. The
// caller holds mu.
func (t *Tape) open(o *operation) {
	if t.record != nil {
		o.N = t.record.operations + 1
		t.last = t.after(t.record.now())
		o.At = stamp(t.last)
	} else {
		t.setClock(o.At)
	}
	o.random = rand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64([]byte(string(t.seed)+"\x00"), uint64(o.N))))
	t.current = o
}

func (t *Tape) setClock(at string) {
	if parsed, err := time.Parse(time.RFC3339Nano, at); err == nil {
		t.last = parsed
	}
}

// after returns now, or a tick after the last reading if the real clock went back.
func (t *Tape) after(now time.Time) time.Time {
	now = now.UTC().Truncate(tick)
	if !now.After(t.last) {
		now = t.last.Add(tick)
	}
	return now
}

// Now reads the clock: virtual inside an operation; real outside of one while recording.
func (t *Tape) Now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil && t.record != nil {
		t.last = t.after(t.record.now())
	} else {
		t.last = t.last.Add(tick)
	}
	return t.last
}

// Nano implements guest.Senses with the same clock.
func (t *Tape) Nano() int64 { return t.Now().UnixNano() }

// Read implements guest.Senses: the operation's seeded randomness, or zeros between operations.
func (t *Tape) Read(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		clear(b)
		return len(b), nil
	}
	return t.current.random.Read(b)
}

// Pause waits for d, or until ctx ends, and advances the clock by as much. A replay does not wait.
func (t *Tape) Pause(ctx context.Context, d time.Duration) {
	if t.record != nil {
		if t.record.pause(ctx, d); ctx.Err() != nil {
			return
		}
	}
	t.mu.Lock()
	t.last = t.last.Add(d.Truncate(tick))
	t.mu.Unlock()
}

// Measured is a duration that the host measured in the present operation; in a replay, the recorded one.
func (t *Tape) Measured(d time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := t.current; {
	case o == nil:
		return d
	case t.record != nil:
		d = t.record.measured(d)
		o.ElapsedUS = append(o.ElapsedUS, d.Microseconds())
		return d
	case o.elapsed < len(o.ElapsedUS):
		o.elapsed++
		return time.Duration(o.ElapsedUS[o.elapsed-1]) * time.Microsecond
	}
	return 0
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// Starter starts instances whose starts and entries are on the tape.
func (t *Tape) Starter(from guest.Starter) guest.Starter { return &starter{t, from} }

type starter struct {
	tape *Tape
	from guest.Starter
}

// Start implements guest.Starter.
func (s *starter) Start(ctx context.Context, c *guest.Call) (guest.Instance, error) {
	e := s.tape.start(c)
	in, err := s.from.Start(ctx, c)
	if err := e.leave(nil, false, err); err != nil {
		if in != nil {
			in.Close()
		}
		return nil, err
	}
	return &instance{in, s.tape}, nil
}

type instance struct {
	guest.Instance
	tape *Tape
}

// Enter implements guest.Instance.
func (in *instance) Enter(ctx context.Context, c *guest.Call, envelope *abi.Envelope) (answer []byte, isError bool,
	err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e := in.tape.enter(c, envelope, stop)
	if e == nil {
		return nil, false, errLeft
	}
	answer, isError, err = in.Instance.Enter(ctx, c, envelope)
	return answer, isError, e.leave(answer, isError, err)
}

// entry is one entry into the guest on the tape, and the Border of its host calls.
type entry struct {
	*cassette.Entry
	tape *Tape
	call *guest.Call
	// next is the index of the next call to replay.
	next int
	// stop stops the guest, if it was stopped when it was recorded.
	stop context.CancelFunc
	// live means that this instance start was not recorded, so that there is nothing to replay.
	live bool
	// alone means that the entry does not belong to an operation.
	alone bool
}

var _ guest.Border = (*entry)(nil)

// start handles the start of an instance.
func (t *Tape) start(c *guest.Call) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.play != nil {
		return t.playStart(c)
	}
	return t.recordEntry(c, nil)
}

// enter starts an entry into the guest; nil if it differs from the recorded one. stop stops the guest.
func (t *Tape) enter(c *guest.Call, envelope *abi.Envelope, stop context.CancelFunc) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.play != nil {
		return t.playEntry(c, envelope, stop)
	}
	if t.record.timeless {
		envelope.DeadlineMS = c.Deadline.Sub(c.Began).Milliseconds()
	}
	return t.recordEntry(c, abi.Marshal(envelope))
}

// Answer implements guest.Border: it makes a host call and records it, or replays the recorded answer.
func (e *entry) Answer(a *guest.Ask) guest.Answer {
	switch {
	case e.live:
		return e.call.Answer(a)
	case e.tape.play != nil:
		return e.playCall(a)
	}
	return e.recordCall(a)
}

// leave ends an entry: answer is the guest's, or err says why there is none. It returns the error to use instead of
// err.
func (e *entry) leave(answer []byte, isError bool, err error) error {
	if e.live {
		return err
	}
	e.tape.mu.Lock()
	defer e.tape.mu.Unlock()
	if e.tape.play != nil {
		return e.playLeave(answer, isError, err)
	}
	e.recordLeave(answer, isError, err)
	return err
}

// describe formats a host call for readers: state_put(key, value, -1).
func describe[T ~[]byte](name string, in []T, args []int64) string {
	parts := make([]string, 0, len(in)+len(args))
	for _, text := range in {
		parts = append(parts, string(text))
	}
	for _, n := range args {
		parts = append(parts, strconv.FormatInt(n, 10))
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}
