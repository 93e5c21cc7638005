package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// CassetteOptions have a host record what its slot does, for Replay. While it records there is one instance and one operation at a time; the guest's clock
// is virtual and its randomness seeded. One host records one slot.
type CassetteOptions struct {
	// Path is the file, which must not be there yet. Required.
	Path string
	// Seed is that of all randomness. Default: a random one.
	Seed []byte
	// Timeless records every measured duration as 0, so that equal runs make equal files: for cassettes under version control.
	Timeless bool
}

// tape is the host's end of a cassette, while it records one or plays one. Nil where neither is done.
//
// It stands at three borders: Slot's methods (through), the guest's exports (Provider.enter) and its imports (instantiateHostModule). What lies between
// them, the host's own work, is done again by a replay, so that the whole answer is reproduced and not the guest's part alone.
type tape struct {
	logger hclog.Logger
	seed   []byte
	// turn is held by the operation that runs.
	turn chan struct{}

	mu   sync.Mutex
	take *take
	last time.Time // of the clock

	record *recording // nil while playing
	play   *playing   // nil while recording
}

// take is one operation on the tape: gathered while recording, read while playing.
type take struct {
	cassette.Operation
	random *rand.ChaCha8
	// entry, elapsed and usage are the next to be played; commits counts.
	entry, elapsed, usage int
	commits               int64
}

// slack is what a replay adds to every deadline: its computer may be slower than the recording's.
func (t *tape) slack() time.Duration {
	if t == nil || t.play == nil {
		return 0
	}
	return time.Minute
}

func newTape(logger hclog.Logger, seed []byte) *tape {
	return &tape{logger: logger, seed: seed, turn: make(chan struct{}, 1)}
}

type takeKey struct{}

// tick is how far the clock advances at each reading.
const tick = time.Microsecond

// begin opens an operation, in its turn. The operation's context is marked, so that one inside another is a part of that. end is nil there, and where there
// is no tape.
func (t *tape) begin(ctx context.Context, name string, request abi.Encodable) (_ context.Context, end func(answer abi.Encodable, err error), err error) {
	if t == nil || ctx.Value(takeKey{}) != nil {
		return ctx, nil, nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		e := abi.WrapError(abi.CodeTimeout, "another operation ran: a slot that records does one at a time", context.Cause(ctx)).WithReason("busy")
		e.Operation = name
		return ctx, nil, e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.play == nil {
		t.open(&take{Operation: cassette.Operation{Name: name, Request: t.encoded(request)}})
	}
	return context.WithValue(ctx, takeKey{}, t.take), func(answer abi.Encodable, err error) {
		t.mu.Lock()
		t.end(answer, err)
		t.mu.Unlock()
		<-t.turn
	}, nil
}

// open makes a take the one under way, with a clock that is never behind the one before. The caller holds mu.
func (t *tape) open(k *take) {
	if t.record != nil {
		k.N = t.record.operations + 1
		t.last = t.after(t.record.now())
		k.At = stampOf(t.last)
	} else if at, err := time.Parse(time.RFC3339Nano, k.At); err == nil {
		t.last = at
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(string(t.seed)+"\x00"), uint64(k.N)))
	k.random = rand.NewChaCha8(sum)
	t.take = k
}

// after is now, or a moment after the last reading where the real clock went back.
func (t *tape) after(now time.Time) time.Time {
	now = now.UTC().Truncate(tick)
	if !now.After(t.last) {
		now = t.last.Add(tick)
	}
	return now
}

// now reads the clock: virtual inside an operation, and real outside of one while recording.
func (t *tape) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take == nil && t.record != nil {
		t.last = t.after(t.record.now())
	} else {
		t.last = t.last.Add(tick)
	}
	return t.last
}

// advance moves the virtual clock by what was waited.
func (t *tape) advance(d time.Duration) {
	t.mu.Lock()
	t.last = t.last.Add(d.Truncate(tick))
	t.mu.Unlock()
}

// walltime and nanotime are the guest's clocks.
func (t *tape) walltime() (sec int64, nsec int32) {
	now := t.now()
	return now.Unix(), int32(now.Nanosecond())
}

func (t *tape) nanotime() int64 { return t.now().UnixNano() }

// Read implements io.Reader: the guest's randomness.
func (t *tape) Read(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take == nil {
		clear(b)
		return len(b), nil
	}
	return t.take.random.Read(b)
}

// elapsed is a duration that the host measured of the operation under way; while playing, the one that it measured then.
func (t *tape) elapsed(d time.Duration) time.Duration {
	if t == nil {
		return d
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.take == nil:
		return d
	case t.record != nil:
		d = t.record.measured(d)
		t.take.ElapsedUS = append(t.take.ElapsedUS, d.Microseconds())
		return d
	case t.take.elapsed < len(t.take.ElapsedUS):
		t.take.elapsed++
		return time.Duration(t.take.ElapsedUS[t.take.elapsed-1]) * time.Microsecond
	}
	return 0
}

func stampOf(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// entryTape is one entry into the guest on the tape.
type entryTape struct {
	tape  *tape
	entry *cassette.Entry
	// next is the call to be played next.
	next int
	// stop ends the guest, where it was stopped when it was recorded.
	stop context.CancelFunc
	// live: an instance was started that was not when it was recorded, so that there is nothing to play.
	live bool
	// alone: the entry belongs to no operation.
	alone bool
	// refused: the entry differs from what was recorded, and the guest is not entered.
	refused bool
}

// hostCall runs a host function, or plays what it answered.
func (e *entryTape) hostCall(c *call, f *hostFunction, m guestMemory, stack []uint64) {
	in, args := f.arguments(m, stack)
	if e.tape.play != nil && !e.live {
		e.playCall(c, f, in, args, stack)
		return
	}
	if e.live {
		f.run(c, m, stack)
		return
	}
	ios, backend, noted := len(c.io), c.backend, c.noted
	f.run(c, m, stack)
	e.tape.mu.Lock()
	defer e.tape.mu.Unlock()
	r := cassette.Call{Name: f.name, Args: args, Noted: c.noted && !noted, Landed: int64(c.landed)}
	for _, text := range in {
		r.In = append(r.In, e.tape.text(text))
	}
	switch {
	case len(f.results) == 0:
	case f.answersNumber():
		n := int64(stack[0])
		r.Result = &n
	default:
		_, _, r.IsError = abi.Unpack(stack[0])
		r.Head = e.tape.text(c.pending[0])
		var body []byte
		for _, part := range c.pending[1:] {
			body = append(body, part...)
		}
		r.Body = e.tape.text(body)
	}
	for i := ios; i < len(c.io); i++ {
		c.io[i].MS = ms(e.tape.record.measured(time.Duration(c.io[i].MS * float64(time.Millisecond))))
		r.IO = append(r.IO, c.io[i])
	}
	took := e.tape.record.measured(c.backend - backend)
	c.backend = backend + took
	r.BackendUS = took.Microseconds()
	e.entry.Calls = append(e.entry.Calls, r)
}

// arguments takes a host call's arguments apart: texts, by address and length, and numbers. A range outside of the memory traps, as in the call itself.
func (f *hostFunction) arguments(m guestMemory, stack []uint64) (texts [][]byte, numbers []int64) {
	for i := 0; i < len(f.params); i++ {
		switch {
		case f.isText(i):
			texts = append(texts, append([]byte{}, m.view(stack[i], stack[i+1])...))
			i++
		case f.params[i] == wasmbin.I32:
			numbers = append(numbers, int64(int32(stack[i])))
		default:
			numbers = append(numbers, int64(stack[i]))
		}
	}
	return texts, numbers
}

// answersNumber tells the imports that answer a number from those whose answer is pulled.
func (f *hostFunction) answersNumber() bool {
	switch f.name {
	case abi.ImportDeadline, abi.ImportTokensCount, abi.ImportTokensFit:
		return true
	}
	return false
}

// describe is a host call for people.
func describe(name string, in [][]byte, args []int64) string {
	parts := make([]string, 0, len(in)+len(args))
	for _, text := range in {
		parts = append(parts, string(text))
	}
	for _, n := range args {
		parts = append(parts, itoa(n))
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}
