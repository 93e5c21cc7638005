package host

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/egress"
)

// playing is a tape that plays a cassette.
type playing struct {
	header     cassette.Header
	difference *Difference
	calls      int64
	entries    int64
}

// Difference is the first place where a replay left its cassette.
type Difference struct {
	// Operation is the operation's number, from 1, and Name its name.
	Operation int64  `json:"operation"`
	Name      string `json:"name"`
	// Entry is the guest's export that was entered, "" where the difference is not inside one; Call is the host call, from 1, 0 where it is none.
	Entry string `json:"entry,omitempty"`
	Call  int    `json:"call,omitempty"`
	// What says in words what differs.
	What string `json:"what"`
	// Expected is what the cassette has, Got what the module did: excerpts around Byte, where they differ first.
	Byte     int    `json:"byte"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	// Redacted: a secret was removed from this operation when it was recorded, which may be all that differs.
	Redacted bool `json:"redacted,omitempty"`
}

// String tells of the difference in a few lines.
func (d *Difference) String() string {
	where := fmt.Sprintf("operation %d, %s", d.Operation, d.Name)
	if d.Entry != "" {
		where += ", in the guest's " + d.Entry
	}
	if d.Call > 0 {
		where += fmt.Sprintf(", host call %d", d.Call)
	}
	text := fmt.Sprintf("%s: %s\n  at byte %d\n  expected  %s\n  got       %s", where, d.What, d.Byte, orNothing(d.Expected), orNothing(d.Got))
	if d.Redacted {
		text += "\n  a secret was removed from this operation when it was recorded, which may be all that differs"
	}
	return text
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

// differ notes a difference; the first one counts.
func (t *tape) differ(entry *cassette.Entry, call int, what string, expected, got []byte) {
	if t.play.difference != nil {
		return
	}
	d := &Difference{Call: call, What: what}
	if t.take != nil {
		d.Operation, d.Name, d.Redacted = t.take.N, t.take.Name, t.take.Redacted
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

// excerpt is a text around a byte, on one line.
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

// nextEntry is the recorded entry to come; nil where there is none. The caller holds mu.
func (t *tape) nextEntry() *cassette.Entry {
	if t.take == nil || t.take.entry >= len(t.take.Entries) {
		return nil
	}
	return &t.take.Entries[t.take.entry]
}

// playStart plays the start of an instance. When instances start is not a part of what a module promises: one that was not started then runs on its own.
func (t *tape) playStart() *entryTape {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.nextEntry()
	if e == nil || e.Op != abi.InitExport {
		return &entryTape{tape: t, entry: &cassette.Entry{Op: abi.InitExport}, live: true}
	}
	t.take.entry++
	t.setClock(e.At)
	return &entryTape{tape: t, entry: e}
}

func (t *tape) setClock(at string) {
	if parsed, err := time.Parse(time.RFC3339Nano, at); err == nil {
		t.last = parsed
	}
}

// playEntry finds the recorded entry, lends its time to the envelope and holds that against what was sent then.
func (t *tape) playEntry(c *call, envelope *abi.Envelope, stop context.CancelFunc) *entryTape {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.nextEntry(); e != nil && e.Op == abi.InitExport; e = t.nextEntry() {
		t.take.entry++
	}
	e := t.nextEntry()
	refuse := func(what string, expected, got []byte) *entryTape {
		t.differ(e, 0, what, expected, got)
		stop()
		return &entryTape{tape: t, entry: &cassette.Entry{Op: c.op}, refused: true}
	}
	if e == nil {
		return refuse("the guest is entered once more than it was recorded", nil, abi.Marshal(envelope))
	}
	t.take.entry++
	if e.Op != c.op {
		return refuse("another export of the guest is entered", []byte(e.Op), []byte(c.op))
	}
	var then abi.Envelope
	if err := abi.Unmarshal(e.Request, &then); err == nil {
		envelope.Now, envelope.DeadlineMS = then.Now, then.DeadlineMS
	}
	if got := abi.Marshal(envelope); !t.play.header.Same(e.Request, got) {
		return refuse("the guest is asked something else", e.Request, got)
	}
	t.play.entries++
	t.setClock(e.At)
	played := &entryTape{tape: t, entry: e, stop: stop}
	if e.Stopped && len(e.Calls) == 0 {
		stop()
	}
	return played
}

// leftThere is the panic that ends a guest that has left its cassette.
var errLeft = abiBreach{"left its cassette"}

// playCall answers a host call as it was answered then.
func (e *entryTape) playCall(c *call, f *hostFunction, in [][]byte, args []int64, stack []uint64) {
	want := e.nextCall(f, in, args)
	// What the call did to the host is done again.
	if want.Noted {
		_ = c.willSend(abi.ClassWrite)
	}
	c.landed = egress.Effect(want.Landed)
	c.io = append(c.io, want.IO...)
	c.backend += time.Duration(want.BackendUS) * time.Microsecond
	switch {
	case len(f.results) == 0:
	case want.Result != nil:
		stack[0] = uint64(*want.Result)
	default:
		stack[0] = c.hold(want.Head, want.IsError, [][]byte{want.Body})
	}
	if e.entry.Stopped && e.next == len(e.entry.Calls) {
		e.stop()
	}
}

// nextCall is the recorded call that the guest makes now. A guest that makes another one ends here.
func (e *entryTape) nextCall(f *hostFunction, in [][]byte, args []int64) *cassette.Call {
	t := e.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	got := describe(f.name, in, args)
	if e.next >= len(e.entry.Calls) {
		if e.entry.Stopped { // it had more time than it was given then
			panic(errLeft)
		}
		t.differ(e.entry, e.next+1, "a host call that was not recorded", nil, []byte(got))
		panic(errLeft)
	}
	want := &e.entry.Calls[e.next]
	e.next++
	texts := make([][]byte, len(want.In))
	for i, text := range want.In {
		texts[i] = text
	}
	if expected := describe(want.Name, texts, want.Args); expected != got {
		what := "a host call with other arguments"
		if want.Name != f.name {
			what = "another host call"
		}
		t.differ(e.entry, e.next, what, []byte(expected), []byte(got))
		panic(errLeft)
	}
	t.play.calls++
	return want
}

// playLeave holds what the guest answered against what it answered then.
func (e *entryTape) playLeave(c *call, answer []byte, isError bool, err error) error {
	if e.live || e.refused {
		return err
	}
	t := e.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	c.queued, c.guest = time.Duration(e.entry.QueuedUS)*time.Microsecond, time.Duration(e.entry.GuestUS)*time.Microsecond
	if t.play.difference != nil {
		return err
	}
	if e.entry.Stopped {
		return recordedError(e.entry.Failure)
	}
	if e.next < len(e.entry.Calls) {
		missing := &e.entry.Calls[e.next]
		texts := make([][]byte, len(missing.In))
		for i, text := range missing.In {
			texts[i] = text
		}
		t.differ(e.entry, e.next+1, "a host call that was recorded is not made", []byte(describe(missing.Name, texts, missing.Args)), nil)
		return err
	}
	got, expected := answer, []byte(e.entry.Answer)
	if err != nil {
		got = abi.Marshal(abi.AsError(err))
	}
	if len(e.entry.Failure) > 0 {
		expected = e.entry.Failure
	}
	switch {
	case (err != nil) != (len(e.entry.Failure) > 0):
		t.differ(e.entry, 0, "the guest "+did(err != nil, isError)+" where it "+did(len(e.entry.Failure) > 0, e.entry.IsError), expected, got)
	case isError != e.entry.IsError:
		t.differ(e.entry, 0, "the guest "+did(false, isError)+" where it "+did(false, e.entry.IsError), expected, got)
	case !t.play.header.Same(expected, got):
		t.differ(e.entry, 0, "another answer of the guest", expected, got)
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

// recordedError is an error as it was recorded.
func recordedError(text cassette.Text) error {
	e := new(abi.Error)
	if err := abi.Unmarshal(text, e); err != nil {
		return abi.AsError(err)
	}
	return e
}
