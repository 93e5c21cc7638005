//go:build live && linux

package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/conversation"
	"github.com/memhost/memhost/internal/test/testenv"
)

// The variable by which TestLive_opencode knows that it is in the network namespace: OpenCode's program.
const openCodeVariable = "AGENTS_TEST_OPENCODE"

// TestLive_opencode runs OpenCode as a server and at the command line, with a home folder for each person. It runs
// itself again in a network namespace that has the loopback device alone.
func TestLive_opencode(t *testing.T) {
	if os.Getenv(openCodeVariable) == "" {
		again(t, openCodeVariable+"="+testenv.OpenCode(t))
		return
	}
	c := alone(t)
	for without, want := range conversation.Without {
		t.Run("opencode"+strings.TrimSuffix(" without "+without, " without "), func(t *testing.T) {
			code := &openCode{machine: start(t), without: without, servers: map[string]string{}, sessions: map[string]string{}}
			code.events = newSlotRecorder(t, code.machine)
			found := c.Hold(code.machine, code)
			if want != "" {
				require.True(t, conversation.Found(found, want), "%s is not found: %v", want, found)
				return
			}
			require.Empty(t, found)
			code.busy()
			code.failing()
			code.compacted()
			code.subAgent()
			code.command()
			code.fiveMinutes()
		})
	}
}

// openCode is OpenCode for some people, each with a home folder and a server of their own.
type openCode struct {
	*machine
	without string
	events  *slotRecorder
	// servers are the URLs of the servers by person, sessions OpenCode's ids by person and session.
	servers, sessions map[string]string
}

// program is an OpenCode command of a user. Its plugin gets events as the address of the slot.
func (o *openCode) program(user string, args ...string) *exec.Cmd {
	owner := user
	if o.without == "scope" {
		owner = "ann"
	}
	cmd := o.machine.command(filepath.Join(o.home, user), os.Getenv(openCodeVariable), args...)
	cmd.Env = append(cmd.Env, "MEMHOST_SERVER="+o.events.URL, "MEMHOST_RUN=study", "MEMHOST_USER="+owner)
	if o.without == "recording" {
		cmd.Env = append(cmd.Env, "MEMHOST_HOOK=read")
	}
	return cmd
}

var openCodePlugin = regexp.MustCompile(`(?m)^ *\$ opencode plugin "\$PWD/integrations/typescript" (.*)$`)

// install makes a home folder with a configuration, and the plugin by the command of docs/agents.md.
func (o *openCode) install(user string) {
	folder := filepath.Join(user, ".config", "opencode")
	config, err := json.Marshal(map[string]any{
		"model": "stub/stub", "small_model": "stub/stub", "share": "disabled", "autoupdate": false,
		"provider": map[string]any{"stub": map[string]any{"npm": "@ai-sdk/openai-compatible", "name": "stub",
			"options": map[string]any{"baseURL": o.model.URL + "/v1", "apiKey": "none"},
			"models": map[string]any{"stub": map[string]any{"name": "stub",
				"limit": map[string]any{"context": 200000, "output": 4096}}}}},
		"command": map[string]any{"review": map[string]any{"template": "The template, with $ARGUMENTS"}},
	})
	require.NoError(o.t, err)
	o.write(filepath.Join(folder, "opencode.json"), string(config))
	// OpenCode fetches a package with types for plugins from npm, and waits for it, unless this says that it has it.
	dependencies := `{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}`
	o.write(filepath.Join(folder, "package.json"), dependencies)
	o.write(filepath.Join(folder, "package-lock.json"), `{"packages":{"":`+dependencies+`}}`)
	require.NoError(o.t, os.MkdirAll(filepath.Join(o.home, folder, "node_modules"), 0o755))

	typescript, err := filepath.Abs("../../../../integrations/typescript")
	require.NoError(o.t, err)
	page, err := os.ReadFile("../../../../docs/agents.md")
	require.NoError(o.t, err)
	line := openCodePlugin.FindStringSubmatch(string(page))
	require.NotNil(o.t, line, "docs/agents.md installs the plugin")
	o.output(o.program(user, append([]string{"plugin", typescript}, strings.Fields(line[1])...)...))
	file := filepath.Join(o.home, folder, "opencode.json")
	written, err := os.ReadFile(file)
	require.NoError(o.t, err)
	options := strings.Replace(string(written), `"`+typescript+`"`, `["`+typescript+`", {"timeout": 12000}]`, 1)
	require.NotEqual(o.t, string(written), options)
	require.NoError(o.t, os.WriteFile(file, []byte(options), 0o600))
}

var serving = regexp.MustCompile(`listening on (http://\S+)`)

// serve starts the user's server unless it runs, and returns its URL.
func (o *openCode) serve(user string) string {
	if o.servers[user] != "" {
		return o.servers[user]
	}
	o.install(user)
	log, err := os.Create(filepath.Join(o.home, user, "serve.log"))
	require.NoError(o.t, err)
	server := o.program(user, "serve", "--port", fmt.Sprint(freePort(o.t)), "--print-logs")
	server.Stdout, server.Stderr = log, log
	require.NoError(o.t, server.Start())
	o.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		if o.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			o.t.Logf("%s: %s", user, text[max(0, len(text)-4000):])
		}
	})
	o.eventually("OpenCode serves", func() bool {
		text, _ := os.ReadFile(log.Name())
		url := serving.FindSubmatch(text)
		if url != nil {
			o.servers[user] = string(url[1])
		}
		return url != nil
	})
	return o.servers[user]
}

// post calls the user's server and returns the answer.
func (o *openCode) post(user, path string, body any) string {
	data, err := json.Marshal(body)
	require.NoError(o.t, err)
	client := http.Client{Timeout: patience}
	response, err := client.Post(o.serve(user)+path, "application/json", bytes.NewReader(data))
	require.NoError(o.t, err)
	defer response.Body.Close()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(response.Body)
	require.NoError(o.t, err)
	require.Less(o.t, response.StatusCode, 300, "%s: %s", path, answer.String())
	return answer.String()
}

// session returns the path of a user's session, creating it if it is new.
func (o *openCode) session(user, name string) string {
	key := user + " in " + name
	if o.sessions[key] == "" {
		var made struct{ ID string }
		// A session with a title: OpenCode does not let the model make one.
		require.NoError(o.t, json.Unmarshal([]byte(o.post(user, "/session", map[string]any{"title": name})), &made))
		o.sessions[key] = made.ID
	}
	return "/session/" + o.sessions[key]
}

// message returns the request body for a message.
func message(text string) any {
	return map[string]any{"parts": []any{map[string]any{"type": "text", "text": text}}}
}

// Say writes a message, and waits for the answer and until the turn is recorded.
func (o *openCode) Say(turn conversation.Turn) string {
	o.model.take()
	o.model.toolFirst(strings.HasPrefix(turn.Text, "TOOL"))
	require.Contains(o.t, o.post(turn.User, o.session(turn.User, turn.Session)+"/message", message(turn.Text)), "Noted.")
	if o.without != "recording" {
		o.eventually("the turn is recorded: "+turn.Text, func() bool {
			return o.events.has(turn.Text) || o.slot == nil && waits(o.waiting(), turn.Text)
		})
	}
	return o.end(turn, o.without, o.waiting())
}

// Settle waits until no turn waits.
func (o *openCode) Settle() {
	o.eventually("all is delivered", func() bool { return len(o.waiting()) == 0 })
}

func (o *openCode) waiting() []string {
	files, err := filepath.Glob(filepath.Join(o.home, "*", ".local", "share", "opencode", "memhost", "*.json"))
	require.NoError(o.t, err)
	return files
}

func (o *openCode) eventually(what string, holds func() bool) {
	require.Eventually(o.t, holds, patience, 50*time.Millisecond, what)
}

// recorded waits until texts are recorded as the user's.
func (o *openCode) recorded(user string, texts ...string) {
	for _, text := range texts {
		o.eventually("recorded: "+text, func() bool { return o.events.of(text) == user })
	}
}

// busy writes two messages while the agent is at work on a third. Each is recorded.
func (o *openCode) busy() {
	session := o.session("ann", "busy")
	o.model.hold()
	o.post("ann", session+"/prompt_async", message("busy one of ann"))
	o.eventually("the model is asked", o.model.held)
	o.post("ann", session+"/prompt_async", message("busy two of ann"))
	o.post("ann", session+"/prompt_async", message("busy three of ann"))
	o.model.release()
	o.recorded("ann", "busy one of ann", "busy two of ann", "busy three of ann")
	o.eventually("the model has seen the last", func() bool {
		return strings.Contains(strings.Join(o.model.take(), ""), "busy three of ann")
	})
}

// failing lets the model fail until the person gives up: what was said is recorded with the next answer.
func (o *openCode) failing() {
	session := o.session("ann", "failing")
	o.model.fail(true)
	o.post("ann", session+"/prompt_async", message("failing one of ann"))
	o.eventually("the model is asked", func() bool {
		return strings.Contains(strings.Join(o.model.take(), ""), "failing one of ann")
	})
	o.post("ann", session+"/abort", nil)
	o.model.fail(false)
	require.False(o.t, o.events.has("failing one of ann"))
	o.post("ann", session+"/message", message("failing two of ann"))
	o.recorded("ann", "failing one of ann", "failing two of ann")
}

// compacted fills the model's window in the middle of a turn. OpenCode has the conversation summarised, and continues
// with a message of its own: the words are recorded once, and the context is there before and after, and in no summary.
func (o *openCode) compacted() {
	session := o.session("ann", "compacted")
	o.post("ann", session+"/message", message("I like oolong tea, compacted, of ann"))
	o.recorded("ann", "I like oolong tea, compacted, of ann")
	o.model.take()
	o.model.callFirst("read", `{"path":"."}`, 199_000)
	o.post("ann", session+"/message", message("long one of ann"))
	o.recorded("ann", "long one of ann")
	var with, summaries int
	for _, request := range o.model.take() {
		summary := !strings.Contains(request, `"tools"`)
		if summary {
			summaries++
			require.Contains(o.t, request, "long one of ann")
		}
		require.Equal(o.t, !summary, strings.Contains(contexts(o.t, request), "oolong tea"),
			request[len(request)-min(len(request), 3000):])
		with++
	}
	require.Equal(o.t, 1, summaries, "the conversation was summarised")
	require.GreaterOrEqual(o.t, with, 3)
	o.once("long one of ann")
}

// subAgent lets the model give work to a sub-agent, which gets no context and is not recorded.
func (o *openCode) subAgent() {
	o.model.take()
	o.model.callFirst("task", `{"description":"work","prompt":"the work of a sub-agent","subagent_type":"general"}`, 0)
	o.post("ann", o.session("ann", "sub-agent")+"/message", message("delegated one of ann"))
	o.recorded("ann", "delegated one of ann")
	requests := o.model.take()
	require.Len(o.t, requests, 3)
	for n, request := range requests {
		require.Equal(o.t, n != 1, contexts(o.t, request) != "", "request %d", n)
	}
	require.Contains(o.t, requests[1], "the work of a sub-agent")
	require.NotContains(o.t, o.Archive(), "the work of a sub-agent")
}

// command is a command with a template: the person's words are its name and arguments.
func (o *openCode) command() {
	o.post("ann", o.session("ann", "command")+"/command",
		map[string]any{"command": "review", "arguments": "my file of ann"})
	o.recorded("ann", "/review my file of ann")
	require.NotContains(o.t, o.Archive(), "The template")
}

// once fails if a text is recorded more than once.
func (o *openCode) once(text string) {
	require.Equal(o.t, 1, strings.Count(o.Archive(), `"`+text+`"`), text)
}

var openCodeRun = regexp.MustCompile(`(?m)^ *\$ opencode (run .*)$`)

// fiveMinutes does what docs/agents.md says at the command line, once while the slot is down: the end of OpenCode
// leaves the turn in the queue, and the next one delivers it.
func (o *openCode) fiveMinutes() {
	page, err := os.ReadFile("../../../../docs/agents.md")
	require.NoError(o.t, err)
	lines := openCodeRun.FindAllStringSubmatch(string(page), -1)
	require.Len(o.t, lines, 2)
	o.install("dan")
	say := func(line string) {
		o.model.take()
		out, _ := o.output(o.program("dan", strings.Fields(strings.ReplaceAll(line, `"`, ""))...))
		require.Contains(o.t, out, "Noted.")
	}
	o.Stop()
	say(lines[0][1])
	require.Len(o.t, o.waiting(), 1)
	o.Start()
	say(lines[1][1])
	require.Empty(o.t, o.waiting())
	archive := o.Archive()
	for _, line := range lines {
		words := strings.Trim(strings.TrimPrefix(line[1], "run "), `"`)
		require.Equal(o.t, 1, strings.Count(archive, words), words)
	}
	say(lines[1][1])
	shown := ""
	for _, request := range o.model.take() { // one of them may be for the session's title
		shown += contexts(o.t, request)
	}
	require.Contains(o.t, shown, "I like oolong tea.")
}
