// Package tracelog writes trace.jsonl, the log of a run: one JSON line for each operation, with its trace.
//
// Writing never delays or fails an operation. Lines wait in a queue. Lines that do not fit there, or cannot be written,
// are counted as lost, and reported once in the process's log and from then on in Warnings. The file also says so, as
// soon as it can be written again: {"lost": n}.
package tracelog

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// Options configure a Log.
type Options struct {
	// File is appended to. Required.
	File string
	// MaxBytes is the size at which the file is rotated: it is renamed to File.1, the one before to File.2, and so on.
	// Required.
	MaxBytes int64
	// Keep is how many rotated files are kept; older ones are removed.
	Keep int
	// Content adds requests and answers to the lines.
	Content bool
	Logger  hclog.Logger
}

// queued is how many lines wait at most.
const queued = 4096

// Log is an open log. It is safe for concurrent use.
type Log struct {
	options Options
	lines   chan []byte
	done    chan struct{}

	mu      sync.Mutex
	closed  bool
	seq     int64
	written int64
	lost    int64
	because string
}

// Open opens a log for appending and starts writing.
//
// Errors: invalid_argument for a file that cannot be written.
func Open(o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	w := &file{path: o.File, max: o.MaxBytes, keep: o.Keep}
	if err := w.open(); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "trace.file: "+err.Error(), err)
	}
	l := &Log{options: o, lines: make(chan []byte, queued), done: make(chan struct{})}
	go l.write(w)
	return l, nil
}

// line is a line of the log.
type line struct {
	// Time is when the operation started. Seq counts the lines of this process, so that their order is certain whatever
	// the clock does.
	Time      string `json:"time"`
	Seq       int64  `json:"seq"`
	Operation string `json:"operation"`
	// Origin is page for a request from the slot's page.
	Origin    string `json:"origin,omitempty"`
	Scope     any    `json:"scope,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	EventID   string `json:"event_id,omitempty"`
	// Outcome is ok or the error's code.
	Outcome   string  `json:"outcome"`
	LatencyMS float64 `json:"latency_ms"`
	// Status is the receipt's. Context describes the text that a retrieval returned; the text itself is left out.
	Status  string   `json:"status,omitempty"`
	Context *context `json:"context,omitempty"`
	Error   abi.Raw  `json:"error,omitempty"`
	Trace   abi.Raw  `json:"trace,omitempty"`
	Request abi.Raw  `json:"request,omitempty"`
	Answer  abi.Raw  `json:"answer,omitempty"`
}

type context struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// OnExchange writes an operation; it is meant for host.Options.OnExchange. A batch becomes one line for each of its
// events.
func (l *Log) OnExchange(x *host.Exchange) {
	if x.Origin == host.OriginFiles { // no caller asked, and the answer is the whole memory
		return
	}
	for _, entry := range l.entries(x) {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return
		}
		l.seq++
		entry.Seq = l.seq
		text, err := plainjson.Marshal(entry)
		if err != nil {
			l.lose(1, err)
			l.mu.Unlock()
			continue
		}
		select {
		case l.lines <- append(x.Redact(text), '\n'):
		default:
			l.lose(1, errors.New("lines came faster than they could be written"))
		}
		l.mu.Unlock()
	}
}

func (l *Log) entries(x *host.Exchange) []*line {
	base := line{Time: x.At.UTC().Format(time.RFC3339Nano), Operation: x.Operation, Origin: x.Origin, Outcome: "ok",
		LatencyMS: float64(x.Latency.Microseconds()) / 1000}
	describe(&base, x.Request)
	if l.options.Content {
		base.Request = abi.Marshal(x.Request)
	}
	batch, several := x.Request.(*abi.EventBatch)
	if receipts, ok := x.Answer.(*abi.BatchReceipts); ok && several && len(receipts.Receipts) == len(batch.Events) {
		list := make([]*line, len(receipts.Receipts))
		for i, r := range receipts.Receipts {
			one := base
			describe(&one, &batch.Events[i])
			if l.options.Content {
				one.Request = abi.Marshal(&batch.Events[i])
			}
			if r.Error != nil {
				one.fail(r.Error, x.Trace)
			} else {
				one.answer(r.Receipt, l.options.Content)
			}
			list[i] = &one
		}
		return list
	}
	if x.Error != nil {
		base.fail(x.Error, x.Trace)
	} else {
		base.answer(x.Answer, l.options.Content)
	}
	return []*line{&base}
}

// describe fills in the scope and ids of the operation.
func describe(l *line, request abi.Encodable) {
	switch r := request.(type) {
	case *abi.MemoryEvent:
		l.Scope, l.SessionID, l.EventID = abi.MemoryScope{RunID: r.RunID, PersonaID: r.UserID, AgentID: r.AgentID},
			r.SessionID, r.EventID
	case *abi.RetrieveRequest:
		l.Scope, l.SessionID = r.Scope, r.SessionID
	case *abi.FormatRequest:
		l.Scope = r.Scope
	case *abi.MemoryScope:
		l.Scope = *r
	case *abi.ReadinessRequest:
		l.Scope = r.Scope
	case *abi.InventoryRequest:
		l.Scope = r.Scope
	case *abi.ProvenanceRequest:
		l.Scope, l.EventID = r.Scope, r.EventID
	case *abi.NativeQuery:
		l.Scope = r.Scope
	case *abi.NativeMutation:
		l.Scope = r.Scope
	case *abi.MemoryFeedback:
		l.Scope, l.SessionID, l.EventID = r.Scope, r.SessionID, r.EventID
	case *abi.AdapterMode:
		if r.Scope != nil {
			l.Scope = *r.Scope
		}
	}
}

func (l *line) fail(e *abi.Error, trace *abi.Trace) {
	l.Outcome, l.Error = string(e.Code), abi.Marshal(e)
	l.trace(trace)
}

func (l *line) trace(t *abi.Trace) {
	if t != nil {
		l.Trace = abi.Marshal(t)
	}
}

// answer fills in the result. The trace of an answer becomes a field of the line.
func (l *line) answer(answer abi.Encodable, content bool) {
	var kept abi.Encodable
	switch a := answer.(type) {
	case *abi.WriteReceipt:
		l.Status = string(a.Status)
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.RetrieveResult:
		l.Context = contextOf(a.FormattedContext)
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.FormatResult:
		l.Context = contextOf(a.FormattedContext)
		kept = a
	case *abi.SetupReceipt:
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.ResetReceipt:
		l.Status = string(a.Status)
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.Inventory:
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.Provenance:
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.NativeQueryResult:
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.MutationReceipt:
		l.Status = a.Status
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.FeedbackReceipt:
		l.Status = a.Status
		l.trace(a.Trace)
		bare := *a
		bare.Trace, kept = nil, &bare
	case *abi.BackendHealth:
		l.Status = string(a.Status)
		kept = a
	case *abi.BackendReadiness:
		l.Status = string(a.Status)
		kept = a
	default:
		kept = answer
	}
	if content && kept != nil {
		l.Answer = abi.Marshal(kept)
	}
}

func contextOf(text string) *context {
	return &context{Bytes: len(text), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
}

// lose counts lines that are not in the log, and logs the first loss. The caller holds mu.
func (l *Log) lose(n int64, err error) {
	if l.lost == 0 {
		l.options.Logger.Error("the log of the run cannot be written; operations go on, what is lost is counted",
			"file", l.options.File, "error", err)
	}
	l.lost += n
	l.because = err.Error()
}

// write writes lines until the log is closed.
func (l *Log) write(w *file) {
	defer close(l.done)
	defer w.close()
	var noted int64 // lost lines already noted in the file
	for text := range l.lines {
		if _, lost := l.Counts(); lost > noted && w.write([]byte(`{"lost":`+strconv.FormatInt(lost-noted,
			10)+"}\n")) == nil {
			noted = lost
		}
		err := w.write(text)
		l.mu.Lock()
		if err != nil {
			l.lose(1, err)
		} else {
			l.written++
		}
		l.mu.Unlock()
	}
}

// Counts returns how many lines were written and lost.
func (l *Log) Counts() (written, lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written, l.lost
}

// Warnings returns the warnings for health: that lines were lost, and why the last one was.
func (l *Log) Warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == 0 {
		return nil
	}
	return []string{fmt.Sprintf("trace_lost: the log of the run lacks %d lines: %s", l.lost, l.because)}
}

// Close writes the waiting lines and closes the file. Closing a nil Log does nothing.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	<-l.done
}

// file is a file that is rotated when it is full.
type file struct {
	path string
	max  int64
	keep int

	to   *os.File
	size int64
}

func (f *file) open() error {
	to, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := to.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(f.path + ": is no regular file")
	}
	if err != nil {
		_ = to.Close()
		return err
	}
	f.to, f.size = to, info.Size()
	return f.endLastLine()
}

// endLastLine ends the last line if a killed process left it incomplete, so that the next line stands alone.
func (f *file) endLastLine() error {
	if f.size == 0 {
		return nil
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	last := make([]byte, 1)
	if _, err := in.ReadAt(last, f.size-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := f.to.Write([]byte("\n"))
	f.size += int64(n)
	return err
}

func (f *file) write(text []byte) error {
	if f.to == nil { // retries after an earlier failure
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+int64(len(text)) > f.max {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.to.Write(text)
	f.size += int64(n)
	if err != nil {
		f.close()
	}
	return err
}

// rotate renames the full file: path.1 is the newest, path.keep the oldest.
func (f *file) rotate() error {
	f.close()
	name := func(i int) string { return f.path + "." + strconv.Itoa(i) }
	if f.keep == 0 {
		if err := os.Remove(f.path); err != nil {
			return err
		}
		return f.open()
	}
	for i := f.keep - 1; i >= 1; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(f.path, name(1)); err != nil {
		return err
	}
	return f.open()
}

func (f *file) close() {
	if f.to != nil {
		_ = f.to.Close()
		f.to = nil
	}
}
