package picoclaw_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/picoclaw"
	"github.com/memhost/memhost/internal/test/logs"
)

// workers are hooks in this process, instead of child processes. die ends the running one like a kill: what it has read
// and not put on disk is lost.
type workers struct {
	t   *testing.T
	s   *slot
	dir string
	// refuse is the number of next starts that fail.
	refuse int
	// silent is the number of next workers that answer nothing. If heard is set, such a worker reads one line, and says so;
	// else it reads nothing.
	silent int
	heard  chan struct{}

	mu      sync.Mutex
	die     func()
	started chan struct{}
	running sync.WaitGroup
}

func (w *workers) start() (*picoclaw.Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse > 0 {
		w.refuse--
		return nil, errors.New("no more processes")
	}
	hookIn, in := io.Pipe()
	out, hookOut := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w.die = func() {
		cancel()
		_ = hookIn.CloseWithError(io.ErrClosedPipe)
		_ = out.CloseWithError(io.EOF)
	}
	silent := w.silent > 0
	w.silent--
	w.running.Go(func() {
		if silent {
			if w.heard != nil {
				_, err := bufio.NewReader(hookIn).ReadString('\n')
				assert.NoError(w.t, err)
				w.heard <- struct{}{}
			}
			<-ctx.Done()
			ended <- nil
			return
		}
		logger := hclog.NewNullLogger()
		box, err := outbox.Open(w.dir, outbox.Options{Logger: logger})
		if err == nil {
			h := picoclaw.New(picoclaw.Options{Slot: w.s, Box: box, Logger: logger,
				Scope: abi.MemoryScope{RunID: "run1", PersonaID: "user_a"}})
			err = h.Serve(ctx, hookIn, hookOut)
		}
		_ = hookOut.Close()
		ended <- err
	})
	w.started <- struct{}{}
	return &picoclaw.Worker{In: in, Out: out, Wait: func() error { return <-ended }, Kill: w.die}, nil
}

// kill ends the running worker, calls before, and waits for the next worker.
func (w *workers) kill(before ...func()) {
	w.mu.Lock()
	die := w.die
	w.mu.Unlock()
	die()
	for _, do := range before {
		do()
	}
	<-w.started
}

func startParent(t *testing.T, w *workers) *agent {
	t.Helper()
	w.t, w.dir, w.started = t, filepath.Join(t.TempDir(), "box"), make(chan struct{}, 100)
	a := &agent{t: t, log: new(logs.Buffer), done: make(chan error, 1)}
	p := &picoclaw.Parent{Start: w.start, Pause: time.Millisecond,
		Logger: hclog.New(&hclog.LoggerOptions{Output: a.log, Level: hclog.Info})}
	parentIn, in := io.Pipe()
	out, parentOut := io.Pipe()
	a.in, a.out = in, bufio.NewReaderSize(out, 1<<20)
	a.serve(out, func() error {
		defer w.running.Wait() // a killed one may still be writing
		return p.Serve(context.Background(), parentIn, parentOut)
	})
	return a
}

func TestAWorkerThatDiesIsStartedAgainAndLosesNothing(t *testing.T) {
	w := &workers{s: new(slot)}
	a := startParent(t, w)
	<-w.started
	require.JSONEq(t, `{"ok":true,"name":"memhost"}`, string(a.call(hello).Result))
	for i := range 20 {
		turn := fmt.Sprint("t", i)
		require.NotNil(t, a.call(before(2+i, "s", turn, 1, "hello")).modified(t))
		a.send(ended("s", turn, fmt.Sprintf("2026-11-21T04:00:%02dZ", i), "completed", fmt.Sprint("turn ", i), "ok"))
		if i%5 == 4 {
			w.kill()
		}
	}
	a.end()
	ids := map[string]bool{}
	for _, e := range w.s.told {
		ids[e.EventID] = true
	}
	require.Len(t, ids, 20, "each turn arrives; what is sent twice has one id")
	require.Contains(t, a.log.String(), "the hook's worker ended, and is started again")
}

func TestCallsOfAWorkerThatDiesAreAnswered(t *testing.T) {
	w := &workers{s: new(slot), silent: 1, heard: make(chan struct{}, 1)}
	a := startParent(t, w)
	<-w.started
	a.send(before(7, "s", "t1", 1, "hello"))
	<-w.heard
	w.kill(func() {
		text, err := a.out.ReadString('\n')
		require.NoError(t, err)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":7,"result":{"action":"continue"}}`, text)
	})
	require.NotNil(t, a.call(before(8, "s", "t2", 1, "hello")).modified(t), "the next worker answers")
	a.end()
}

func TestWithoutAWorkerTheAgentGoesOnAndTurnsWait(t *testing.T) {
	w := &workers{s: new(slot), refuse: 3}
	a := startParent(t, w)
	a.call(hello)
	a.send(ended("s", "t1", at, "completed", "hello", "Hello."))
	<-w.started
	a.end()
	require.Equal(t, [][]string{{"hello", "Hello."}}, contents(w.s))
	require.Contains(t, a.log.String(), "no more processes")
}

func TestAWorkerThatDiesAfterTheAgentIsStartedForWhatItHadNotPutOnDisk(t *testing.T) {
	w := &workers{s: new(slot), silent: 1}
	a := startParent(t, w)
	<-w.started
	sent := make(chan struct{})
	go func() { // the silent worker's pipe has no room
		defer close(sent)
		_, _ = io.WriteString(a.in, ended("s", "t1", at, "completed", "hello", "Hello.")+"\n")
		_ = a.in.Close()
	}()
	<-sent
	w.kill()
	require.NoError(t, <-a.done)
	// A worker that ends before it has reported what is on disk has a successor, which may send it again.
	ids := map[string][]string{}
	for i, content := range contents(w.s) {
		ids[w.s.told[i].EventID] = content
	}
	require.Len(t, ids, 1, "what is sent twice has one id")
	require.Equal(t, []string{"hello", "Hello."}, ids[w.s.told[0].EventID])
}
