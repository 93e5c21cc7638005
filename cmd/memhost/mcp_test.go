//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/state"
)

// TestMCPChildren tests child processes of MCP clients, and slots that start and stop next to them.
func TestMCPChildren(t *testing.T) {
	runProcessTests(t, []processTest{
		{"a slot goes and comes back while a client talks", testMCPSlotComesBack},
		{"a child takes the place of the child that had the slot", testChildTakesOver},
		{"a call under way is answered before a signal ends the child", testChildDrains},
		{"a client that is gone ends its child, and loses nothing", testClientGone},
		{"initialize is answered whatever the slot does", testInitializeAtOnce},
		{"an own slot that cannot start is tried again", testOwnSlotCannotStart},
	})
}

// mcpClient is a client that has started memhost as its child process.
type mcpClient struct {
	*mcp.ClientSession
	t   *testing.T
	cmd *exec.Cmd
}

func (m memhost) mcpClient(args ...string) *mcpClient {
	cmd := m.command(append([]string{"run", "--mcp", "--run", "r", "--persona", "u"}, args...)...)
	cmd.Stderr = os.Stderr
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(context.Background(),
		&mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = c.Close() })
	return &mcpClient{c, m.t, cmd}
}

// call calls a tool, and returns its text and whether it is an error.
func (c *mcpClient) call(tool string, arguments map[string]any) (text string, failed bool) {
	r, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(c.t, err)
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func (c *mcpClient) search() (string, bool) {
	return c.call("memory_search", map[string]any{"query": "what?"})
}

func (c *mcpClient) add(text string) {
	said, failed := c.call("memory_add", map[string]any{"text": text})
	require.False(c.t, failed, said)
}

func testMCPSlotComesBack(t *testing.T, m memhost) {
	slot := m.serve()
	c := m.mcpClient()
	c.add("I like tea")

	for _, end := range []func(*slotProcess){(*slotProcess).stop, (*slotProcess).kill} {
		end(slot)
		for range 2 { // including the call after the one that noticed
			said, failed := c.search()
			require.True(t, failed)
			require.Contains(t, said, "unavailable: ")
			require.Contains(t, said, "What to do: start the slot again (memhost run --data "+m.dir)
		}
		slot = m.serve() // on another port; the child has not locked the folder
		said, failed := c.search()
		require.False(t, failed, said)
		require.Contains(t, said, "user: I like tea")
	}
}

func testChildTakesOver(t *testing.T, m memhost) {
	first := m.mcpClient()
	first.add("one")
	second := m.mcpClient() // two windows of one program
	second.add("two")
	info, err := state.ReadSlot(filepath.Join(m.dir, "data"))
	require.NoError(t, err)
	require.Equal(t, []any{true, first.cmd.Process.Pid}, []any{info.Child, info.PID})

	require.NoError(t, first.Close())
	second.add("three")
	said, failed := second.search()
	require.False(t, failed)
	for _, word := range []string{"one", "two", "three"} {
		require.Contains(t, said, "user: "+word)
	}
	info, err = state.ReadSlot(filepath.Join(m.dir, "data"))
	require.NoError(t, err)
	require.Equal(t, second.cmd.Process.Pid, info.PID)
}

func testChildDrains(t *testing.T, m memhost) {
	b := newSlowBackend(t)
	m.probe(b.URL)
	c := m.mcpClient("--config", "memhost.yaml")
	type answer struct {
		text   string
		failed bool
	}
	answered := make(chan answer, 1)
	go func() {
		text, failed := c.call("memory_search", map[string]any{"query": "http get"})
		answered <- answer{text, failed}
	}()
	<-b.arrived
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	close(b.release)
	a := <-answered
	require.False(t, a.failed, a.text)
	_ = c.Wait()
	require.NoFileExists(t, filepath.Join(m.dir, "data", state.SlotFile))
}

func testClientGone(t *testing.T, m memhost) {
	cmd := m.command("run", "--mcp", "--run", "r", "--persona", "u")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, theirs, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout = theirs
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_add","arguments":{"text":"kept"}}}`,
	} {
		_, err := fmt.Fprintln(in, line)
		require.NoError(t, err)
	}
	lines := json.NewDecoder(out)
	for range 2 {
		var answer struct{ ID int }
		require.NoError(t, lines.Decode(&answer))
	}
	// The output is closed, and one more call is in progress when the input ends.
	require.NoError(t, out.Close())
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	_ = cmd.Wait()
	require.True(t, cmd.ProcessState.Exited(), "not killed by SIGPIPE")
	require.NoFileExists(t, filepath.Join(m.dir, "data", state.SlotFile), "the slot was closed in order")
	said, _ := m.run("retrieve", "x", "--run", "r", "--user", "u")
	require.Contains(t, said, "user: kept")
}

func testInitializeAtOnce(t *testing.T, m memhost) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	require.NoError(t, err)
	defer silent.Close()
	c := m.mcpClient("--server", silent.Addr().String())
	require.Equal(t, "memhost", c.InitializeResult().ServerInfo.Name)
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 3)
	said, failed := c.call("memory_search", map[string]any{"query": "x", "user_id": "bob"})
	require.True(t, failed)
	require.Contains(t, said, "denied")
}

func testOwnSlotCannotStart(t *testing.T, m memhost) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := m.mcpClient("--listen", taken.Addr().String())
	said, failed := c.search()
	require.True(t, failed)
	require.Contains(t, said, "unavailable: "+taken.Addr().String()+" is taken")
	require.NoError(t, taken.Close())
	c.add("now it is free")
}
