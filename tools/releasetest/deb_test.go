//go:build release

package releasetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (m *machine) dpkg(args ...string) {
	m.t.Helper()
	out, err := exec.Command("dpkg", append([]string{"--root=" + m.root}, args...)...).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

// earlierDeb builds a package with an earlier version.
func earlierDeb(t *testing.T, now string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "earlier")
	run := func(args ...string) {
		out, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("--raw-extract", now, folder)
	control, err := os.ReadFile(filepath.Join(folder, "DEBIAN", "control"))
	require.NoError(t, err)
	older := regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAll(control, []byte("Version: 0.1.0"))
	require.False(t, bytes.Equal(control, older))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "DEBIAN", "control"), older, 0o644))
	run("--build", "-Znone", folder, folder+".deb")
	return folder + ".deb"
}

func TestTheDebIsInstalledStartedUpgradedAndRemoved(t *testing.T) {
	m, now := newMachine(t), built(t, "deb")
	m.dpkg("--install", earlierDeb(t, now))
	assert.FileExists(t, m.path("usr/share/zsh/vendor-completions/_memhost"))
	m.isUpgradedWithData(func() { m.dpkg("--install", now) })

	configuration := m.path("etc/memhost/memhost.yaml")
	m.dpkg("--remove", "memhost")
	m.isRemoved()
	assert.FileExists(t, configuration)
	m.dpkg("--purge", "memhost")
	assert.NoFileExists(t, configuration)
	assert.FileExists(t, m.path("var/lib/memhost/state.db"))
}
