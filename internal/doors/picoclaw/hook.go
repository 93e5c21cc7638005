package picoclaw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/places"
)

// Slot is what the hook asks of a slot. A host.Contract is one.
type Slot interface {
	outbox.Slot
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
}

// Options configure a Hook.
type Options struct {
	// Slot is asked for context and receives the events. It may be down; its methods then return errors. Required,
	// except for a hook with a Problem.
	Slot Slot
	// Box keeps the events until the slot has accepted them. Required, except for a hook with a Problem.
	Box *outbox.Box
	// Scope is the scope of this hook. In its ids, {channel}, {sender_id}, {agent} and {session} are replaced by what
	// PicoClaw reports about the speaker. Nothing said in a conversation can select another scope.
	Scope abi.MemoryScope
	// Session is the session_id of every request. Default: PicoClaw's own session key. A token for one session requires it.
	Session string
	// Shared lets several people use one memory. Otherwise a memory belongs to the first person who speaks, and others
	// get none.
	Shared bool
	// Budget bounds the context.
	Budget abi.ContextBudget
	// Timeout is how long a turn waits for its context. It must be shorter than PicoClaw's interceptor_timeout_ms. 0
	// means 4 s; PicoClaw's own default is 5 s.
	Timeout time.Duration
	// Linger is how long the hook keeps delivering after PicoClaw has closed its input. 0 means 1.5 s; PicoClaw kills a
	// hook after 2 s.
	Linger time.Duration
	// Problem is why there is no memory: a configuration that cannot be used. The hook still serves, because an agent
	// whose hook does not start does not start either.
	Problem error
	// Logger goes to standard error, which is PicoClaw's log. Required.
	Logger hclog.Logger
}

const (
	defaultTimeout = 4 * time.Second
	defaultLinger  = 1500 * time.Millisecond
	// maxTogether is the most calls that are answered at the same time.
	maxTogether = 64
)

// Hook is one hook process.
type Hook struct {
	o     Options
	log   hclog.Logger
	turns turns

	outMu sync.Mutex
	out   io.Writer

	people *people
}

// New makes a hook.
func New(o Options) *Hook {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Linger <= 0 {
		o.Linger = defaultLinger
	}
	h := &Hook{o: o, log: o.Logger, turns: turns{byKey: map[turnKey]*turn{}}}
	if o.Box != nil {
		h.people = newPeople(filepath.Join(o.Box.Dir(), "people"), o.Logger)
	}
	return h
}

// speaker is who speaks, and where, in PicoClaw's terms.
type speaker struct{ agent, session, channel, sender string }

// The placeholders in the ids of Options.Scope.
const (
	placeChannel = "{channel}"
	placeSender  = "{sender_id}"
	placeAgent   = "{agent}"
	placeSession = "{session}"
)

// CheckPlaces rejects a scope with placeholders that a hook does not replace.
//
// Errors: invalid_argument.
func CheckPlaces(scope abi.MemoryScope) error {
	return places.Check(scope, placeChannel, placeSender, placeAgent, placeSession)
}

// scopeOf returns the scope of a speaker's memory. A placeholder for which PicoClaw reports nothing is left as it is.
func (h *Hook) scopeOf(s speaker) abi.MemoryScope {
	var pairs []string
	for _, place := range [][2]string{{placeChannel, s.channel}, {placeSender, s.sender}, {placeAgent, s.agent},
		{placeSession, s.session}} {
		if place[1] != "" {
			pairs = append(pairs, place[0], place[1])
		}
	}
	put, scope := strings.NewReplacer(pairs...), h.o.Scope
	scope.RunID, scope.PersonaID = shortID(put.Replace(scope.RunID)), shortID(put.Replace(scope.PersonaID))
	scope.AgentID = shortID(put.Replace(scope.AgentID))
	return scope
}

// line is a line from PicoClaw, or the end of its input.
type line struct {
	text []byte
	err  error
}

// Serve reads in until it ends, writes answers to out, and then delivers what it can for at most Options.Linger. What
// it could not deliver stays in the box.
//
// Errors: read errors other than the end of the input.
func (h *Hook) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	h.out = out
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, delivered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(delivered)
		h.deliver(ctx, end)
	}()
	err := h.readAll(ctx, in)
	close(end)
	<-delivered
	return err
}

// deliver delivers turns until ctx ends. Once end is closed it continues for at most Options.Linger.
func (h *Hook) deliver(ctx context.Context, end <-chan struct{}) {
	if h.o.Problem != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-end:
			linger := time.AfterFunc(h.o.Linger, cancel)
			defer linger.Stop()
			<-ctx.Done()
		case <-ctx.Done():
		}
	}()
	h.o.Box.Run(ctx, end, h.o.Slot)
	h.reportWaiting()
}

// readAll answers line after line until the input or ctx ends, and finishes every call that it started.
func (h *Hook) readAll(ctx context.Context, in io.Reader) error {
	lines := make(chan line)
	go readLines(ctx, in, lines)
	var calls sync.WaitGroup
	defer calls.Wait()
	places := make(chan struct{}, maxTogether)
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-lines:
			switch {
			case errors.Is(l.err, io.EOF):
				return nil
			case errors.Is(l.err, errLongLine):
				h.log.Warn("a message from PicoClaw was left out", "why", l.err)
			case l.err != nil:
				return fmt.Errorf("reading PicoClaw's messages: %w", l.err)
			case len(bytes.TrimSpace(l.text)) > 0:
				h.take(ctx, l.text, &calls, places)
			}
		}
	}
}

// readLines sends each line of in, until in or ctx ends. It runs in its own goroutine, because a read cannot be
// interrupted.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r, maxRequest)
		select {
		case lines <- line{text, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

// take handles one message. Quick work is done before the next message is read, so that a turn is on disk before
// anything that PicoClaw sends later is answered. Calls to the slot run in the background.
func (h *Hook) take(ctx context.Context, text []byte, calls *sync.WaitGroup, places chan struct{}) {
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		h.log.Warn("a message that is not of the protocol", "error", err)
		return
	}
	if len(r.ID) == 0 || string(r.ID) == "null" {
		if r.Method == methodRuntimeEvent {
			h.guard("a turn was not recorded", func() { h.afterTurn(r.Params) })
		}
		return
	}
	switch r.Method {
	case methodHello:
		// Before the slot is used: a hook that does not answer this hangs the agent forever.
		h.answer(r.ID, []byte(resultHello), nil)
		h.greet(r.Params)
	case methodBeforeLLM:
		places <- struct{}{}
		calls.Add(1)
		go func() {
			defer calls.Done()
			defer func() { <-places }()
			result := []byte(resultContinue)
			h.guard("context is absent", func() { result = h.beforeLLM(ctx, r.Params) })
			h.answer(r.ID, result, nil)
		}()
	case methodAfterLLM, methodBeforeTool, methodAfterTool:
		h.answer(r.ID, []byte(resultContinue), nil)
	default: // including hook.approve_tool: memory approves nothing
		h.log.Warn("memhost has no such hook; leave it out of \"intercept\"", "method", r.Method)
		h.answer(r.ID, nil, &rpcError{rpcNoSuchMethod, "memhost: no hook " + r.Method})
	}
}

// guard recovers from a panic, so that a defect does not end the process and the agent's calls.
func (h *Hook) guard(loss string, do func()) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error(loss+": this is a defect of memhost", "panic", fmt.Sprint(p))
		}
	}()
	do()
}

// answer writes a line. Nothing else is written to standard output.
func (h *Hook) answer(id json.RawMessage, result []byte, failed *rpcError) {
	text := answerLine(id, result, failed)
	h.outMu.Lock()
	defer h.outMu.Unlock()
	if _, err := h.out.Write(text); err != nil {
		h.log.Error("PicoClaw does not take an answer", "error", err)
	}
}

// greet checks which hooks the agent offers, and logs what is missing.
func (h *Hook) greet(params json.RawMessage) {
	if h.o.Problem != nil {
		h.log.Error("no memory in this run: the hook's configuration cannot be used", "error", h.o.Problem, "hint",
			abi.AsError(h.o.Problem).Hint)
		return
	}
	var hello struct {
		Version int      `json:"version"`
		Modes   []string `json:"modes"`
	}
	if err := json.Unmarshal(params, &hello); err != nil || hello.Version != 1 {
		h.log.Warn("PicoClaw speaks another version of the hook protocol than 1; memory may be absent", "params",
			string(params))
		return
	}
	for mode, loss := range map[string]string{"llm": "context is absent: add \"before_llm\" to \"intercept\"",
		"observe": "turns are not recorded: add \"agent.turn.end\" to \"observe\""} {
		if !slices.Contains(hello.Modes, mode) {
			h.log.Warn(loss)
		}
	}
	h.log.Info("memory is on", "run_id", h.o.Scope.RunID, "persona_id", h.o.Scope.PersonaID, "outbox", h.o.Box.Dir())
}

// unknown logs what was lost with a message of an unknown form, which another version of PicoClaw may send.
func (h *Hook) unknown(loss string, err error) {
	h.log.Warn(loss+": PicoClaw sent what memhost does not know", "error", err, "hint",
		"PicoClaw of commit cf67dd38 was checked, and another version may send something else: docs/agents.md")
}

// reportWaiting logs, at the end, how many turns are left in the box.
func (h *Hook) reportWaiting() {
	if h.o.Problem != nil {
		return
	}
	if n, err := h.o.Box.Waiting(); err == nil && n > 0 {
		h.log.Warn("turns wait on disk; the next hook of this memory delivers them", "turns", n, "folder",
			h.o.Box.Dir())
	}
}
