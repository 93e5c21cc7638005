//go:build unix

package picoclaw_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/integrations/picoclaw"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/conversation"
	"github.com/memhost/memhost/internal/test/logs"
)

// TestTheConversation holds the conversation of all integrations through the hook, with the real memhost.
func TestTheConversation(t *testing.T) {
	c, err := conversation.Read("../testdata/conversation.json")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "memhost")
	out, err := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/memhost").CombinedOutput()
	require.NoError(t, err, string(out))
	for without, want := range conversation.Without {
		t.Run(strings.TrimSuffix("hook without "+without, " without "), func(t *testing.T) {
			if without != "" {
				brief.Skip(t)
			}
			t.Parallel()
			s := &servedSlot{t: t, program: program, dir: t.TempDir(), address: "127.0.0.1:0"}
			s.Start()
			defer func() { s.Stop() }()
			p := &pico{t: t, slot: s, without: without}
			p.open()
			found := c.Hold(s, p)
			if want == "" {
				require.Empty(t, found)
				return
			}
			require.True(t, conversation.Found(found, want), "%s is not found: %v", want, found)
		})
	}
}

// servedSlot is a "memhost run" on a data folder.
type servedSlot struct {
	t                     *testing.T
	program, dir, address string
	cmd                   *exec.Cmd
}

func (s *servedSlot) Start() {
	config := filepath.Join(s.dir, "memhost.yaml")
	require.NoError(s.t, os.WriteFile(config, []byte("memory: {condition: full_history, archive: true}\n"), 0o600))
	s.cmd = exec.Command(s.program, "run", "--json", "--config", config, "--data", filepath.Join(s.dir, "data"), "--listen",
		s.address)
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	var serving struct{ URL string }
	require.NoError(s.t, json.NewDecoder(out).Decode(&serving))
	s.address = strings.TrimPrefix(serving.URL, "http://")
}

func (s *servedSlot) Stop() {
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, s.cmd.Wait())
}

func (s *servedSlot) Swap(provider string) { s.command("swap", provider) }

func (s *servedSlot) Archive() string { return s.command("archive", "export") }

func (s *servedSlot) command(args ...string) string {
	var errs bytes.Buffer
	cmd := exec.Command(s.program, append([]string{"--server", s.address}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(s.t, err, errs.String())
	return string(out)
}

// pico is PicoClaw with the hook in its own program.
type pico struct {
	t       *testing.T
	slot    *servedSlot
	without string
	hook    *memory
}

func (p *pico) open() {
	slot, err := picoclaw.Dial(p.slot.address, "")
	require.NoError(p.t, err)
	o := picoclaw.Options{Slot: slot, Outbox: filepath.Join(p.slot.dir, "waiting"), Log: new(logs.Buffer), Timeout: 30 * time.Second,
		Linger: time.Minute, Scope: abi.MemoryScope{RunID: "study", PersonaID: "{sender_id}"}}
	if p.without == "scope" {
		o.Scope.PersonaID, o.Shared = "ann", true
	}
	p.hook, err = picoclaw.New[llmHookRequest, llmHookResponse, hookDecision, event](o)
	require.NoError(p.t, err)
}

func (p *pico) Say(turn conversation.Turn) string {
	where := scope{AgentID: "main", SessionKey: "sk_v1_" + turn.Session, TurnID: fmt.Sprint("main-turn-", turn.N), Channel: "telegram",
		ChatID: turn.Session, SenderID: turn.User}
	request := &llmHookRequest{Meta: hookMeta{AgentID: "main", TurnID: where.TurnID, SessionKey: where.SessionKey, Iteration: 1},
		Context: &turnContext{&inboundContext{"telegram", turn.User}}, Messages: []message{{"user", turn.Text}}}
	got, _, err := p.hook.BeforeLLM(p.t.Context(), request)
	require.NoError(p.t, err)
	if p.without != "recording" {
		require.NoError(p.t, p.hook.OnRuntimeEvent(p.t.Context(), event{ID: "evt-1", Kind: "agent.turn.end", Scope: where,
			Time:    time.Date(2026, 3, 2, 9, 0, turn.N, 0, time.UTC),
			Payload: turnEndPayload{Status: "completed", UserMessage: turn.Text, FinalContent: "Noted."}}))
	}
	if p.without == "queue" {
		waiting, err := filepath.Glob(filepath.Join(p.slot.dir, "waiting", "*"))
		require.NoError(p.t, err)
		for _, path := range waiting {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				require.NoError(p.t, os.RemoveAll(path))
			}
		}
	}
	return strings.TrimPrefix(got.Messages[0].Content, turn.Text)
}

// Settle ends PicoClaw, which closes its hooks, and starts it again.
func (p *pico) Settle() {
	require.NoError(p.t, p.hook.Close())
	p.open()
}
