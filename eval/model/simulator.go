package model

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
)

// Simulator plays the user in a test session: a model, or an external process that speaks JSON lines. What it says is a
// record of the evaluation, never memory.
//
// The process reads one line for each turn, {"query", "scenario"?, "context"?, "attribute"?, "messages": [{role,
// content}]}, and writes one, {"content": "..."}. It is started when it is needed first, and ended with the run.
type Simulator struct {
	client *Client
	turns  int
	seed   uint64

	mu      sync.Mutex
	command []string
	process *process
	timeout time.Duration
}

type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newSimulator(l *lab.Lab, getenv func(string) string) (*Simulator, error) {
	s := &Simulator{turns: l.Simulator.Turns, seed: l.Seed, command: l.Simulator.Command,
		timeout: time.Duration(l.Simulator.TimeoutMS) * time.Millisecond}
	if len(s.command) > 0 {
		return s, nil
	}
	var err error
	s.client, err = NewClient(l.Simulator.Model, getenv)
	return s, err
}

// simulatorPrompt is the instruction for a model that plays the user.
const simulatorPrompt = `You play a person who talks to an assistant. Stay with what you asked: %s
Your situation: %s
Say the next thing that this person would say, in one or two sentences. Do not tell the assistant what it should remember of you.`

// Say is what the user says next, with the tokens that a model's endpoint counted for it.
func (s *Simulator) Say(ctx context.Context, probe *pack.Probe, talk []Message, put Put) (string, *journal.Usage, error) {
	if s.client == nil {
		text, err := s.ask(ctx, probe, talk)
		return text, nil, err
	}
	setting := strings.Join(strings.Fields(strings.Join([]string{probe.Scenario, probe.Context, probe.Attribute}, " ")),
		", ")
	// The agent's prompt holds the memory: the user does not see it, only the question.
	messages := []Message{{"system", fmt.Sprintf(simulatorPrompt, probe.Query, setting)}, {"assistant", probe.Query}}
	for _, m := range talk[1:] {
		role := "assistant"
		if m.Role == role {
			role = "user" // to the one who plays the user, the assistant is the other
		}
		messages = append(messages, Message{role, m.Content})
	}
	reply, err := s.client.Chat(ctx, messages, s.seed, put)
	if err != nil {
		return "", nil, err
	}
	if missing := reply.missing(); missing != nil {
		return "", nil, prefixed("simulator: ", missing)
	}
	return reply.Text, reply.Usage, nil
}

// ask asks the external process.
func (s *Simulator) ask(ctx context.Context, probe *pack.Probe, talk []Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		if err := s.start(); err != nil {
			return "", err
		}
	}
	messages := append([]Message{{"user", probe.Query}}, talk[1:]...)
	line, err := json.Marshal(map[string]any{"query": probe.Query, "scenario": probe.Scenario, "context": probe.Context,
		"attribute": probe.Attribute, "messages": messages})
	if err != nil {
		return "", err
	}
	type result struct {
		text string
		err  error
	}
	answered := make(chan result, 1)
	p := s.process
	go func() {
		var said struct {
			Content string `json:"content"`
		}
		_, err := p.in.Write(append(line, '\n'))
		var answer []byte
		if err == nil {
			answer, err = p.out.ReadBytes('\n')
		}
		if err == nil {
			err = json.Unmarshal(answer, &said)
		}
		answered <- result{said.Content, err}
	}()
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	var failed error
	select {
	case r := <-answered:
		if r.err == nil {
			return r.text, nil
		}
		failed = abi.WrapError(abi.CodeBackend, "the simulator's process answered what is no line {\"content\": "+
			"...}: "+r.err.Error(), r.err)
	case <-timer.C:
		failed = abi.NewError(abi.CodeTimeout, fmt.Sprintf("the simulator's process did not answer in %d ms",
			s.timeout.Milliseconds()))
	case <-ctx.Done():
		failed = context.Cause(ctx)
	}
	s.end()
	return "", failed
}

func (s *Simulator) start() error {
	cmd := exec.Command(s.command[0], s.command[1:]...) //nolint:gosec // the operator's own lab file names it
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			if err = cmd.Start(); err == nil {
				s.process = &process{cmd, in, bufio.NewReader(out)}
				return nil
			}
		}
	}
	return abi.WrapError(abi.CodeInvalidArgument, fmt.Sprintf("simulator.command: %v", err), err)
}

// end ends the process; the next turn starts another.
func (s *Simulator) end() {
	if s.process != nil {
		_ = s.process.in.Close()
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Close ends what was started.
func (a *Agent) Close() {
	if a.user != nil {
		a.user.mu.Lock()
		defer a.user.mu.Unlock()
		a.user.end()
	}
}
