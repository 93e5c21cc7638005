//go:build release

package releasetest

import (
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

// machine is a folder that dpkg and rpm use as the root of a system. Scripts of packages run in it: it has a shell, and
// a systemctl that records its arguments.
type machine struct {
	t    *testing.T
	root string
}

// askedFile is where systemctl records its arguments, one call per line.
const askedFile = "run/systemd/asked"

func newMachine(t *testing.T) *machine {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process, in which a package's scripts run")
	}
	m := &machine{t, t.TempDir()}
	for _, folder := range []string{"bin", "run/systemd/system", "var/lib/dpkg/info", "var/lib/dpkg/updates",
		"var/lib/dpkg/triggers"} {
		require.NoError(t, os.MkdirAll(m.path(folder), 0o755))
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available", askedFile} {
		require.NoError(t, os.WriteFile(m.path(file), nil, 0o644))
	}
	systemctl := "#!/bin/sh\necho \"$*\" >>/" + askedFile + "\n"
	require.NoError(t, os.WriteFile(m.path("bin/systemctl"), []byte(systemctl), 0o755))
	libraries, err := exec.Command("ldd", "/bin/sh").Output()
	require.NoError(t, err)
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1), "/bin/sh") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(m.path(filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(m.path(file), text, 0o755))
	}
	return m
}

func (m *machine) path(p string) string { return filepath.Join(m.root, p) }

// asked returns the calls of systemctl since the last time.
func (m *machine) asked() []string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(askedFile))
	require.NoError(m.t, err)
	require.NoError(m.t, os.Truncate(m.path(askedFile), 0))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
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

// start runs the command line of the unit. stop ends it as systemd does, and requires a clean exit.
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

// record records that a person likes green tea.
func (m *machine) record() {
	m.t.Helper()
	turns := filepath.Join(m.t.TempDir(), "turns.json")
	require.NoError(m.t, os.WriteFile(turns, []byte(`[{"role":"user","content":"I like green tea."}]`), 0o600))
	require.NoError(m.t, m.memhost("record", turns, "--session", "monday", "--start", "2026-03-02T09:00:00Z", "--data",
		m.path("var/lib/memhost")).Run())
}

func (m *machine) retrieve() string {
	m.t.Helper()
	out, err := m.memhost("retrieve", "Which tea?", "--data", m.path("var/lib/memhost")).Output()
	require.NoError(m.t, err)
	return string(out)
}

const (
	reload  = "daemon-reload"
	restart = "try-restart memhost.service"
	disable = "disable --now memhost.service"
)

// isUpgradedWithData records with the old version, upgrades while the slot runs, and requires that the new version has
// what was recorded and the operator's configuration.
func (m *machine) isUpgradedWithData(upgrade func()) {
	m.t.Helper()
	assert.Equal(m.t, []string{reload, restart}, m.asked(), "installed")
	for _, file := range []string{"usr/share/man/man1/memhost.1.gz", "usr/share/bash-completion/completions/memhost",
		"usr/share/fish/vendor_completions.d/memhost.fish", "usr/share/doc/memhost/copyright",
		"usr/share/doc/memhost/licences.md"} {
		assert.FileExists(m.t, m.path(file))
	}
	stop := m.start()
	m.record()
	configuration := m.path("etc/memhost/memhost.yaml")
	mine := []byte("memory:\n  backend: recall\n  smoke: never\n")
	require.NoError(m.t, os.WriteFile(configuration, mine, 0o644))

	upgrade()
	calls := m.asked()
	assert.Contains(m.t, calls, reload)
	assert.Contains(m.t, calls, restart)
	assert.NotContains(m.t, calls, disable)
	assert.Contains(m.t, m.retrieve(), "green tea", "the slot serves until systemd restarts it")
	stop()
	kept, err := os.ReadFile(configuration)
	require.NoError(m.t, err)
	assert.Equal(m.t, mine, kept, "the operator's configuration stays")
	stop = m.start()
	assert.Contains(m.t, m.retrieve(), "green tea", "what was recorded with the version before")
	stop()
}

// isRemoved requires that the program is gone and the data intact.
func (m *machine) isRemoved() {
	m.t.Helper()
	assert.Equal(m.t, []string{disable, reload}, m.asked())
	assert.NoFileExists(m.t, m.path("usr/bin/memhost"))
	assert.NoFileExists(m.t, m.path("usr/lib/systemd/system/memhost.service"))
	assert.FileExists(m.t, m.path("var/lib/memhost/state.db"), "data is the operator's")
}

// built is the package that make release built for this machine.
func built(t *testing.T, form string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(checkout, "bin", "dist", "*_linux_"+runtime.GOARCH+"."+form))
	require.NoError(t, err)
	require.Len(t, found, 1, "make release makes it")
	return found[0]
}
