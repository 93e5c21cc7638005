package tape

import (
	"context"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/host/internal/guest"
)

// playback is the state of a tape that replays a cassette.
type playback struct {
	header         cassette.Header
	difference     *cassette.Difference
	calls, entries int64
	// last is the most recently opened operation.
	last *operation
}

// Play creates a tape that replays the operations that it is given.
//
// Errors: invalid_argument for a seed that is not in hex.
func Play(path string, header cassette.Header, logger hclog.Logger) (*Tape, error) {
	seed, err := hex.DecodeString(header.Seed)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"cassette "+path+": its seed is not in hex").WithReason(cassette.ReasonForm)
	}
	t := newTape(logger, seed)
	t.play = &playback{header: header}
	return t, nil
}

// Open starts the replay of an operation of the cassette.
func (t *Tape) Open(o *cassette.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.play.last = &operation{Operation: *o}
	t.open(t.play.last)
}

// Played returns how many entries and host calls matched the recording, and the first difference, or nil.
func (t *Tape) Played() (entries, calls int64, difference *cassette.Difference) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.play.entries, t.play.calls, t.play.difference
}

// Next is the next entry into the guest, skipping starts of instances; nil at the end, or after a difference.
func (t *Tape) Next() *cassette.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.play.difference != nil {
		return nil
	}
	return t.nextEntry(true)
}

// Differ records that an entry differs from the cassette; the first difference counts.
func (t *Tape) Differ(entry *cassette.Entry, what string, expected, got []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.differ(entry, 0, what, expected, got)
}

// Judge compares the caller's answer from the most recently opened operation with the recorded one.
func (t *Tape) Judge(answer abi.Encodable, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.play.last
	t.current = o
	defer func() { t.current = nil }()
	for e := t.nextEntry(true); e != nil; e = t.nextEntry(true) {
		t.differ(e, 0, "the guest is not entered where it was", e.Request, nil)
		t.current.entry++
	}
	expected := []byte(o.Answer)
	var got []byte
	if failed != nil {
		got = abi.Marshal(abi.AsError(failed))
	} else {
		got = abi.Marshal(answer)
	}
	if len(o.Error) > 0 {
		expected = o.Error
	}
	switch {
	case (failed != nil) != (len(o.Error) > 0):
		t.differ(nil, 0, "the slot "+did(false, failed != nil)+" where it "+did(false, len(o.Error) > 0), expected, got)
	case !t.play.header.Same(expected, got):
		t.differ(nil, 0, "another answer of the slot", expected, got)
	}
}

// differ records a difference; the first one counts. The caller holds mu.
func (t *Tape) differ(entry *cassette.Entry, call int, what string, expected, got []byte) {
	if t.play.difference != nil {
		return
	}
	d := &cassette.Difference{Call: call, What: what}
	if t.current != nil {
		d.Operation, d.Name, d.Redacted = t.current.N, t.current.Name, t.current.Redacted
	}
	if entry != nil {
		d.Entry = entry.Op
	}
	for d.Byte < len(expected) && d.Byte < len(got) && expected[d.Byte] == got[d.Byte] {
		d.Byte++
	}
	d.Expected, d.Got = excerpt(expected, d.Byte), excerpt(got, d.Byte)
	t.play.difference = d
}

// excerpt returns the text around a byte, on one line.
func excerpt(b []byte, at int) string {
	const before, behind = 60, 140
	from, to := max(0, at-before), min(len(b), at+behind)
	for from > 0 && !utf8.RuneStart(b[from]) {
		from--
	}
	text := strings.ToValidUTF8(string(b[from:max(from, to)]), "?")
	if from > 0 {
		text = "..." + text
	}
	if to < len(b) {
		text += "..."
	}
	return strings.ReplaceAll(text, "\n", `\n`)
}

// nextEntry is the next recorded entry, with or without starts of instances; nil at the end. The caller holds mu.
func (t *Tape) nextEntry(skipStarts bool) *cassette.Entry {
	o := t.current
	for o != nil && o.entry < len(o.Entries) {
		e := &o.Entries[o.entry]
		if !skipStarts || e.Op != abi.InitExport {
			return e
		}
		o.entry++
	}
	return nil
}

// playStart replays the start of an instance. Modules do not promise when instances start, so a start that was not
// recorded runs without the tape. The caller holds mu.
func (t *Tape) playStart(c *guest.Call) *entry {
	e := t.nextEntry(false)
	if e == nil || e.Op != abi.InitExport {
		return &entry{live: true}
	}
	t.current.entry++
	t.setClock(e.At)
	played := &entry{Entry: e, tape: t, call: c}
	c.Border = played
	return played
}

// playEntry finds the recorded entry, puts its time into the envelope and compares the envelope with the recorded one.
// The caller holds mu.
func (t *Tape) playEntry(c *guest.Call, envelope *abi.Envelope, stop context.CancelFunc) *entry {
	e := t.nextEntry(true)
	if e == nil {
		t.differ(nil, 0, "the guest is entered once more than it was recorded", nil, abi.Marshal(envelope))
		return nil
	}
	t.current.entry++
	if e.Op != c.Op {
		t.differ(e, 0, "another export of the guest is entered", []byte(e.Op), []byte(c.Op))
		return nil
	}
	var then abi.Envelope
	if err := abi.Unmarshal(e.Request, &then); err == nil {
		envelope.Now, envelope.DeadlineMS = then.Now, then.DeadlineMS
	}
	if got := abi.Marshal(envelope); !t.play.header.Same(e.Request, got) {
		t.differ(e, 0, "the guest is asked something else", e.Request, got)
		return nil
	}
	t.play.entries++
	t.setClock(e.At)
	if e.Stopped && len(e.Calls) == 0 {
		stop()
	}
	played := &entry{Entry: e, tape: t, call: c, stop: stop}
	c.Border = played
	return played
}

// errLeft ends a guest that has deviated from its cassette.
const errLeft = guest.Breach("left its cassette")

// playCall answers a host call with the recorded answer.
func (e *entry) playCall(a *guest.Ask) guest.Answer {
	c, want := e.call, e.nextCall(a)
	// Repeat the call's effect on the host.
	if want.Noted {
		_ = c.WillSend(abi.ClassWrite)
	}
	c.Effect = egress.Effect(want.Landed)
	c.IO = append(c.IO, want.IO...)
	c.Backend += time.Duration(want.BackendUS) * time.Microsecond
	if e.Stopped && e.next == len(e.Calls) {
		e.stop()
	}
	if want.Result != nil {
		return guest.Answer{Number: *want.Result}
	}
	return guest.Answer{Head: want.Head, Body: [][]byte{want.Body}, IsError: want.IsError}
}

// nextCall is the recorded call that corresponds to the guest's present one. A guest that makes a different call is
// stopped.
func (e *entry) nextCall(a *guest.Ask) *cassette.Call {
	t := e.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	got := describe(a.Name, a.Texts(), a.Numbers())
	if e.next >= len(e.Calls) {
		if !e.Stopped { // a guest that was stopped now has more time than when it was recorded
			t.differ(e.Entry, e.next+1, "a host call that was not recorded", nil, []byte(got))
		}
		panic(errLeft)
	}
	want := &e.Calls[e.next]
	e.next++
	if expected := describe(want.Name, want.In, want.Args); expected != got {
		what := "a host call with other arguments"
		if want.Name != a.Name {
			what = "another host call"
		}
		t.differ(e.Entry, e.next, what, []byte(expected), []byte(got))
		panic(errLeft)
	}
	t.play.calls++
	return want
}

// playLeave compares the guest's answer with the recorded one. The caller holds mu.
func (e *entry) playLeave(answer []byte, isError bool, err error) error {
	t := e.tape
	e.call.Queued, e.call.Guest = time.Duration(e.QueuedUS)*time.Microsecond, time.Duration(e.GuestUS)*time.Microsecond
	if t.play.difference != nil {
		return err
	}
	if e.Stopped {
		return recordedError(e.Failure)
	}
	if e.next < len(e.Calls) {
		missing := &e.Calls[e.next]
		t.differ(e.Entry, e.next+1, "a host call that was recorded is not made",
			[]byte(describe(missing.Name, missing.In, missing.Args)), nil)
		return err
	}
	broke := len(e.Failure) > 0
	got, expected := answer, []byte(e.Entry.Answer)
	if err != nil {
		got = abi.Marshal(abi.AsError(err))
	}
	if broke {
		expected = e.Failure
	}
	switch {
	case (err != nil) != broke:
		t.differ(e.Entry, 0, "the guest "+did(err != nil, isError)+" where it "+did(broke, e.IsError), expected, got)
	case isError != e.IsError:
		t.differ(e.Entry, 0, "the guest "+did(false, isError)+" where it "+did(false, e.IsError), expected, got)
	case !t.play.header.Same(expected, got):
		t.differ(e.Entry, 0, "another answer of the guest", expected, got)
	}
	return err
}

func did(failed, isError bool) string {
	switch {
	case failed:
		return "broke"
	case isError:
		return "answered an error"
	}
	return "answered"
}

// recordedError decodes a recorded error.
func recordedError(text cassette.Text) error {
	e := new(abi.Error)
	if err := abi.Unmarshal(text, e); err != nil {
		return abi.AsError(err)
	}
	return e
}
