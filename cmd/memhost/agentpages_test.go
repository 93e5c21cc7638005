//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/agenthook"
)

// TestAgentPages follows the pages about agents step by step, in its own home folder, with the test acting as the
// agent.
func TestAgentPages(t *testing.T) {
	runProcessTests(t, []processTest{
		{"Claude Code and Codex in docs/agents.md", walkCommandHooks},
		{"PicoClaw in docs/agents.md", walkPicoClaw},
		{"docs/mcp.md", walkMCP},
	})
}

// reader is a person who has memhost on the PATH and follows a page.
type reader struct {
	memhost
	page string
	env  []string
	dir  string // where commands run: a project folder
}

// reads returns a reader of the section of a page that has the five-minute instructions.
func (m memhost) reads(page, heading string) *reader {
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	require.NoError(m.t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(m.t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	r := &reader{memhost: m, page: section, dir: filepath.Join(m.dir, "teahouse")}
	require.NoError(m.t, os.MkdirAll(filepath.Join(r.dir, ".git"), 0o755))
	self, err := os.Executable()
	require.NoError(m.t, err)
	bin := filepath.Join(m.dir, "bin")
	require.NoError(m.t, os.MkdirAll(bin, 0o755))
	require.NoError(m.t, os.Symlink(self, filepath.Join(bin, "memhost")))
	r.env = append(m.command().Env, "HOME="+m.dir, "XDG_DATA_HOME="+filepath.Join(m.dir, "share"),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return r
}

var consoleLine = regexp.MustCompile(`(?m)^ *\$ (memhost .*)$`)

// lines returns the section's memhost commands.
func (r *reader) lines() (lines []string) {
	for _, line := range consoleLine.FindAllStringSubmatch(r.page, -1) {
		lines = append(lines, line[1])
	}
	return lines
}

// json decodes the section's JSON.
func (r *reader) json(into any) {
	_, block, found := strings.Cut(r.page, "```json\n")
	require.True(r.t, found)
	block, _, _ = strings.Cut(block, "```")
	require.NoError(r.t, json.Unmarshal([]byte(block), into))
}

// program is a command on the page, in the reader's environment.
func (r *reader) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

// does types a line into a shell and returns its output.
func (r *reader) does(line, input string) string {
	var errs bytes.Buffer
	cmd := r.program("sh", "-c", line)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &errs
	out, err := cmd.Output()
	r.t.Logf("%s\n%s%s", line, out, errs.String())
	require.NoError(r.t, err)
	return string(out)
}

// serves starts the slot that a line of the page starts, on a free port, and returns its address.
func (r *reader) serves(line string) string {
	require.Equal(r.t, "memhost run", line)
	cmd := r.program(filepath.Join(r.memhost.dir, "bin", "memhost"), "run", "--listen", "127.0.0.1:0", "--json")
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	slot := &slotProcess{Cmd: cmd, t: r.t}
	r.t.Cleanup(slot.stop)
	var serving struct{ URL string }
	require.NoError(r.t, json.NewDecoder(out).Decode(&serving))
	return strings.TrimPrefix(serving.URL, "http://")
}

const pageAddress = "127.0.0.1:7077"

func walkCommandHooks(t *testing.T, m memhost) {
	r := m.reads("agents.md", "Claude Code and Codex in five minutes")
	lines := r.lines()
	require.Len(t, lines, 4)
	server := r.serves(lines[0])
	r.does(strings.ReplaceAll(lines[1], pageAddress, server), "")
	r.does(strings.ReplaceAll(lines[2], pageAddress, server), "")
	monday := `{"session_id":"monday","cwd":%q,"hook_event_name":%q,"prompt":"I like oolong tea.","last_assistant_message":"Noted."}`
	r.hook(".claude/settings.json", "UserPromptSubmit", monday, "")
	r.hook(".claude/settings.json", "Stop", monday, " --linger 30s")
	tuesday := `{"session_id":"tuesday","turn_id":"t1","cwd":%q,"hook_event_name":%q,"prompt":"Which tea do I like?"}`
	require.Contains(t, r.hook(".codex/hooks.json", "UserPromptSubmit", tuesday, ""), "user: I like oolong tea.")

	me, err := user.Current()
	require.NoError(t, err)
	ours := strings.NewReplacer("teahouse-1f0a9c3e", agenthook.Project(r.dir), "ann", me.Username)
	require.Contains(t, r.does(ours.Replace(lines[3]), ""), "user: I like oolong tea.")
	for _, agent := range []string{"claude-code", "codex"} {
		r.does("memhost hook install "+agent+" --undo", "")
	}
	require.NoFileExists(t, filepath.Join(m.dir, ".codex/hooks.json"))
}

// hook runs the command that an agent's settings have for an event, as the agent does; more are additional flags.
func (r *reader) hook(settings, event, payload, more string) string {
	text, err := os.ReadFile(filepath.Join(r.memhost.dir, settings))
	require.NoError(r.t, err)
	var s struct {
		Hooks map[string][]struct {
			Hooks []struct{ Type, Command string }
		}
	}
	require.NoError(r.t, json.Unmarshal(text, &s))
	require.Len(r.t, s.Hooks[event], 1)
	return r.does(s.Hooks[event][0].Hooks[0].Command+more, fmt.Sprintf(payload, r.dir, event))
}

func walkPicoClaw(t *testing.T, m memhost) {
	r := m.reads("agents.md", "PicoClaw in five minutes")
	lines := r.lines()
	require.Len(t, lines, 2)
	server := r.serves(lines[0])
	var config struct {
		Hooks struct {
			Processes map[string]struct{ Command []string }
		}
	}
	r.json(&config)
	command := strings.Split(strings.ReplaceAll(strings.Join(config.Hooks.Processes["memhost"].Command, "\n"), pageAddress, server), "\n")
	require.Equal(t, "memhost", command[0])
	pico := func() *hookProcess {
		return m.startHook(r.program(filepath.Join(m.dir, "bin", command[0]), append(command[1:], "--linger", "1m")...))
	}
	h := pico()
	h.ends("agent:main:monday", 0, 1)
	h.end()
	h = pico()
	require.Contains(t, h.asks("agent:main:tuesday", "t1", "Which tea do I like?"), "user: agent:main:monday, turn 000")
	h.end()
	require.Contains(t, r.does(lines[1], ""), "user: agent:main:monday, turn 000")
}

func walkMCP(t *testing.T, m memhost) {
	r := m.reads("mcp.md", "Five minutes")
	lines := r.lines()
	require.Len(t, lines, 1)
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	r.json(&config)
	entry := config.MCPServers["memory"]
	require.Equal(t, "/path/to/bin/memhost", entry.Command)
	cmd := r.program(filepath.Join(m.dir, "bin", "memhost"), entry.Args...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(context.Background(),
		&mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	c := &mcpClient{session, t, cmd}
	c.add("My cat is called Zorvex.")
	require.Contains(t, r.does(lines[0], ""), "user: My cat is called Zorvex.")
	require.NoError(t, c.Close())
}
