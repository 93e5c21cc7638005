//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/testkit/brief"
)

// conversation is integrations/testdata/conversation.json, which the tests of every integration walk through.
type conversation struct {
	Run   string
	Turns []spoken
}

// spoken is a turn of the conversation; the README beside the file says what its fields are.
type spoken struct {
	n                                   int // its place, from 0
	Provider, Slot, User, Session, Text string
	Knows                               []int
}

// talker is an agent with its integration, and the test in the agent's place.
type talker interface {
	// say is a turn that the agent answers with "Noted."; it gives the context that the model was shown.
	say(turn spoken) string
	// settle returns when everything that was said is with the slot, which serves.
	settle()
}

// newTalker makes a talker for the slot at an address. without names what is switched off: "", "recording", "queue" or
// "scope".
type newTalker func(m memhost, server, without string) talker

// TestTheConversation holds the conversation through each integration of the program itself, with the providers swapped
// and the slot down for a while, and finds nothing lost, doubled or crossed. Where recording, the queue on disk or the
// scope is switched off, it finds that.
func TestTheConversation(t *testing.T) {
	text, err := os.ReadFile("../../integrations/testdata/conversation.json")
	require.NoError(t, err)
	var c conversation
	require.NoError(t, json.Unmarshal(text, &c))
	require.Len(t, c.Turns, 24)
	cache := cacheHome(t)
	for name, open := range map[string]newTalker{"claude-code": openClaudeCode, "codex": openCodex, "picoclaw": openPicoClaw,
		"mcp": openMCP} {
		for without, want := range map[string]string{"": "", "recording": "lost", "queue": "lost", "scope": "crossed"} {
			t.Run(strings.TrimSuffix(name+" without "+without, " without "), func(t *testing.T) {
				if without != "" {
					brief.Skip(t)
				}
				t.Parallel()
				found := c.hold(memhost{t, t.TempDir(), cache}, open, without)
				if want == "" {
					require.Empty(t, found)
					return
				}
				require.True(t, slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, want) }),
					"%s is not found: %v", want, found)
			})
		}
	}
}

// hold holds the conversation and gives what is wrong with what was shown and recorded, one line each.
func (c conversation) hold(m memhost, open newTalker, without string) (found []string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte("memory: {condition: full_history, archive: true}\n"), 0o600))
	slot := m.serve()
	server := strings.TrimPrefix(slot.url, "http://")
	agent := open(m, server, without)
	for n, turn := range c.Turns {
		turn.n = n
		switch turn.Slot {
		case "stop":
			slot.stop()
		case "start":
			slot = m.serve("--listen", server)
		}
		if turn.Provider != "" {
			agent.settle()
			_, code := m.run("swap", turn.Provider)
			require.Zero(m.t, code)
		}
		found = append(found, c.wrongWith(turn, agent.say(turn))...)
	}
	agent.settle()
	out, code := m.run("archive", "export")
	require.Zero(m.t, code)
	slot.stop()
	return append(found, c.wrongInArchive(m.t, out)...)
}

// wrongWith tells what a context lacks, and what of others is in it.
func (c conversation) wrongWith(turn spoken, context string) (found []string) {
	for _, word := range regexp.MustCompile(` of (\w+)`).FindAllStringSubmatch(context, -1) {
		if word[1] != turn.User && slices.ContainsFunc(c.Turns, func(other spoken) bool { return other.User == word[1] }) {
			found = append(found, fmt.Sprintf("crossed: turn %d of %s is shown what %s said", turn.n, turn.User, word[1]))
		}
	}
	for _, n := range turn.Knows {
		if !strings.Contains(context, c.Turns[n].Text) {
			found = append(found, fmt.Sprintf("unknown: turn %d is not shown %q", turn.n, c.Turns[n].Text))
		}
	}
	return found
}

// wrongInArchive compares what each person said with an export of the archive.
func (c conversation) wrongInArchive(t *testing.T, export string) (found []string) {
	said, want := map[string][]string{}, map[string][]string{}
	for _, turn := range c.Turns {
		want[turn.User] = append(want[turn.User], turn.Text)
	}
	for line := range strings.Lines(export) {
		var e abi.MemoryEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, c.Run, e.RunID)
		require.NotContains(t, line, "memory-context", "nothing is recorded that the memory itself said")
		said[e.UserID] = append(said[e.UserID], *e.Messages[0].Content)
	}
	for user, texts := range want {
		for _, text := range texts {
			switch n := count(said[user], text); {
			case n == 0:
				found = append(found, fmt.Sprintf("lost: %q", text))
			case n > 1:
				found = append(found, fmt.Sprintf("doubled: %q is there %d times", text, n))
			}
		}
	}
	if len(found) == 0 {
		require.Equal(t, want, said, "and in order")
	}
	return found
}

func count(texts []string, text string) (n int) {
	for _, s := range texts {
		if s == text {
			n++
		}
	}
	return n
}

// commandHooks are the hooks of Claude Code or Codex: each event is a process of its own.
type commandHooks struct {
	memhost
	agent, server, without string
}

func openClaudeCode(m memhost, server, without string) talker {
	return &commandHooks{m, "claude-code", server, without}
}

func openCodex(m memhost, server, without string) talker {
	return &commandHooks{m, "codex", server, without}
}

func (h *commandHooks) say(turn spoken) string {
	id := fmt.Sprintf(`"session_id":%q,"transcript_path":null,"cwd":"/","permission_mode":"default"`, turn.Session)
	if h.agent == "codex" {
		id += fmt.Sprintf(`,"model":"m","turn_id":"t%d"`, turn.n)
	}
	context := h.tell(turn, fmt.Sprintf(`{%s,"hook_event_name":"UserPromptSubmit","prompt":%q}`, id, turn.Text))
	h.tell(turn, fmt.Sprintf(`{%s,"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Noted."}`, id))
	if h.without == "queue" {
		emptyQueue(h.t, filepath.Join(h.dir, "waiting"))
	}
	return context
}

// tell runs the hook of one event and gives the context of its answer.
func (h *commandHooks) tell(turn spoken, payload string) string {
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

// settle has nothing to do: a hook that may linger delivers before it ends.
func (h *commandHooks) settle() {}

// emptyQueue removes the events that wait, as if they had never been on disk.
func emptyQueue(t *testing.T, folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			require.NoError(t, os.Remove(filepath.Join(folder, e.Name())))
		}
	}
}

// pico is PicoClaw with its process hook, which serves all people.
type pico struct {
	memhost
	server, without string
	hook            *hookProcess
}

func openPicoClaw(m memhost, server, without string) talker {
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

func (p *pico) say(turn spoken) string {
	id := fmt.Sprintf("main-turn-%d", turn.n)
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
			`"payload":{"Status":"completed","UserMessage":%[5]q,"FinalContent":"Noted."}}}`+"\n", turn.n, turn.Session, id, turn.User, turn.Text)
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

// settle ends PicoClaw, whose hook then delivers, and starts it again.
func (p *pico) settle() {
	p.hook.end()
	p.start()
}

// models are models that use the tools of MCP, each with a child of its own. A call that failed is made again, as the
// error says: that is their queue.
type models struct {
	memhost
	without string
	clients map[string]*mcpClient
	failed  []failedCall
}

// failedCall is a call of memory_add that is to be made again.
type failedCall struct {
	user      string
	arguments map[string]any
}

func openMCP(m memhost, _, without string) talker {
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

func (m *models) say(turn spoken) string {
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

// again makes the calls again that failed.
func (m *models) again() {
	failed := m.failed
	m.failed = nil
	for _, call := range failed {
		m.add(call.user, call.arguments)
	}
}

func (m *models) settle() {
	m.again()
	require.Empty(m.t, m.failed)
}
