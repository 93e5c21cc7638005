//go:build release

package releasetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rpm runs Debian's rpm on a root with a database of its own. Scripts of packages want a system that runs: they are
// left out.
func (m *machine) rpm(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("rpm", append([]string{"--root", m.root}, args...)...).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	return string(out)
}

func TestTheRpmIsInstalledStartedReplacedAndRemoved(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(checkout, "bin", "dist", "*_linux_"+runtime.GOARCH+".rpm"))
	require.NoError(t, err)
	require.Len(t, found, 1, "make release-snapshot makes it")
	m := newMachine(t)
	m.rpm("--initdb")
	install := []string{"--upgrade", "--nodeps", "--noscripts", "--replacepkgs", found[0]}
	m.rpm(install...)
	assert.Empty(t, m.rpm("--verify", "memhost"), "files, owners and modes are as the package says")
	assert.Equal(t, "memhost Apache-2.0 memhost",
		m.rpm("--query", "--queryformat", "%{NAME} %{LICENSE} %{BUILDHOST}", "memhost"), "and no machine's name is in it")
	for _, file := range []string{"usr/share/man/man1/memhost.1.gz", "usr/share/bash-completion/completions/memhost",
		"usr/share/zsh/site-functions/_memhost", "usr/share/fish/vendor_completions.d/memhost.fish",
		"usr/share/doc/memhost/copyright", "usr/share/doc/memhost/licences.md"} {
		assert.FileExists(t, m.path(file))
	}
	stop := m.start()
	turns := filepath.Join(t.TempDir(), "turns.json")
	require.NoError(t, os.WriteFile(turns, []byte(`[{"role":"user","content":"I like green tea."}]`), 0o600))
	require.NoError(t, m.memhost("record", turns, "--session", "monday", "--start", "2026-03-02T09:00:00Z", "--data",
		m.path("var/lib/memhost")).Run())
	stop()

	configuration := m.path("etc/memhost/memhost.yaml")
	mine := []byte("memory:\n  condition: full_history\n  smoke: never\n")
	require.NoError(t, os.WriteFile(configuration, mine, 0o644))
	m.rpm(install...)
	kept, err := os.ReadFile(configuration)
	require.NoError(t, err)
	assert.Equal(t, mine, kept, "the operator's configuration stays")
	stop = m.start()
	assert.Contains(t, m.retrieve(), "green tea")
	stop()

	m.rpm("--erase", "--noscripts", "memhost")
	assert.NoFileExists(t, m.path("usr/bin/memhost"))
	assert.FileExists(t, configuration+".rpmsave")
	assert.FileExists(t, m.path("var/lib/memhost/state.db"), "data is the operator's")
}
