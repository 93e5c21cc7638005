//go:build live && linux

package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/conversation"
	"github.com/memhost/memhost/internal/test/testenv"
)

// The variables by which TestLive_openclaw knows that it is in the network namespace.
const (
	openClawVariable = "AGENTS_TEST_OPENCLAW"
	nodeVariable     = "AGENTS_TEST_NODE24"
)

// patience bounds each wait for what comes, on a busy machine.
const patience = 2 * time.Minute

// TestLive_openclaw runs OpenClaw's gateway with a bot of Telegram, whose server is a stub, in groups and alone. It
// runs itself again in a network namespace that has the loopback device alone.
func TestLive_openclaw(t *testing.T) {
	if os.Getenv(openClawVariable) == "" {
		node, program := testenv.OpenClaw(t)
		again(t, nodeVariable+"="+node, openClawVariable+"="+program)
		return
	}
	c := alone(t)
	for without, want := range conversation.Without {
		t.Run("openclaw"+strings.TrimSuffix(" without "+without, " without "), func(t *testing.T) {
			claw := openClaw(t, without)
			found := c.Hold(claw.machine, claw)
			if want == "" {
				require.Empty(t, found)
				claw.busy()
				claw.failing()
			} else {
				require.True(t, conversation.Found(found, want), "%s is not found: %v", want, found)
			}
		})
	}
}

// claw is a gateway of OpenClaw that people write to.
type claw struct {
	*machine
	without  string
	telegram *telegram
	events   *slotRecorder
	queue    string
}

// openClaw starts a gateway with the plugin, installed and configured with the commands of docs/agents.md.
func openClaw(t *testing.T, without string) *claw {
	m := start(t)
	c := &claw{machine: m, without: without, telegram: newTelegram(t),
		queue: filepath.Join(m.home, ".openclaw", "memhost")}
	c.events = newSlotRecorder(t, m)
	config, err := json.Marshal(map[string]any{
		"gateway": map[string]any{"mode": "local", "bind": "loopback", "port": freePort(t),
			"auth": map[string]any{"mode": "token", "token": "none"}},
		"agents": map[string]any{"defaults": map[string]any{"model": "stub/stub", "skipBootstrap": true,
			"workspace": filepath.Join(m.home, "project"), "heartbeat": map[string]any{"every": "0m"}}},
		"models": map[string]any{"mode": "replace", "providers": map[string]any{"stub": map[string]any{
			"baseUrl": m.model.URL + "/v1", "apiKey": "none", "api": "openai-completions",
			"models": []any{map[string]any{"id": "stub", "name": "stub", "contextWindow": 200000, "maxTokens": 4096}}}}},
		"messages": map[string]any{"inbound": map[string]any{"debounceMs": 0}},
		"session":  map[string]any{"dmScope": "per-channel-peer"},
		"channels": map[string]any{"telegram": map[string]any{"enabled": true, "botToken": "1:stub",
			"apiRoot": c.telegram.URL, "dmPolicy": "open", "allowFrom": []any{"*"}, "groupPolicy": "open",
			"groups": map[string]any{"*": map[string]any{"requireMention": false}}}},
	})
	require.NoError(t, err)
	m.write(".openclaw/openclaw.json", string(config))
	c.install()
	gateway := c.openclaw("gateway", "run")
	log, err := os.Create(filepath.Join(m.home, "gateway.log"))
	require.NoError(t, err)
	gateway.Stdout, gateway.Stderr = log, log
	require.NoError(t, gateway.Start())
	t.Cleanup(func() {
		_ = gateway.Process.Signal(syscall.SIGTERM)
		_ = gateway.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text[max(0, len(text)-6000):])
		}
	})
	return c
}

// openclaw is a command of OpenClaw's, whose plugin knows the slot as events.
func (c *claw) openclaw(args ...string) *exec.Cmd {
	cmd := c.command(c.home, os.Getenv(nodeVariable), append([]string{os.Getenv(openClawVariable)}, args...)...)
	cmd.Env = append(cmd.Env, "MEMHOST_SERVER="+c.events.URL)
	return cmd
}

var openClawLine = regexp.MustCompile(`(?m)^ *\$ openclaw (.*)$`)

// install does what docs/agents.md says, with a copy of the package, from which what is switched off is taken.
func (c *claw) install() {
	folder := filepath.Join(c.home, "integrations", "typescript")
	require.NoError(c.t, os.CopyFS(folder, os.DirFS("../../../../integrations/typescript")))
	if c.without == "recording" {
		file := filepath.Join(folder, "src", "openclaw.ts")
		text, err := os.ReadFile(file)
		require.NoError(c.t, err)
		off := strings.Replace(string(text), `on<AgentEnd>("agent_end"`, `on<AgentEnd>("gateway_stop"`, 1)
		require.NotEqual(c.t, string(text), off)
		require.NoError(c.t, os.WriteFile(file, []byte(off), 0o600))
	}
	page, err := os.ReadFile("../../../../docs/agents.md")
	require.NoError(c.t, err)
	lines := openClawLine.FindAllStringSubmatch(string(page), -1)
	require.Len(c.t, lines, 3)
	for _, line := range lines {
		command, quoted, _ := strings.Cut(line[1], " '")
		args := strings.Fields(strings.Replace(command, "./integrations/typescript", folder, 1))
		if quoted != "" {
			args = append(args, strings.TrimSuffix(quoted, "'"))
		}
		c.output(c.openclaw(args...))
	}
	people := `{"telegram-101": "ann", "telegram-102": "bob", "telegram-103": "cat"}`
	if c.without == "scope" {
		people = `{"telegram-101": "ann", "telegram-102": "ann", "telegram-103": "ann"}`
	}
	for _, set := range [][2]string{{"people", people}, {"run", `"study"`}, {"timeout", "12000"}} {
		c.output(c.openclaw("config", "set", "plugins.entries.memhost.config."+set[0], set[1]))
	}
}

var numbers = map[string]int{"ann": 101, "bob": 102, "cat": 103}

// Say writes to the bot, and waits for its answer and until the turn is recorded.
func (c *claw) Say(turn conversation.Turn) string {
	c.model.take()
	c.model.toolFirst(strings.HasPrefix(turn.Text, "TOOL"))
	c.telegram.write(turn.User, turn.Text, turn.Session == "group")
	c.telegram.answer(c.t, turn.User, turn.Session == "group", func(text string) bool { return text == "Noted." })
	if c.without != "recording" {
		c.eventually("the turn is recorded: "+turn.Text, func() bool {
			return c.events.has(turn.Text) || waits(c.waiting(), turn.Text)
		})
	}
	return c.end(turn, c.without, c.waiting())
}

// Settle waits until no turn waits.
func (c *claw) Settle() {
	c.eventually("all is delivered", func() bool { return len(c.waiting()) == 0 })
}

// busy writes two messages of two people while the agent is at work on a third. All are recorded, each as its
// writer's.
func (c *claw) busy() {
	c.model.toolFirst(true)
	c.model.hold()
	c.telegram.write("ann", "busy one of ann", true)
	c.eventually("the model is asked", func() bool { return c.model.held() })
	c.telegram.write("bob", "busy two of bob", true)
	c.telegram.write("ann", "busy three of ann", true)
	c.eventually("OpenClaw has both", func() bool { return c.telegram.empty() })
	c.model.release()
	said := map[string][]string{"ann": {"busy one of ann", "busy three of ann"}, "bob": {"busy two of bob"}}
	for user, texts := range said {
		for _, text := range texts {
			c.eventually("recorded: "+text, func() bool { return c.events.of(text) == user })
		}
	}
}

// failing lets the model fail until OpenClaw gives up: what was said is recorded with the next answer.
func (c *claw) failing() {
	c.model.fail(true)
	c.telegram.write("cat", "failing one of cat", false)
	c.telegram.answer(c.t, "cat", false, func(text string) bool { return text != "Noted." })
	c.model.fail(false)
	c.telegram.write("cat", "failing two of cat", false)
	for _, text := range []string{"failing one of cat", "failing two of cat"} {
		c.eventually("recorded: "+text, func() bool { return c.events.of(text) == "cat" })
	}
}

func (c *claw) eventually(what string, holds func() bool) {
	require.Eventually(c.t, holds, patience, 50*time.Millisecond, what)
}

func (c *claw) waiting() []string {
	files, err := filepath.Glob(filepath.Join(c.queue, "*.json"))
	require.NoError(c.t, err)
	return files
}

// waits reports whether a turn with the text is in one of these files.
func waits(files []string, text string) bool {
	for _, file := range files {
		data, _ := os.ReadFile(file) // it may just have been delivered
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

// slotRecorder is the machine's slot at another address, which knows the events that it has taken.
type slotRecorder struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newSlotRecorder(t *testing.T, m *machine) *slotRecorder {
	e := &slotRecorder{}
	target, err := url.Parse("http://" + m.server)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) }, // without X-Forwarded-For, which the slot refuses
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if r.URL.Path == "/v1/events" && answer.Code == http.StatusOK {
			e.mu.Lock()
			e.bodies = append(e.bodies, string(body))
			e.mu.Unlock()
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *slotRecorder) has(text string) bool { return e.of(text) != "" }

// of returns the user whose event has a user message with the text, or "".
func (e *slotRecorder) of(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, body := range e.bodies {
		var event struct {
			User     string `json:"user_id"`
			Messages []struct{ Role, Content string }
		}
		_ = json.Unmarshal([]byte(body), &event)
		for _, message := range event.Messages {
			if message.Role == "user" && message.Content == text {
				return event.User
			}
		}
	}
	return ""
}

// telegram is the server of Telegram's bots, as far as OpenClaw asks it.
type telegram struct {
	*httptest.Server
	updates chan string
	answers chan answer
	mu      sync.Mutex
	n       int
}

// answer is a text that the bot shows in a chat.
type answer struct {
	chat int
	text string
}

func newTelegram(t *testing.T) *telegram {
	g := &telegram{updates: make(chan string, 10), answers: make(chan answer, 1000)}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	var asked struct {
		Text string          `json:"text"`
		Chat json.RawMessage `json:"chat_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	result := "true"
	switch method {
	case "getMe":
		result = `{"id":1,"is_bot":true,"first_name":"Bot","username":"stubbot","can_join_groups":true,` +
			`"can_read_all_group_messages":true}`
	case "getUpdates":
		result = "[]"
		select {
		case update := <-g.updates:
			result = "[" + update + "]"
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
	case "sendMessage", "editMessageText":
		chat, _ := strconv.Atoi(strings.Trim(string(asked.Chat), `"`))
		result = fmt.Sprintf(`{"message_id":%d,"date":%d,"text":"","chat":{"id":%d,"type":"private"}}`,
			g.next(), time.Now().Unix(), chat)
		g.answers <- answer{chat, asked.Text}
	}
	fmt.Fprintf(w, `{"ok":true,"result":%s}`, result)
}

func (g *telegram) next() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	return g.n
}

// write is a message to the bot, alone or in the group.
func (g *telegram) write(user, text string, group bool) {
	chat := map[string]any{"id": chatOf(user, group), "type": "private", "first_name": user}
	if group {
		chat["type"] = "group"
	}
	n := g.next()
	update, _ := json.Marshal(map[string]any{"update_id": n, "message": map[string]any{
		"message_id": n, "date": time.Now().Unix(), "chat": chat, "text": text,
		"from": map[string]any{"id": numbers[user], "is_bot": false, "first_name": user, "username": user}}})
	g.updates <- string(update)
}

func (g *telegram) empty() bool { return len(g.updates) == 0 }

// answer waits for the bot's text to a user or to the group. The bot may send the beginning first and edit it.
func (g *telegram) answer(t *testing.T, user string, group bool, wanted func(text string) bool) {
	chat := chatOf(user, group)
	for {
		select {
		case answer := <-g.answers:
			if answer.chat == chat && wanted(answer.text) {
				return
			}
		case <-time.After(patience):
			t.Fatal("no answer of the bot")
		}
	}
}

// chatOf is Telegram's number of a conversation: a person's, or the group's.
func chatOf(user string, group bool) int {
	if group {
		return -500
	}
	return numbers[user]
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
