//go:build release

package releasetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// machine is a folder that dpkg takes for the root of a system.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) *machine {
	m := &machine{t, t.TempDir()}
	for _, folder := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		require.NoError(t, os.MkdirAll(m.path(folder), 0o755))
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available"} {
		require.NoError(t, os.WriteFile(m.path(file), nil, 0o644))
	}
	return m
}

func (m *machine) path(p string) string { return filepath.Join(m.root, p) }

func (m *machine) dpkg(args ...string) {
	m.t.Helper()
	args = append([]string{"--root=" + m.root, "--force-script-chrootless", "--force-not-root"}, args...)
	out, err := exec.Command("dpkg", args...).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

// memhost is a command of the installed program, with the machine's own folders.
func (m *machine) memhost(args ...string) *exec.Cmd {
	cmd := exec.Command(m.path("usr/bin/memhost"), args...)
	cmd.Env = []string{"HOME=" + m.root, "XDG_CACHE_HOME=" + m.path("var/cache/memhost"),
		"MEMHOST_SERVER__LISTEN=127.0.0.1:0"}
	cmd.Stderr = os.Stderr
	return cmd
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)

// start runs the command line of the unit. stop ends it as systemd does, and wants it to end well.
func (m *machine) start() (stop func()) {
	m.t.Helper()
	unit, err := os.ReadFile(m.path("usr/lib/systemd/system/memhost.service"))
	require.NoError(m.t, err)
	line := execStart.FindSubmatch(unit)
	require.NotNil(m.t, line)
	args := strings.Fields(string(line[1]))
	require.Equal(m.t, "/usr/bin/memhost", args[0])
	for i, arg := range args {
		if strings.HasPrefix(arg, "/") {
			args[i] = m.path(arg)
		}
	}
	cmd := m.memhost(args[1:]...)
	cmd.Stderr = nil
	require.NoError(m.t, cmd.Start())
	slot := m.path("var/lib/memhost/slot.json")
	require.Eventually(m.t, func() bool { _, err := os.Stat(slot); return err == nil }, time.Minute, 20*time.Millisecond)
	return func() {
		m.t.Helper()
		require.NoError(m.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(m.t, cmd.Wait())
	}
}

func (m *machine) retrieve() string {
	m.t.Helper()
	out, err := m.memhost("retrieve", "Which tea?", "--data", m.path("var/lib/memhost")).Output()
	require.NoError(m.t, err)
	return string(out)
}

// debs are the package that was built, and the same program as an earlier version.
func debs(t *testing.T) (earlier, now string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(checkout, "bin", "dist", "*_linux_"+runtime.GOARCH+".deb"))
	require.NoError(t, err)
	require.Len(t, found, 1, "make release-snapshot makes it")
	folder := filepath.Join(t.TempDir(), "earlier")
	run := func(args ...string) {
		out, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("--raw-extract", found[0], folder)
	control, err := os.ReadFile(filepath.Join(folder, "DEBIAN", "control"))
	require.NoError(t, err)
	older := regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAll(control, []byte("Version: 0.1.0"))
	require.False(t, bytes.Equal(control, older))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "DEBIAN", "control"), older, 0o644))
	run("--build", "-Znone", folder, folder+".deb")
	return folder + ".deb", found[0]
}

func TestTheDebIsInstalledStartedUpgradedAndRemoved(t *testing.T) {
	earlier, now := debs(t)
	m := newMachine(t)
	m.dpkg("--install", earlier)
	for _, file := range []string{"usr/share/man/man1/memhost.1.gz", "usr/share/bash-completion/completions/memhost",
		"usr/share/zsh/vendor-completions/_memhost", "usr/share/fish/vendor_completions.d/memhost.fish",
		"usr/share/doc/memhost/copyright", "usr/share/doc/memhost/licences.md"} {
		assert.FileExists(t, m.path(file))
	}
	stop := m.start()
	turns := filepath.Join(t.TempDir(), "turns.json")
	require.NoError(t, os.WriteFile(turns, []byte(`[{"role":"user","content":"I like green tea."}]`), 0o600))
	require.NoError(t, m.memhost("record", turns, "--session", "monday", "--start", "2026-03-02T09:00:00Z", "--data",
		m.path("var/lib/memhost")).Run())
	assert.Contains(t, m.retrieve(), "green tea")
	stop()

	configuration := m.path("etc/memhost/memhost.yaml")
	mine := []byte("memory:\n  condition: full_history\n  smoke: never\n")
	require.NoError(t, os.WriteFile(configuration, mine, 0o644))
	m.dpkg("--install", now)
	kept, err := os.ReadFile(configuration)
	require.NoError(t, err)
	assert.Equal(t, mine, kept, "the operator's configuration stays")
	stop = m.start()
	assert.Contains(t, m.retrieve(), "green tea", "what was recorded with the version before")
	stop()

	m.dpkg("--remove", "memhost")
	assert.NoFileExists(t, m.path("usr/bin/memhost"))
	assert.FileExists(t, configuration)
	assert.FileExists(t, m.path("var/lib/memhost/state.db"), "data is the operator's")
	m.dpkg("--purge", "memhost")
	assert.NoFileExists(t, configuration)
	assert.FileExists(t, m.path("var/lib/memhost/state.db"))
}
