package server

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const (
	// maxReaders is the most streams of operations that are open at a time.
	maxReaders = 16
	// readerLines is how many lines wait for a slow reader before lines are dropped.
	readerLines = 4096
	// linesEvery is the pause of a stream after a write: a busy slot wakes a browser 4 times a second, not with each
	// operation. A line after a pause is sent at once.
	linesEvery = 250 * time.Millisecond
	// keptLines is how many operations are kept for readers who ask for the past, and keptFor how long.
	keptLines = 2000
	keptFor   = time.Hour
	// aliveEvery is the longest silence on a stream.
	aliveEvery = 15 * time.Second
)

// Operations passes the host's reports of operations and steps on to the streams at GET /v1/operations. It never waits
// for a reader, and keeps the operations of the last hour, at most 2000, for readers who ask for them. Make one with
// NewOperations. It is safe for concurrent use.
type Operations struct {
	open    atomic.Int64 // len(readers)
	mu      sync.Mutex
	readers map[*operationsReader]struct{}
	kept    []*wire.OperationLine // a ring: the oldest is at next once it is full
	next    int
}

type operationsReader struct {
	lines  chan *wire.OperationLine
	missed atomic.Int64
}

// NewOperations makes an Operations without readers.
func NewOperations() *Operations {
	return &Operations{readers: map[*operationsReader]struct{}{}}
}

// Observe passes an operation on; it is meant for host.Options.Observe.
func (o *Operations) Observe(x host.Observation) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	o.pass(&wire.OperationLine{Kind: wire.LineOperation, Operation: x.Operation, Provider: x.Provider, Origin: x.Origin,
		Code: string(x.Code), LatencyMS: ms(x.Latency), BackendMS: ms(x.Backend), PluginMS: ms(x.Plugin), IO: x.IO})
}

// Step passes a step of a start or a swap on; it is meant for host.Options.OnStep.
func (o *Operations) Step(step report.RunStep) {
	if o.open.Load() == 0 {
		return
	}
	o.pass(&wire.OperationLine{Kind: wire.LineStep, Step: &step})
}

func (o *Operations) pass(line *wire.OperationLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	line.At = time.Now().UTC().Format(time.RFC3339Nano) // under the lock, so that lines are in the order of their times
	switch {
	case line.Kind != wire.LineOperation:
	case len(o.kept) < keptLines:
		o.kept = append(o.kept, line)
	default:
		o.kept[o.next] = line
		o.next = (o.next + 1) % keptLines
	}
	for r := range o.readers {
		select {
		case r.lines <- line:
		default:
			r.missed.Add(1)
		}
	}
}

// past returns the kept operations of the last hour, oldest first. The caller holds mu.
func (o *Operations) past() []*wire.OperationLine {
	since := time.Now().Add(-keptFor).UTC().Format(time.RFC3339)
	lines := slices.Concat(o.kept[o.next:], o.kept[:o.next])
	return slices.DeleteFunc(lines, func(l *wire.OperationLine) bool { return l.At < since })
}

// join adds a reader, which must call leave. past are the operations that ended before, if they are wanted.
//
// Errors: rate_limited if there are maxReaders already.
func (o *Operations) join(wantsPast bool) (r *operationsReader, past []*wire.OperationLine, leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.readers) == maxReaders {
		return nil, nil, nil, abi.NewError(abi.CodeRateLimited, fmt.Sprintf("%d streams of operations are open already",
			maxReaders)).WithHint("close one, or look at /metrics")
	}
	r = &operationsReader{lines: make(chan *wire.OperationLine, readerLines)}
	o.readers[r] = struct{}{}
	o.open.Add(1)
	if wantsPast {
		past = o.past()
	}
	return r, past, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.readers, r)
		o.open.Add(-1)
	}, nil
}

// streamOperations is the handler of GET /v1/operations.
func (s *Server) streamOperations(w http.ResponseWriter, r *http.Request) {
	if s.options.Operations == nil {
		e := abi.NewError(abi.CodeUnsupported, "this slot has no stream of operations").WithReason("operations")
		s.fail(w, r, wire.OpOperations, e)
		return
	}
	reader, past, leave, err := s.options.Operations.join(r.URL.Query().Get("past") == "true")
	if err != nil {
		s.fail(w, r, wire.OpOperations, err)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", wire.MediaLines)
	w.Header().Set("X-Accel-Buffering", "no") // otherwise nginx would buffer lines
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	connection := http.NewResponseController(w)
	send := func(lines ...*wire.OperationLine) bool {
		var text []byte
		for _, line := range lines {
			text = append(append(text, abi.Marshal(line)...), '\n')
		}
		_ = connection.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
		_, err := w.Write(text)
		return err == nil && connection.Flush() == nil
	}
	note := func(kind string, missed int64) *wire.OperationLine {
		return &wire.OperationLine{Kind: kind, At: time.Now().UTC().Format(time.RFC3339Nano), Missed: missed}
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	waiting := reader.lines
	var rested <-chan time.Time
	for ok := send(append(past, note(wire.LineAlive, 0))...); ok; {
		select {
		case <-r.Context().Done():
			return
		case <-s.ending:
			return
		case line := <-waiting:
			lines := []*wire.OperationLine{line}
			for range len(reader.lines) {
				lines = append(lines, <-reader.lines)
			}
			if n := reader.missed.Swap(0); n > 0 {
				lines = append(lines, note(wire.LineMissed, n))
			}
			ok = send(lines...)
			waiting, rested = nil, time.After(linesEvery)
		case <-rested:
			waiting, rested = reader.lines, nil
		case <-alive.C:
			ok = send(note(wire.LineAlive, 0))
		}
	}
}
