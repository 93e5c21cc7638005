package picoclaw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Worker is a running hook process as its parent sees it.
type Worker struct {
	In  io.WriteCloser
	Out io.Reader
	// Wait waits for the process to end, after Out has ended. Its error is the reason.
	Wait func() error
	// Kill ends the process at once.
	Kill func()
}

// Parent is the process that PicoClaw starts. PicoClaw never restarts a hook that has died, so the hook runs in a
// worker process, which the parent restarts. The parent passes lines on in both directions and understands little of
// them: while no worker runs, it answers calls with "continue" and keeps the ends of turns for the next worker.
type Parent struct {
	// Start starts a worker. Required.
	Start func() (*Worker, error)
	// Logger goes to standard error, which is PicoClaw's log. Required.
	Logger hclog.Logger
	// Pause is the delay before restarting a worker that ended soon after its start; it doubles each time, up to
	// maxPause. 0 means 100 ms.
	Pause time.Duration

	mu     sync.Mutex
	out    io.Writer
	worker *Worker
	// pending holds the ids of the calls that the worker has not answered, with the answer to give if it dies.
	pending map[string]fallback
	// kept holds the ends of turns that the worker has not put on disk yet, oldest first.
	kept []keptEvent
	acks int
	full bool
}

// fallback is the answer to a call that no worker answers.
type fallback struct {
	id     json.RawMessage
	result string
}

// keptEvent is a line, and the id of the call that follows it. A worker answers in order, so the answer to the call
// means that the event is on disk.
type keptEvent struct {
	ack  string
	line []byte
}

const (
	defaultPause = 100 * time.Millisecond
	maxPause     = 30 * time.Second
	// livesWell is how long a worker must have lived to be restarted at once.
	livesWell = 10 * time.Second
	// maxKept is the most ends of turns that wait for a worker.
	maxKept = 1000
	// startsAtEnd is how often a worker is restarted after the end of the input, for events that are not on disk yet.
	startsAtEnd = 3
)

// Serve passes PicoClaw's lines on until in ends, and waits for the worker to end.
//
// Errors: read errors other than the end of the input.
func (p *Parent) Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	p.out, p.pending = out, map[string]fallback{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	since, wait := p.start(ended), p.pause()
	var again <-chan time.Time // the time to start the next worker
	atEnd, starts := false, 0
	lines := make(chan line)
	go readLines(ctx, in, lines)
	for {
		select {
		case <-ctx.Done():
			p.kill()
			return nil
		case l := <-lines:
			switch {
			case errors.Is(l.err, errLongLine):
				p.Logger.Warn("a message from PicoClaw was left out", "why", l.err)
			case l.err != nil:
				if !errors.Is(l.err, io.EOF) {
					err = fmt.Errorf("reading PicoClaw's messages: %w", l.err)
				}
				atEnd, lines = true, nil
				if p.closeInput() {
					break // ended follows
				}
				if len(p.kept) == 0 {
					return err
				}
				again = time.After(0)
			case len(bytes.TrimSpace(l.text)) > 0:
				p.pass(l.text)
			}
		case <-again:
			again = nil
			since = p.start(ended)
			if atEnd {
				p.closeInput()
			}
		case endErr := <-ended:
			if atEnd {
				starts++
				if len(p.kept) == 0 || starts > startsAtEnd {
					return err
				}
			} else {
				p.Logger.Warn("the hook's worker ended, and is started again", "error", endErr)
			}
			if time.Since(since) > livesWell {
				wait = p.pause()
			}
			again = time.After(wait)
			wait = min(2*wait, maxPause)
		}
	}
}

func (p *Parent) pause() time.Duration {
	if p.Pause > 0 {
		return p.Pause
	}
	return defaultPause
}

// start starts a worker and gives it what its predecessor did not put on disk. It returns the start time; ended
// receives the worker's end, or why it could not be started.
func (p *Parent) start(ended chan<- error) time.Time {
	w, err := p.Start()
	if err != nil {
		ended <- err
		return time.Now()
	}
	p.mu.Lock()
	p.worker = w
	var kept []byte
	for _, k := range p.kept {
		kept = append(kept, k.text()...)
	}
	p.mu.Unlock()
	go func() { ended <- p.answers(w) }()
	if len(kept) > 0 {
		_, _ = w.In.Write(kept) // an error is ignored: the end of its answers shows that a worker died
	}
	return time.Now()
}

// pass gives a line to the worker. Without a worker, a call is answered here, and the end of a turn waits.
func (p *Parent) pass(text []byte) {
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		p.Logger.Warn("a message that is not of the protocol", "error", err)
		return
	}
	call := len(r.ID) > 0 && string(r.ID) != "null"
	p.mu.Lock()
	w := p.worker
	passed := append(text, '\n')
	switch {
	case call && w == nil:
		p.answer(fallbackOf(&r))
	case call:
		p.pending[string(r.ID)] = fallbackOf(&r)
	case r.Method != methodRuntimeEvent: // a notification that may be dropped
	case len(p.kept) >= maxKept:
		if !p.full {
			p.Logger.Error("turns are not recorded: too many wait for the hook's worker", "waiting", len(p.kept))
		}
		p.full, w = true, nil
	default:
		p.acks++
		k := keptEvent{fmt.Sprintf(`"memhost-%d"`, p.acks), passed}
		p.kept, passed = append(p.kept, k), k.text()
	}
	p.mu.Unlock()
	if w != nil {
		_, _ = w.In.Write(passed)
	}
}

// text returns the event and the call whose answer means that the event is on disk.
func (k keptEvent) text() []byte {
	return fmt.Appendf(bytes.Clone(k.line), `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`+"\n", k.ack,
		methodAfterLLM)
}

func fallbackOf(r *request) fallback {
	if r.Method == methodHello {
		return fallback{r.ID, resultHello}
	}
	return fallback{r.ID, resultContinue}
}

// answers passes on the worker's answers until they end, and then gives the fallback answers to the remaining calls.
func (p *Parent) answers(w *Worker) error {
	r := bufio.NewReaderSize(w.Out, 64<<10)
	for {
		text, err := readLine(r, maxRequest)
		if err != nil {
			break
		}
		p.passBack(text)
	}
	err := w.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, f := range p.pending {
		p.answer(f)
		delete(p.pending, id)
	}
	p.worker = nil
	return err
}

// passBack passes on one answer. An incomplete line of a killed worker is not JSON and is dropped.
func (p *Parent) passBack(text []byte) {
	var r request
	if json.Unmarshal(text, &r) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) > 0 && p.kept[0].ack == string(r.ID) {
		p.kept, p.full = p.kept[1:], false
		return
	}
	if _, known := p.pending[string(r.ID)]; known {
		delete(p.pending, string(r.ID))
		p.write(append(text, '\n'))
	}
}

// answer and write are called with p.mu held.
func (p *Parent) answer(f fallback) { p.write(answerLine(f.id, []byte(f.result), nil)) }

func (p *Parent) write(line []byte) {
	if _, err := p.out.Write(line); err != nil {
		p.Logger.Error("PicoClaw does not take an answer", "error", err)
	}
}

// closeInput tells the worker that there is no more input; it returns false if none runs.
func (p *Parent) closeInput() bool {
	p.mu.Lock()
	w := p.worker
	p.mu.Unlock()
	if w == nil {
		return false
	}
	_ = w.In.Close()
	return true
}

func (p *Parent) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worker != nil {
		p.worker.Kill()
	}
}
