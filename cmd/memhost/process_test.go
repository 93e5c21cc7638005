//go:build unix

package main

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

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testguest"
)

// memhost is the program as a command in its own folder.
type memhost struct {
	t          *testing.T
	dir, cache string
	// program is the path of its file; "" for this test binary, which then runs as memhost.
	program string
}

// processTest tests one or more processes of the program.
type processTest struct {
	name string
	run  func(*testing.T, memhost)
}

// runProcessTests runs each test in its own folder. Of each list, the first is in the quick tests.
func runProcessTests(t *testing.T, tests []processTest) {
	cache := cacheHome(t)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if i > 0 {
				brief.Leave(t)
			}
			test.run(t, memhost{t, t.TempDir(), cache, ""})
		})
	}
}

func (m memhost) command(args ...string) *exec.Cmd {
	program := m.program
	if program == "" {
		var err error
		program, err = os.Executable()
		require.NoError(m.t, err)
	}
	cmd := exec.Command(program, append(args, "--data", filepath.Join(m.dir, "data"))...)
	cmd.Dir = m.dir
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "MEMHOST_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "RUN_AS_MEMHOST=1", "GORACE="+noRaceSleep, "GOGC=400", "XDG_CACHE_HOME="+m.cache)
	return cmd
}

// run runs a command to its end and returns its output and its exit code.
func (m memhost) run(args ...string) (stdout string, code int) {
	cmd := m.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		require.NoError(m.t, err)
	}
	m.t.Logf("%v: exit code %d\n%s%s", args, cmd.ProcessState.ExitCode(), short(out.String()), errs.String())
	return out.String(), cmd.ProcessState.ExitCode()
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "...\n"
	}
	return s
}

// everything retrieves everything in the scope r/u.
func (m memhost) everything() (result abi.RetrieveResult) {
	out, code := m.run("retrieve", "everything", "--run", "r", "--user", "u", "--max-tokens", "1000000", "--json")
	require.Zero(m.t, code)
	require.NoError(m.t, json.Unmarshal([]byte(out), &result))
	return result
}

// probe configures a provider that calls a backend.
func (m memhost) probe(url string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, "probe.wasm"), testguest.Unhurried(), 0o600))
	yaml := fmt.Sprintf("memory:\n  condition: probe\n  plugin: ./probe.wasm\n  smoke: never\n  conditions:\n    "+
		"probe: {url: %s}\n", url)
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
}

// slotProcess is a slot that serves in its own process.
type slotProcess struct {
	*exec.Cmd
	t   *testing.T
	url string
}

// serve starts a slot, on a free port unless the arguments name another, and returns once it serves.
func (m memhost) serve(args ...string) *slotProcess {
	cmd := m.command(append([]string{"run", "--listen", "127.0.0.1:0", "--json"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, cmd.Start())
	m.t.Cleanup(func() { _ = cmd.Process.Kill() })
	var serving struct{ URL string }
	require.NoError(m.t, json.NewDecoder(out).Decode(&serving))
	return &slotProcess{cmd, m.t, serving.URL}
}

// kill kills the slot without warning.
func (s *slotProcess) kill() {
	require.NoError(s.t, s.Process.Kill())
	require.Error(s.t, s.Wait())
}

// stop asks the slot to end.
func (s *slotProcess) stop() {
	require.NoError(s.t, s.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, s.Wait(), "a slot that is told to end ends with 0")
}
