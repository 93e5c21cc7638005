package seat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/subject"
)

// command is the seat of a process that communicates in JSON lines.
type command struct {
	argv    []string
	timeout time.Duration
}

func newCommand(argv []string, folder string, timeout time.Duration) (*command, error) {
	argv, err := lookup(argv, folder)
	return &command{argv, timeout}, err
}

// Kind implements Seat.
func (*command) Kind() string { return "command" }

// Sit implements Seat.
func (c *command) Sit(ctx context.Context, start *subject.Start) (subject.Subject, error) {
	p, err := startProcess(c.argv, start, c.timeout)
	if err != nil {
		return nil, err
	}
	t := &lineSubject{process: p, lines: make(chan line), quit: make(chan struct{})}
	go t.read()
	if err := t.write(ctx, start); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// lineSubject is a process that communicates in JSON lines, in one conversation.
type lineSubject struct {
	*process
	lines  chan line
	quit   chan struct{} // closed once no more lines are expected
	failed bool
}

// line is one line of a subject, or why there are no more.
type line struct {
	text []byte
	err  error
}

// maxLine bounds one line of a subject, in bytes.
const maxLine = 1 << 20

// read forwards lines until the process ends, and drops them once no more are expected.
func (t *lineSubject) read() {
	in := bufio.NewScanner(t.out)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	pass := func(l line) {
		select {
		case t.lines <- l:
		case <-t.quit:
		}
	}
	for in.Scan() {
		pass(line{text: bytes.Clone(in.Bytes())})
	}
	err := in.Err()
	if err == nil {
		err = io.EOF
	}
	go func() { _, _ = io.Copy(io.Discard, t.out) }() // after a line that is too long
	pass(line{err: err})
}

// stop kills the process.
func (t *lineSubject) stop() {
	close(t.quit)
	t.kill()
}

// write sends a line.
//
// Errors: a failure of the subject, if the process does not read it; the context's.
func (t *lineSubject) write(ctx context.Context, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return abi.WrapError(abi.CodeInternal, err.Error(), err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := t.in.Write(append(text, '\n'))
		written <- err
	}()
	timer := time.NewTimer(t.timeout)
	defer timer.Stop()
	select {
	case err := <-written:
		if err == nil {
			return nil
		}
		return t.broken(ctx, "does not read")
	case <-timer.C:
		return subject.Failed(abi.CodeTimeout, fmt.Sprintf("the subject read nothing for %s", t.timeout))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// broken is the error for a process that closed a pipe, usually because it exited.
func (t *lineSubject) broken(ctx context.Context, what string) error {
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	select {
	case <-t.exited:
		return subject.Failed(abi.CodeBackend, "the subject exited: "+t.ended())
	case <-timer.C:
		return subject.Failed(abi.CodeBackend, "the subject "+what)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Say implements Subject.
func (t *lineSubject) Say(ctx context.Context, text string) (*subject.Answer, error) {
	answer, err := t.say(ctx, text)
	t.failed = err != nil
	return answer, err
}

func (t *lineSubject) say(ctx context.Context, text string) (*subject.Answer, error) {
	if err := t.write(ctx, map[string]string{"type": "user", "text": text}); err != nil {
		return nil, err
	}
	timer := time.NewTimer(t.timeout)
	defer timer.Stop()
	select {
	case l := <-t.lines:
		switch {
		case errors.Is(l.err, bufio.ErrTooLong):
			return nil, subject.Failed(abi.CodeTooLarge, fmt.Sprintf("the subject wrote a line of more than %d bytes", maxLine))
		case l.err != nil:
			return nil, t.broken(ctx, "closed its standard output")
		}
		return readAnswer(l.text)
	case <-timer.C:
		return nil, subject.Failed(abi.CodeTimeout, fmt.Sprintf("the subject did not answer in %s", t.timeout))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readAnswer parses a line {"type":"agent","text":...,"usage":...}.
func readAnswer(text []byte) (*subject.Answer, error) {
	var answer struct {
		Type  string         `json:"type"`
		Text  *string        `json:"text"`
		Usage *journal.Usage `json:"usage"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Type != "agent" || answer.Text == nil {
		return nil, subject.Failed(abi.CodeBackend, fmt.Sprintf("the subject wrote %.200q, want a line "+
			`{"type":"agent","text":...}`, text))
	}
	return &subject.Answer{Text: *answer.Text, Usage: answer.Usage}, nil
}

// End implements Subject. A process that failed is killed at once.
func (t *lineSubject) End(ctx context.Context) []journal.Breach {
	if t.failed {
		t.stop()
		return nil
	}
	_ = t.write(ctx, map[string]string{"type": "end"}) // a process that has exited cannot read it
	close(t.quit)
	return t.end(ctx)
}
