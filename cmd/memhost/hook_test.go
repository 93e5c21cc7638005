//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
)

// hookProcess is a running memhost hook picoclaw, with the test acting as PicoClaw.
type hookProcess struct {
	*exec.Cmd
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	ids int
}

func (m memhost) hook(args ...string) *hookProcess {
	return m.startHook(m.hookCommand(args...))
}

func (m memhost) hookCommand(args ...string) *exec.Cmd {
	return m.command(append([]string{"hook", "picoclaw", "--run", "r", "--user", "u", "--linger", "1m"}, args...)...)
}

func (m memhost) startHook(cmd *exec.Cmd) *hookProcess {
	in, err := cmd.StdinPipe()
	require.NoError(m.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, cmd.Start())
	m.t.Cleanup(func() { _ = cmd.Process.Kill() })
	h := &hookProcess{Cmd: cmd, t: m.t, in: in, out: bufio.NewReader(out)}
	h.call("hook.hello", `{"name":"memhost","version":1,"modes":["observe","llm"]}`)
	return h
}

// call calls the hook and returns its answer.
func (h *hookProcess) call(method, params string) string {
	h.ids++
	_, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", h.ids, method, params)
	require.NoError(h.t, err)
	line, err := h.out.ReadString('\n')
	require.NoError(h.t, err)
	var answer struct{ ID int }
	require.NoError(h.t, json.Unmarshal([]byte(line), &answer))
	require.Equal(h.t, h.ids, answer.ID)
	return line
}

// asks calls the hook as PicoClaw does before calling the model.
func (h *hookProcess) asks(session, turn, said string) string {
	return h.call("hook.before_llm", fmt.Sprintf(`{"meta":{"SessionKey":%q,"TurnID":%q,"Iteration":1},`+
		`"context":{"inbound":{"channel":"cli","sender_id":"cron"}},"messages":[{"role":"user","content":%q}]}`,
		session, turn, said))
}

// ends reports n turns that have ended. They are on disk when it returns.
func (h *hookProcess) ends(session string, from, n int) {
	for i := from; i < from+n; i++ {
		_, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"kind":"agent.turn.end","time":"2026-03-02T09:00:00.%03dZ",`+
			`"scope":{"agent_id":"main","session_key":%q,"turn_id":"main-turn-%d","channel":"cli","sender_id":"cron"},`+
			`"payload":{"Status":"completed","UserMessage":"%s, turn %03d","FinalContent":"ok"}}}`+"\n",
			i, session, i, session, i)
		require.NoError(h.t, err)
	}
	h.call("hook.after_llm", `{}`)
}

// end closes the hook's input, as PicoClaw does when it exits.
func (h *hookProcess) end() {
	require.NoError(h.t, h.in.Close())
	require.NoError(h.t, h.Wait())
}

func (h *hookProcess) kill() {
	require.NoError(h.t, h.Process.Signal(syscall.SIGKILL))
	require.Error(h.t, h.Wait())
}

// recordedTexts lists the user's words in the scope's memory.
func (m memhost) recordedTexts() (texts []string) {
	for _, line := range strings.Split(m.everything().FormattedContext, "\n") {
		if _, text, ok := strings.Cut(line, "] user: "); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func turnsOf(session string, from, n int) (texts []string) {
	for i := from; i < from+n; i++ {
		texts = append(texts, fmt.Sprintf("%s, turn %03d", session, i))
	}
	return texts
}

// TestHookProcess tests PicoClaw's hook as a process: the slot stops and starts, and nothing is lost whichever process
// is killed.
func TestHookProcess(t *testing.T) {
	runProcessTests(t, []processTest{
		{"a slot that ends and comes back gets everything once", testSlotComesBack},
		{"a slot that comes back at another address is found at once", testSlotMoves},
		{"a hook that is killed has kept what it was told", testKilledHook},
		{"a hook that is killed with the data folder open has kept what it was told", testKilledHookAlone},
		{"two agents speak to one slot about one scope", testTwoHooks},
		{"a worker that is killed is started again, and loses nothing", testKilledWorker},
		{"Ctrl-C reaches agent and hook, and the last turn counts", testHookInterrupted},
		{"four Stop hooks at once record a turn once", testStopHooksAtOnce},
	})
}

// testStopHooksAtOnce: an agent fires the hook once for each of its settings, plugins and projects that has it, each in
// a process of its own, and at the same moment. 3 rounds, or 100 in the long form.
func testStopHooksAtOnce(t *testing.T, m memhost) {
	rounds := 100
	if brief.Tests() {
		rounds = 3
	}
	slot := m.serve()
	fire := func(event map[string]string) *exec.Cmd {
		text, err := json.Marshal(event)
		require.NoError(t, err)
		cmd := m.command("hook", "claude-code", "--server", slot.url, "--run", "r", "--user", "u", "--outbox",
			filepath.Join(m.dir, "waiting"), "--linger", "1m", "--timeout", "1m")
		cmd.Stdin = bytes.NewReader(text)
		require.NoError(t, cmd.Start())
		return cmd
	}
	want := map[string]string{}
	for round := range rounds {
		session := fmt.Sprintf("s%03d", round)
		var prompts []string
		for _, prompt := range []string{"first", "second", "third", "fourth"} {
			prompts = append(prompts, prompt+" of "+session)
			require.NoError(t, fire(map[string]string{"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": m.dir,
				"prompt": prompts[len(prompts)-1]}).Wait())
		}
		var hooks []*exec.Cmd
		for range 4 {
			hooks = append(hooks, fire(map[string]string{"hook_event_name": "Stop", "session_id": session, "cwd": m.dir,
				"last_assistant_message": "done"}))
		}
		for _, hook := range hooks {
			require.NoError(t, hook.Wait())
		}
		want[session] = strings.Join(prompts, "\n")
	}
	require.NoError(t, fire(map[string]string{"hook_event_name": "SessionStart", "session_id": "last", "cwd": m.dir}).Wait())
	out, code := m.run("archive", "export", "-")
	require.Zero(t, code)
	said := map[string]string{}
	for line := range strings.Lines(out) {
		var e abi.MemoryEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.EventID == "" {
			continue // the header
		}
		require.NotContains(t, said, e.SessionID, "a second event of a turn: %s", line)
		var texts []string
		for _, message := range e.Messages {
			if message.Role == abi.RoleUser {
				texts = append(texts, *message.Content)
			}
		}
		said[e.SessionID] = strings.Join(texts, "\n")
	}
	require.Equal(t, want, said)
	slot.stop()
}

func testSlotComesBack(t *testing.T, m memhost) {
	slot := m.serve()
	h := m.hook()
	h.ends("s", 0, 1)
	h.asks("other", "t1", "q") // once it answers, it has found the slot
	slot.kill()
	h.ends("s", 1, 3)
	require.Contains(t, h.asks("other", "t2", "q"), `{"action":"continue"}`, "the agent goes on")
	slot = m.serve("--listen", strings.TrimPrefix(slot.url, "http://"))
	h.ends("s", 4, 1)
	h.end()
	require.Equal(t, turnsOf("s", 0, 5), m.recordedTexts())
	h = m.hook()
	require.Contains(t, h.asks("other", "t1", "q"), "] user: s, turn 004")
	h.end()
	slot.stop()
}

func testSlotMoves(t *testing.T, m memhost) {
	slot := m.serve()
	h := m.hook()
	h.ends("s", 0, 1)
	h.end()
	h = m.hook()
	require.Contains(t, h.asks("other", "t1", "q"), "] user: s, turn 000")
	slot.kill()
	m.serve()
	require.Contains(t, h.asks("other", "t2", "q"), "] user: s, turn 000", "no turn is without context for it")
	h.end()
}

func testKilledHook(t *testing.T, m memhost) {
	h := m.hook("--server", "127.0.0.1:1", "--outbox", m.dir+"/waiting")
	h.ends("s", 0, 5)
	h.kill()
	slot := m.serve()
	for i := range 3 { // each is killed somewhere during its deliveries
		h = m.hook("--server", slot.url, "--outbox", m.dir+"/waiting")
		h.ends("s", 5+5*i, 5)
		h.kill()
	}
	h = m.hook("--server", slot.url, "--outbox", m.dir+"/waiting")
	h.end()
	require.Equal(t, turnsOf("s", 0, 20), m.recordedTexts())
}

func testKilledHookAlone(t *testing.T, m memhost) {
	for i := range 3 {
		h := m.hook()
		h.ends("s", 5*i, 5)
		h.kill()
	}
	h := m.hook()
	require.NotEmpty(t, h.asks("other", "t1", "q"))
	h.end()
	require.Equal(t, turnsOf("s", 0, 15), m.recordedTexts())
}

func testTwoHooks(t *testing.T, m memhost) {
	slot := m.serve()
	a, b := m.hook("--server", slot.url), m.hook("--server", slot.url)
	for i := range 5 {
		a.ends("agent a", 2*i, 1)
		b.ends("agent b", 2*i+1, 1)
	}
	a.end()
	b.end()
	said := m.recordedTexts()
	require.Len(t, said, 10)
	for _, session := range []string{"agent a", "agent b"} {
		var own []string
		for _, text := range said {
			if strings.HasPrefix(text, session) {
				own = append(own, text)
			}
		}
		require.Len(t, own, 5)
		require.IsIncreasing(t, own)
	}
	c := m.hook("--server", slot.url)
	require.Contains(t, c.asks("agent c", "t1", "q"), "agent b, turn 009")
	c.end()
}

// testKilledWorker kills the worker below the process that PicoClaw knows.
func testKilledWorker(t *testing.T, m memhost) {
	slot := m.serve()
	cmd := m.hookCommand("--server", slot.url, "--log-level", "info")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	h := m.startHook(cmd)
	log := bufio.NewScanner(stderr)
	worker := func() *os.Process { // the next one
		for log.Scan() {
			if _, pid, ok := strings.Cut(log.Text(), "worker runs: pid="); ok {
				n, err := strconv.Atoi(pid)
				require.NoError(t, err)
				p, err := os.FindProcess(n)
				require.NoError(t, err)
				return p
			}
		}
		require.Fail(t, "no worker runs")
		return nil
	}
	for i := range 4 {
		p := worker()
		h.ends("s", 5*i, 5)
		require.NoError(t, p.Signal(syscall.SIGKILL))
	}
	worker()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	require.Contains(t, h.asks("other", "t1", "q"), `"action":"modify"`)
	h.end()
	require.Equal(t, turnsOf("s", 0, 20), m.recordedTexts())
}

func testHookInterrupted(t *testing.T, m memhost) {
	h := m.hook()
	require.NoError(t, h.Process.Signal(syscall.SIGINT))
	h.ends("s", 0, 1)
	h.end()
	require.Equal(t, turnsOf("s", 0, 1), m.recordedTexts())
}
