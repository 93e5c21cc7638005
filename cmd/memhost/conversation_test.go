//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/conversation"
)

// newTalker creates a talker for the slot at an address. without names a feature to switch off.
type newTalker func(m memhost, server, without string) conversation.Talker

// TestTheConversation runs the conversation through each of the program's own integrations, and finds nothing lost,
// duplicated or mixed up. If recording, the queue on disk or the scope is switched off, it detects that.
func TestTheConversation(t *testing.T) {
	brief.Leave(t)
	c, err := conversation.Read("../../integrations/testdata/conversation.json")
	require.NoError(t, err)
	require.Len(t, c.Turns, 24)
	cache := cacheHome(t)
	for name, open := range map[string]newTalker{"claude-code": openClaudeCode, "codex": openCodex, "picoclaw": openPicoClaw,
		"mcp": openMCP} {
		for without, want := range conversation.Without {
			t.Run(strings.TrimSuffix(name+" without "+without, " without "), func(t *testing.T) {
				if without != "" {
					brief.Skip(t)
				}
				t.Parallel()
				m := memhost{t, t.TempDir(), cache, plainProgram(t)}
				yaml := []byte("memory: {condition: full_history, archive: true}\n")
				require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), yaml, 0o600))
				slot := &archivingSlot{memhost: m, slotProcess: m.serve()}
				slot.server = strings.TrimPrefix(slot.url, "http://")
				found := c.Hold(slot, open(m, slot.server, without))
				slot.Stop()
				if want == "" {
					require.Empty(t, found)
					return
				}
				require.True(t, conversation.Found(found, want), "%s is not found: %v", want, found)
			})
		}
	}
}

// archivingSlot is a slot of the program.
type archivingSlot struct {
	memhost
	*slotProcess
	server string
}

func (s *archivingSlot) Stop() { s.stop() }

func (s *archivingSlot) Start() { s.slotProcess = s.serve("--listen", s.server) }

func (s *archivingSlot) Swap(provider string) {
	_, code := s.run("swap", provider)
	require.Zero(s.memhost.t, code)
}

func (s *archivingSlot) Archive() string {
	out, code := s.run("archive", "export")
	require.Zero(s.memhost.t, code)
	return out
}

// commandHooks are the hooks of Claude Code or Codex: each event starts a process.
type commandHooks struct {
	memhost
	agent, server, without string
}

func openClaudeCode(m memhost, server, without string) conversation.Talker {
	return &commandHooks{m, "claude-code", server, without}
}

func openCodex(m memhost, server, without string) conversation.Talker {
	return &commandHooks{m, "codex", server, without}
}

func (h *commandHooks) Say(turn conversation.Turn) string {
	id := fmt.Sprintf(`"session_id":%q,"transcript_path":null,"cwd":"/","permission_mode":"default"`, turn.Session)
	if h.agent == "codex" {
		id += fmt.Sprintf(`,"model":"m","turn_id":"t%d"`, turn.N)
	}
	context := h.tell(turn, fmt.Sprintf(`{%s,"hook_event_name":"UserPromptSubmit","prompt":%q}`, id, turn.Text))
	h.tell(turn, fmt.Sprintf(`{%s,"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Noted."}`, id))
	if h.without == "queue" {
		emptyQueue(h.t, filepath.Join(h.dir, "waiting"))
	}
	return context
}

// tell runs the hook for one event and returns the context in its answer.
func (h *commandHooks) tell(turn conversation.Turn, payload string) string {
	user := turn.User
	if h.without == "scope" {
		user = "ann"
	}
	cmd := h.command("hook", h.agent, "--server", h.server, "--outbox", filepath.Join(h.dir, "waiting"), "--run", "study",
		"--user", user, "--timeout", "30s", "--linger", "30s")
	if h.without == "recording" {
		cmd.Env = append(cmd.Env, "MEMHOST_HOOK=read")
	}
	cmd.Stdin = strings.NewReader(payload)
	out, err := cmd.Output()
	require.NoError(h.t, err)
	var answer struct {
		Specific struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if len(out) > 0 {
		require.NoError(h.t, json.Unmarshal(out, &answer), string(out))
	}
	return answer.Specific.Context
}

// Settle has nothing to do: a hook that may linger delivers before it exits.
func (h *commandHooks) Settle() {}

// emptyQueue removes the queued events, as if they had never been on disk.
func emptyQueue(t *testing.T, folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			require.NoError(t, os.RemoveAll(filepath.Join(folder, e.Name()))) // it may be delivered at this moment
		}
	}
}

// pico is PicoClaw with its process hook, which serves all people.
type pico struct {
	memhost
	server, without string
	hook            *hookProcess
}

func openPicoClaw(m memhost, server, without string) conversation.Talker {
	p := &pico{memhost: m, server: server, without: without}
	p.start()
	return p
}

func (p *pico) start() {
	args := []string{"hook", "picoclaw", "--server", p.server, "--outbox", filepath.Join(p.dir, "waiting"), "--run", "study",
		"--timeout", "30s", "--linger", "1m"}
	if p.without == "scope" {
		args = append(args, "--user", "ann", "--shared")
	} else {
		args = append(args, "--user", "{sender_id}")
	}
	p.hook = p.startHook(p.command(args...))
}

func (p *pico) Say(turn conversation.Turn) string {
	id := fmt.Sprintf("main-turn-%d", turn.N)
	line := p.hook.call("hook.before_llm", fmt.Sprintf(`{"meta":{"AgentID":"main","SessionKey":"sk_v1_%s","TurnID":%q,"Iteration":1},`+
		`"context":{"inbound":{"channel":"telegram","chat_id":%[1]q,"sender_id":%[3]q}},"messages":[{"role":"user","content":%[4]q}]}`,
		turn.Session, id, turn.User, turn.Text))
	var answer struct {
		Result struct {
			Request struct{ Messages []struct{ Content string } }
		}
	}
	require.NoError(p.t, json.Unmarshal([]byte(line), &answer))
	if p.without != "recording" {
		_, err := fmt.Fprintf(p.hook.in, `{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"kind":"agent.turn.end","time":"2026-03-02T09:00:%02dZ",`+
			`"scope":{"agent_id":"main","session_key":"sk_v1_%s","turn_id":%q,"channel":"telegram","chat_id":%[2]q,"sender_id":%[4]q},`+
			`"payload":{"Status":"completed","UserMessage":%[5]q,"FinalContent":"Noted."}}}`+"\n", turn.N, turn.Session, id, turn.User, turn.Text)
		require.NoError(p.t, err)
		p.hook.call("hook.after_llm", `{}`)
	}
	if p.without == "queue" {
		emptyQueue(p.t, filepath.Join(p.dir, "waiting"))
	}
	if messages := answer.Result.Request.Messages; len(messages) > 0 {
		return strings.TrimPrefix(messages[0].Content, turn.Text)
	}
	return ""
}

// Settle stops PicoClaw, whose hook then delivers, and starts it again.
func (p *pico) Settle() {
	p.hook.end()
	p.start()
}

// models are models that use the MCP tools, each with its own child process. They retry failed calls, as the error
// tells them to: that is their queue.
type models struct {
	memhost
	without string
	clients map[string]*mcpClient
	failed  []failedCall
}

// failedCall is a call of memory_add to retry.
type failedCall struct {
	user      string
	arguments map[string]any
}

func openMCP(m memhost, _, without string) conversation.Talker {
	return &models{memhost: m, without: without, clients: map[string]*mcpClient{}}
}

func (m *models) client(user string) *mcpClient {
	if m.without == "scope" {
		user = "ann"
	}
	if m.clients[user] == nil {
		m.clients[user] = m.mcpClient("--run", "study", "--persona", user)
	}
	return m.clients[user]
}

func (m *models) Say(turn conversation.Turn) string {
	context, _ := m.client(turn.User).search()
	m.again()
	if m.without != "recording" {
		m.add(turn.User, map[string]any{"text": turn.Text, "reply": "Noted."})
	}
	return context
}

var namedEvent = regexp.MustCompile(`"event_id": "([^"]+)"`)

func (m *models) add(user string, arguments map[string]any) {
	said, failed := m.client(user).call("memory_add", arguments)
	if failed && m.without != "queue" {
		name := namedEvent.FindStringSubmatch(said)
		require.NotNil(m.t, name, said)
		arguments["event_id"] = name[1]
		m.failed = append(m.failed, failedCall{user, arguments})
	}
}

// again retries the failed calls.
func (m *models) again() {
	failed := m.failed
	m.failed = nil
	for _, call := range failed {
		m.add(call.user, call.arguments)
	}
}

func (m *models) Settle() {
	m.again()
	require.Empty(m.t, m.failed)
}
