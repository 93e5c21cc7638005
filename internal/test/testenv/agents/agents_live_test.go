//go:build live && linux

package agents_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/conversation"
	"github.com/memhost/memhost/internal/test/testenv"
)

// The variables by which the test in the network namespace knows that it is there, and what was installed before.
const (
	claudeVariable  = "AGENTS_TEST_CLAUDE"
	codexVariable   = "AGENTS_TEST_CODEX"
	programVariable = "AGENTS_TEST_PROGRAM"
)

// TestLive_agents runs itself again in a network namespace that has the loopback device alone.
func TestLive_agents(t *testing.T) {
	if os.Getenv(claudeVariable) != "" {
		inside(t)
		return
	}
	claude, codex := testenv.Agents(t)
	again(t, claudeVariable+"="+claude, codexVariable+"="+codex)
}

// again runs this test again in a network namespace that has the loopback device alone, with memhost built and these
// variables in its environment.
func again(t *testing.T, variables ...string) {
	program := filepath.Join(t.TempDir(), "memhost")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../../../cmd/memhost")
	build.Stderr = os.Stderr
	require.NoError(t, build.Run())
	self, err := os.Executable()
	require.NoError(t, err)
	// Of what was asked for only this test, with the subtests that were named.
	run := "^" + t.Name() + "$"
	if _, subtests, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		run += "/" + subtests
	}
	cmd := exec.Command("unshare", "-rn", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, self, "-test.run="+run,
		"-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), programVariable+"="+program)
	cmd.Env = append(cmd.Env, variables...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
}

// alone fails if there is a network other than loopback, and returns the conversation.
func alone(t *testing.T) conversation.Conversation {
	devices, err := net.Interfaces()
	require.NoError(t, err)
	require.Len(t, devices, 1, "nothing but loopback")
	c, err := conversation.Read("../../../../integrations/testdata/conversation.json")
	require.NoError(t, err)
	return c
}

func inside(t *testing.T) {
	c := alone(t)
	for _, name := range []string{"claude-code", "codex"} {
		t.Run(name+" holds the conversation", func(t *testing.T) {
			m := start(t)
			require.Empty(t, c.Hold(m, &agent{machine: m, name: name, sessions: map[string]string{}}))
			require.Subset(t, []string{"POST /v1/messages", "HEAD /", "POST /v1/responses"}, m.model.paths)
		})
	}
	for _, name := range []string{"claude-code", "codex"} {
		for without, want := range conversation.Without {
			if want == "" {
				continue
			}
			t.Run(name+" without "+without, func(t *testing.T) {
				m := start(t)
				found := c.Hold(m, &agent{machine: m, name: name, without: without, sessions: map[string]string{}})
				require.True(t, conversation.Found(found, want), "%s is not found: %v", want, found)
			})
		}
	}
	t.Run("the plugin of Claude Code", thePlugin)
}

// machine is a home folder with a slot and a model.
type machine struct {
	t      *testing.T
	home   string
	model  *stub
	server string
	slot   *exec.Cmd
}

func start(t *testing.T) *machine {
	m := &machine{t: t, home: t.TempDir(), model: newStub(t), server: "127.0.0.1:0"}
	require.NoError(t, os.MkdirAll(filepath.Join(m.home, "project", ".git"), 0o755))
	m.write("memhost.yaml", "memory: {condition: full_history, archive: true}\n")
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

func (m *machine) write(name, text string) {
	path := filepath.Join(m.home, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o600))
}

// command is a program that knows this home and the stub model, and nothing else of this machine.
func (m *machine) command(home, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(m.home, "project")
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + filepath.Join(home, ".codex"), "TERM=dumb", "LANG=C.UTF-8",
		"PATH=" + filepath.Dir(os.Getenv(programVariable)) + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + os.TempDir(),
		"ENABLE_TOOL_SEARCH=false", "ANTHROPIC_BASE_URL=" + m.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MEMHOST_SERVER=" + m.server}
	return cmd
}

// output runs a program to its end, which is with code 0, and gives what it printed.
func (m *machine) output(cmd *exec.Cmd) (stdout, stderr string) {
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(m.t, err, "%v\n%s\n%s", cmd.Args, out.String(), errs.String())
	return out.String(), errs.String()
}

// memhost is a command of the program.
func (m *machine) memhost(args ...string) string {
	out, _ := m.output(m.command(m.home, os.Getenv(programVariable), args...))
	return out
}

func (m *machine) Start() {
	m.slot = exec.Command(os.Getenv(programVariable), "run", "--json", "--config", filepath.Join(m.home, "memhost.yaml"),
		"--data", filepath.Join(m.home, "data"), "--listen", m.server)
	out, err := m.slot.StdoutPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, m.slot.Start())
	var serving struct{ URL string }
	require.NoError(m.t, json.NewDecoder(out).Decode(&serving))
	m.server = strings.TrimPrefix(serving.URL, "http://")
}

func (m *machine) Stop() {
	if m.slot != nil {
		require.NoError(m.t, m.slot.Process.Signal(syscall.SIGTERM))
		require.NoError(m.t, m.slot.Wait())
	}
	m.slot = nil
}

func (m *machine) Swap(provider string) { m.memhost("swap", provider) }

func (m *machine) Archive() string { return m.memhost("archive", "export") }

// end is the end of a turn: with the queue switched off, waiting turns are lost. The model was asked once, and again
// after a tool, each time with at most one context. It gives the first one.
func (m *machine) end(turn conversation.Turn, without string, waiting []string) string {
	if without == "queue" {
		for _, file := range waiting {
			require.NoError(m.t, os.RemoveAll(file))
		}
	}
	requests := m.model.take()
	require.Len(m.t, requests, 1+strings.Count(turn.Text, "TOOL"), "turn %d", turn.N)
	for _, request := range requests {
		require.LessOrEqual(m.t, strings.Count(contexts(m.t, request), "<memory-context"), 1)
	}
	return contexts(m.t, requests[0])
}

// agent is Claude Code or Codex. Each person has a home folder with it.
type agent struct {
	*machine
	// name is memhost's for the agent, without what is switched off.
	name, without string
	// sessions are the agent's own ids, by person and session.
	sessions map[string]string
}

// command is the machine's, with hooks that do not record if recording is switched off.
func (a *agent) command(home, program string, args ...string) *exec.Cmd {
	cmd := a.machine.command(home, program, args...)
	if a.without == "recording" {
		cmd.Env = append(cmd.Env, "MEMHOST_HOOK=read")
	}
	return cmd
}

// Say runs the agent for one prompt and continues its session.
func (a *agent) Say(turn conversation.Turn) string {
	home := filepath.Join(a.home, turn.User)
	if _, err := os.Stat(home); err != nil {
		require.NoError(a.t, os.MkdirAll(filepath.Join(home, ".codex"), 0o755))
		user := turn.User
		if a.without == "scope" {
			user = "ann"
		}
		_, said := a.output(a.command(home, os.Getenv(programVariable), "hook", "install", a.name, "--server", a.server,
			"--run", "study", "--user", user))
		require.Contains(a.t, said, "Written.")
	}
	a.model.take()
	key := turn.User + " in " + turn.Session
	if a.name == "codex" {
		a.codex(home, key, turn)
	} else {
		a.claude(home, key, turn)
	}
	if a.without == "queue" {
		require.NoError(a.t, os.RemoveAll(filepath.Join(home, ".local"))) // the hooks' data folder
	}
	requests := a.model.take()
	require.Len(a.t, requests, 1, "turn %d", turn.N)
	return contexts(a.t, requests[0])
}

func (a *agent) claude(home, key string, turn conversation.Turn) {
	args := []string{"-p", "--resume", a.sessions[key]}
	if a.sessions[key] == "" {
		a.sessions[key] = fmt.Sprintf("00000000-0000-4000-8000-%012d", turn.N)
		args = []string{"-p", "--session-id", a.sessions[key]}
	}
	cmd := a.command(home, os.Getenv(claudeVariable), append(args, turn.Text)...)
	said, _ := a.output(cmd)
	require.Equal(a.t, "Noted.\n", said)
}

var codexSession = regexp.MustCompile(`session id: (\S+)`)

func (a *agent) codex(home, key string, turn conversation.Turn) {
	config := fmt.Sprintf("model = \"stub\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n"+
		"base_url = \"%s/v1\"\nwire_api = \"responses\"\nrequest_max_retries = 0\n", a.model.URL)
	require.NoError(a.t, os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(config), 0o600))
	args := []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"}
	if a.sessions[key] != "" {
		args = append(args, "resume", a.sessions[key])
	}
	said, log := a.output(a.command(home, os.Getenv(codexVariable), append(args, turn.Text)...))
	require.Equal(a.t, "Noted.\n", said)
	id := codexSession.FindStringSubmatch(log)
	require.NotNil(a.t, id, log)
	a.sessions[key] = id[1]
}

// Settle delivers what waits, as the process does that a hook starts for that and does not wait for.
func (a *agent) Settle() {
	homes, err := filepath.Glob(filepath.Join(a.home, "*", ".codex"))
	require.NoError(a.t, err)
	for _, home := range homes {
		a.output(a.command(filepath.Dir(home), os.Getenv(programVariable), "hook", a.name, "--server", a.server, "--deliver"))
	}
}
