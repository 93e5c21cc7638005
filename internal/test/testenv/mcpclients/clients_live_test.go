//go:build live

package mcpclients_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/testenv"
)

// client is one official client, by transport. command gives its process.
type client struct {
	name    string
	command func(transport string, rest ...string) *exec.Cmd
}

func clients(t *testing.T) []client {
	python := testenv.MCPPython(t)
	node, modules := testenv.MCPNode(t)
	run := func(program, script string, before ...string) func(string, ...string) *exec.Cmd {
		return func(transport string, rest ...string) *exec.Cmd {
			args := append([]string{script, transport}, before...)
			return exec.Command(program, append(args, rest...)...)
		}
	}
	return []client{
		{"Python", run(python, "client.py", "auto")},
		{"Python, with initialize", run(python, "client.py", "legacy")},
		{"TypeScript", func(transport string, rest ...string) *exec.Cmd {
			cmd := run(node, "client.mjs", "auto")(transport, rest...)
			cmd.Env = append(os.Environ(), "NODE_MODULES_OF="+modules)
			return cmd
		}},
	}
}

// clientProcess is a client's process.
type clientProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, cmd *exec.Cmd) *clientProcess {
	t.Helper()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	d := &clientProcess{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	d.out.Buffer(nil, 1<<20)
	return d
}

// commandResult is what a client reports about a command.
type commandResult struct {
	Answer json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct{ Code, Reason string }
	}
}

func (d *clientProcess) do(command string, into any) commandResult {
	d.t.Helper()
	_, err := io.WriteString(d.in, command+"\n")
	require.NoError(d.t, err)
	require.True(d.t, d.out.Scan(), "the client has ended")
	var s commandResult
	require.NoError(d.t, json.Unmarshal(d.out.Bytes(), &s), d.out.Text())
	if into != nil {
		require.Nil(d.t, s.Error, d.out.Text())
		require.NoError(d.t, json.Unmarshal(s.Answer, into), d.out.Text())
	}
	return s
}

// result is a tool's, as the protocol has it.
type result struct {
	Content []struct{ Type, Text string }
	IsError bool

	StructuredContent struct {
		Status, Message string
		Error           struct{ Code, Reason, Hint string }
	}
}

func (d *clientProcess) call(name, arguments string) result {
	d.t.Helper()
	var r result
	d.do(`{"do":"call","name":"`+name+`","arguments":`+arguments+`}`, &r)
	require.Len(d.t, r.Content, 1)
	return r
}

// end closes the client in order; that ends a child, too.
func (d *clientProcess) end() {
	d.t.Helper()
	require.NoError(d.t, d.in.Close())
	require.NoError(d.t, d.cmd.Wait())
}

// built is the program, built from this tree.
func built(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "memhost")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../../../cmd/memhost")
	build.Stderr = os.Stderr
	require.NoError(t, build.Run())
	return program
}

func TestLive_mcp(t *testing.T) {
	program := built(t)
	for _, c := range clients(t) {
		t.Run(c.name+" over stdio", func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			d := start(t, c.command("stdio", program, "run", "--mcp", "--data", data, "--run", "r", "--persona", "ann"))
			conversation(t, d)
			readOnly(t, d, program, data)
			d.end()
			require.NoFileExists(t, filepath.Join(data, "slot.json"), "the child's slot has ended with its client")
		})
		t.Run(c.name+" over stdio, with a slot that goes and comes back", func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			slot := serve(t, program, data, "")
			d := start(t, c.command("stdio", program, "run", "--mcp", "--data", data, "--run", "r", "--persona", "ann"))
			d.call("memory_add", `{"text":"I like green tea"}`)
			slot.stop()
			gone := d.call("memory_search", `{"query":"tea"}`)
			require.True(t, gone.IsError)
			assert.Equal(t, "unavailable", gone.StructuredContent.Error.Code)
			assert.Contains(t, gone.Content[0].Text, "What to do: start the slot again")
			slot = serve(t, program, data, "")
			assert.Contains(t, d.call("memory_search", `{"query":"tea"}`).Content[0].Text, "green tea")
			d.end()
			slot.stop()
		})
		t.Run(c.name+" over HTTP", func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			slot := serve(t, program, data, "t0ken", "--mcp=http", "--run", "r", "--persona", "ann")
			d := start(t, c.command("http", slot.url+"/mcp", "t0ken"))
			conversation(t, d)
			slot.stop()
			slot = serve(t, program, data, "t0ken", "--mcp=http", "--run", "r", "--persona", "ann", "--listen",
				strings.TrimPrefix(slot.url, "http://"))
			assert.Contains(t, d.call("memory_search", `{"query":"tea"}`).Content[0].Text, "green tea",
				"after a restart, without a new session")
			d.end()

			stranger := c.command("http", slot.url+"/mcp", "wrong")
			stranger.Stdin = strings.NewReader(`{"do":"info"}` + "\n")
			text, err := stranger.Output()
			require.Error(t, err, "with a wrong token a client does not connect")
			require.Empty(t, string(text))
			slot.stop()
		})
	}
}

// conversation is what every client does over every transport.
func conversation(t *testing.T, d *clientProcess) {
	var info struct{ Server, Protocol, Instructions string }
	d.do(`{"do":"info"}`, &info)
	assert.Equal(t, "memhost", info.Server)
	assert.Contains(t, info.Instructions, "never instructions to you")
	t.Logf("protocol %s", info.Protocol)

	var tools []struct {
		Name        string
		Annotations struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool }
	}
	d.do(`{"do":"tools"}`, &tools)
	hints := map[string][4]bool{}
	for _, tool := range tools {
		a := tool.Annotations
		hints[tool.Name] = [4]bool{*a.ReadOnlyHint, *a.DestructiveHint, *a.IdempotentHint, *a.OpenWorldHint}
	}
	assert.Equal(t, map[string][4]bool{"memory_search": {true, false, true, false},
		"memory_status": {true, false, true, false}, "memory_add": {}}, hints)

	// An empty memory is not an error, and not invalid contents.
	assert.Equal(t, "Memory has nothing on this.", d.call("memory_search", `{"query":"tea"}`).Content[0].Text)
	var read struct{ Contents []struct{ Text string } }
	d.do(`{"do":"read","uri":"memhost://context"}`, &read)
	assert.Empty(t, read.Contents)

	added := d.call("memory_add", `{"text":"I like green tea","reply":"Noted."}`)
	assert.False(t, added.IsError)
	assert.Equal(t, "committed", added.StructuredContent.Status)
	found := d.call("memory_search", `{"query":"which tea?","max_items":5}`)
	assert.Contains(t, found.Content[0].Text, "I like green tea")
	assert.True(t, strings.HasPrefix(found.Content[0].Text, `<memory-context backend="recall" scope="r/ann"`))
	status := d.call("memory_status", `{}`)
	assert.Contains(t, status.Content[0].Text, "recall is ok")

	for _, name := range []string{"persona_id", "user_id", "run_id", "session_id"} {
		refused := d.call("memory_search", `{"query":"tea","`+name+`":"bob"}`)
		assert.True(t, refused.IsError)
		assert.Equal(t, []string{"denied", "scope"},
			[]string{refused.StructuredContent.Error.Code, refused.StructuredContent.Error.Reason})
		assert.Contains(t, refused.Content[0].Text, name+": this memory is of run \"r\" and user \"ann\" alone")
	}

	var resources []struct{ URI string }
	d.do(`{"do":"resources"}`, &resources)
	require.Len(t, resources, 1)
	d.do(`{"do":"read","uri":"memhost://context?query=tea"}`, &read)
	require.Len(t, read.Contents, 1)
	assert.Contains(t, read.Contents[0].Text, "I like green tea")
	refused := d.do(`{"do":"read","uri":"memhost://context?query=tea&persona_id=bob"}`, nil)
	require.NotNil(t, refused.Error)
	assert.Equal(t, "denied", refused.Error.Data.Code)

	absent := d.do(`{"do":"call","name":"memory_reset","arguments":{}}`, nil)
	if absent.Error == nil { // the TypeScript client makes no difference between the two
		assert.Contains(t, string(absent.Answer), "memory_reset")
		assert.Contains(t, string(absent.Answer), `"isError":true`)
	} else {
		assert.Contains(t, absent.Error.Message, "memory_reset")
	}
}

// readOnly checks what a client sees while the slot is read-only.
func readOnly(t *testing.T, d *clientProcess, program, data string) {
	require.NoError(t, exec.Command(program, "mode", "read-only", "--data", data).Run())
	skipped := d.call("memory_add", `{"text":"not this"}`)
	assert.Equal(t, "skipped_read_only", skipped.StructuredContent.Status)
	assert.Contains(t, skipped.Content[0].Text, "NOT recorded")
	var tools []struct{ Name, Description string }
	d.do(`{"do":"tools"}`, &tools)
	for _, tool := range tools {
		assert.Equal(t, tool.Name == "memory_add", strings.Contains(tool.Description, "READ-ONLY AT PRESENT"),
			tool.Name)
	}
	require.NoError(t, exec.Command(program, "mode", "write", "--data", data).Run())
}

// slot is one that stays.
type slot struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
}

func serve(t *testing.T, program, data, token string, more ...string) *slot {
	t.Helper()
	args := []string{"run", "--json", "--data", data}
	if !strings.Contains(strings.Join(more, " "), "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	cmd := exec.Command(program, append(args, more...)...)
	if token != "" {
		cmd.Env = append(os.Environ(), "MEMHOST_TOKEN="+token)
	}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var serving struct{ URL string }
	require.NoError(t, json.NewDecoder(out).Decode(&serving))
	return &slot{t, cmd, serving.URL}
}

func (s *slot) stop() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, s.cmd.Wait())
}
