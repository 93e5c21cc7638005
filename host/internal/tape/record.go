package tape

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/guest"
)

// recording is the state of a tape that records.
type recording struct {
	file       *os.File
	writer     *cassette.Writer // nil until the first provider serves
	header     cassette.Header
	now        func() time.Time
	pause      func(context.Context, time.Duration)
	timeless   bool
	operations int64
	redact     []func([]byte) []byte
	// redacted means that a secret was removed from the present operation.
	redacted bool
	// seen are the host's records that a replay already has, or creates itself.
	seen map[string]bool
	// loading is the provider that the present operation loads.
	loading *cassette.Load
	err     error
}

// Options configure a recording.
type Options struct {
	// Path is the file to create; it must not exist. Seed seeds all randomness; empty means a random seed.
	Path string
	Seed []byte
	// Timeless records every measured duration as 0.
	Timeless bool
	// Now and Pause are the real clock.
	Now   func() time.Time
	Pause func(context.Context, time.Duration)
	// Version and Commit identify the program.
	Version, Commit string
	Logger          hclog.Logger
}

// Record creates the cassette's file and a tape that records.
//
// Errors: those of cassette.Create.
func Record(o Options) (*Tape, error) {
	if len(o.Seed) == 0 {
		o.Seed = make([]byte, 16)
		if _, err := rand.Read(o.Seed); err != nil {
			return nil, abi.AsError(err)
		}
	}
	file, err := cassette.Create(o.Path)
	if err != nil {
		return nil, err
	}
	t := newTape(o.Logger, o.Seed)
	t.record = &recording{file: file, now: o.Now, pause: o.Pause, timeless: o.Timeless, seen: map[string]bool{},
		header: cassette.Header{Revision: cassette.Revision, HostVersion: o.Version, HostCommit: o.Commit,
			Clock: "virtual", Seed: hex.EncodeToString(o.Seed)}}
	return t, nil
}

// measured rounds a duration for recording: to whole microseconds.
func (r *recording) measured(d time.Duration) time.Duration {
	if r.timeless {
		return 0
	}
	return d.Truncate(time.Microsecond)
}

// text prepares a text for the cassette, without secrets.
func (t *Tape) text(b []byte) cassette.Text {
	clean := b
	for _, redact := range t.record.redact {
		clean = redact(clean)
	}
	if !bytes.Equal(clean, b) {
		t.record.redacted = true
	}
	return bytes.Clone(clean)
}

func (t *Tape) encoded(v abi.Encodable) cassette.Text {
	if v == nil {
		return nil
	}
	return t.text(abi.Marshal(v))
}

// Load records the provider that the present operation loads, and how to remove its secrets. A replaying tape ignores
// it.
func (t *Tape) Load(l *cassette.Load, redact func([]byte) []byte) {
	if t.record == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record.redact = append(t.record.redact, redact)
	t.record.loading = l
}

// end completes the present operation. The caller holds mu.
func (t *Tape) end(answer abi.Encodable, err error) {
	o := t.current
	t.current = nil
	if t.play != nil {
		return
	}
	switch {
	case err != nil:
		o.Error = t.encoded(abi.AsError(err))
	case answer != nil:
		o.Answer = t.encoded(answer)
	}
	r := t.record
	loaded := r.loading
	r.loading, o.Redacted, r.redacted = nil, r.redacted, false
	switch {
	case o.Name == cassette.OpOpen && r.writer == nil && (err != nil || loaded == nil):
		return // nothing serves: there is nothing to record
	case o.Name == cassette.OpOpen && r.writer == nil:
		r.header.Load, r.header.Created = *loaded, o.At
		var e error
		if r.writer, e = cassette.NewWriter(r.file, r.header); e != nil {
			t.broken(e)
			return
		}
	case o.Name == cassette.OpSwap:
		o.Load = loaded
	}
	if r.writer == nil || r.err != nil {
		return
	}
	if e := r.writer.Add(&o.Operation); e != nil {
		t.broken(e)
		return
	}
	r.operations++
}

// broken ends the recording, but not the slot.
func (t *Tape) broken(err error) {
	t.record.err = err
	t.logger.Error("the cassette cannot be written: it ends here, the slot goes on", "file", t.record.file.Name(),
		"operations", t.record.operations, "error", err)
}

// Warnings are the health warnings about a recording that failed.
func (t *Tape) Warnings() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record == nil || t.record.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("cassette_broken: the cassette could not be written after %d operations: %v",
		t.record.operations, t.record.err)}
}

// Close ends the cassette. If nothing was recorded, it removes the file.
//
// Errors: unavailable for a file that could not be written completely.
func (t *Tape) Close() error {
	r := t.record
	if r == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.writer == nil {
		return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
	}
	if r.err != nil { // already reported
		_ = r.file.Close()
		return nil
	}
	if err := errors.Join(r.writer.End(), r.file.Sync(), r.file.Close()); err != nil {
		return abi.WrapError(abi.CodeUnavailable, "cassette: "+err.Error(), err)
	}
	return nil
}

// File is the cassette's file.
func (t *Tape) File() *os.File { return t.record.file }

// recordEntry starts an entry. The caller holds mu.
func (t *Tape) recordEntry(c *guest.Call, request []byte) *entry {
	e := &entry{tape: t, call: c}
	if t.current == nil {
		t.open(&operation{Operation: cassette.Operation{Name: cassette.OpBackground}})
		e.alone = true
	}
	e.Entry = &cassette.Entry{Op: c.Op, At: stamp(t.last), Request: t.text(request)}
	c.Border = e
	return e
}

func (e *entry) recordCall(a *guest.Ask) guest.Answer {
	c, t := e.call, e.tape
	r := cassette.Call{Name: a.Name, Args: append([]int64(nil), a.Numbers()...)}
	in := a.Texts()
	before := c.Account
	answer := c.Answer(a)
	if a.Name == abi.ImportDeadline && t.record.timeless {
		answer.Number = c.Deadline.Sub(c.Began).Milliseconds()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range in {
		r.In = append(r.In, t.text(text))
	}
	r.Noted, r.Landed = c.Noted && !before.Noted, int64(c.Effect)
	switch {
	case a.AnswersNothing():
	case a.AnswersNumber():
		r.Result = &answer.Number
	default:
		r.Head, r.Body, r.IsError = t.text(answer.Head), t.text(bytes.Join(answer.Body, nil)), answer.IsError
	}
	for i := len(before.IO); i < len(c.IO); i++ {
		took := t.record.measured(time.Duration(c.IO[i].MS * float64(time.Millisecond)))
		c.IO[i].MS = float64(took.Microseconds()) / 1000
		if start := c.IO[i].StartMS; start != nil {
			after := t.record.measured(time.Duration(*start * float64(time.Millisecond)))
			*start = float64(after.Microseconds()) / 1000
		}
		r.IO = append(r.IO, c.IO[i])
	}
	took := t.record.measured(c.Backend - before.Backend)
	c.Backend = before.Backend + took
	r.BackendUS = took.Microseconds()
	e.Calls = append(e.Calls, r)
	return answer
}

// recordLeave ends an entry. The caller holds mu.
func (e *entry) recordLeave(answer []byte, isError bool, err error) {
	t, c := e.tape, e.call
	if err != nil {
		failure := abi.AsError(err)
		e.Failure, e.Stopped = t.text(abi.Marshal(failure)), failure.Reason == guest.ReasonStopped
	} else {
		e.Entry.Answer, e.IsError = t.text(answer), isError
	}
	c.Queued, c.Guest = t.record.measured(c.Queued), t.record.measured(c.Guest)
	e.QueuedUS, e.GuestUS = c.Queued.Microseconds(), c.Guest.Microseconds()
	if t.current != nil {
		t.current.Entries = append(t.current.Entries, *e.Entry)
	}
	if e.alone {
		t.end(nil, nil)
	}
}
