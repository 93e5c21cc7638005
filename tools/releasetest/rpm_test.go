//go:build release

package releasetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rpm runs Debian's rpm on a root with its own database.
func (m *machine) rpm(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("rpm", append([]string{"--root", m.root}, args...)...).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	return string(out)
}

// earlierRpm makes a package with an earlier version of the same length: it changes the header in place, and the
// header's digest. The digests of the whole package are not changed, so it must be installed with --nodigest.
func earlierRpm(t *testing.T, now string) string {
	t.Helper()
	text, err := os.ReadFile(now)
	require.NoError(t, err)
	// A lead of 96 bytes, the signature header, zeros up to a multiple of 8, and the package's own header.
	first := 96 + headerLength(text[96:])
	first += -first & 7
	header := text[first : first+headerLength(text[first:])]
	older := bytes.ReplaceAll(header, []byte("0.2.0"), []byte("0.1.0"))
	require.False(t, bytes.Equal(header, older))
	digest := func(b []byte) []byte { return fmt.Appendf(nil, "%x", sha256.Sum256(b)) }
	require.Equal(t, 1, bytes.Count(text[:first], digest(header)))
	signatures := bytes.Replace(text[:first], digest(header), digest(older), 1)
	path := filepath.Join(t.TempDir(), "earlier.rpm")
	all := slices.Concat(signatures, older, text[first+len(header):])
	require.NoError(t, os.WriteFile(path, all, 0o644))
	return path
}

// headerLength is the length of an rpm header: 8 bytes, the number of entries of 16 bytes, the length of what follows
// them.
func headerLength(b []byte) int {
	return 16 + 16*int(binary.BigEndian.Uint32(b[8:])) + int(binary.BigEndian.Uint32(b[12:]))
}

func TestTheRpmIsInstalledStartedUpgradedAndRemoved(t *testing.T) {
	m, now := newMachine(t), built(t, "rpm")
	m.rpm("--initdb")
	m.rpm("--install", "--nodeps", "--nodigest", "--nosignature", earlierRpm(t, now))
	query := []string{"--query", "--queryformat", "%{NAME} %{VERSION} %{LICENSE} %{BUILDHOST}\n", "memhost"}
	assert.Regexp(t, `^memhost 0\.1\.0\S* Apache-2\.0 memhost\n$`, m.rpm(query...), "and no machine's name is in it")
	assert.FileExists(t, m.path("usr/share/zsh/site-functions/_memhost"))
	m.isUpgradedWithData(func() { m.rpm("--upgrade", "--nodeps", now) })
	assert.Regexp(t, `^memhost 0\.2\.0\S* Apache-2\.0 memhost\n$`, m.rpm(query...))

	configuration := m.path("etc/memhost/memhost.yaml")
	require.NoError(t, os.Remove(configuration))
	m.rpm("--upgrade", "--nodeps", "--replacepkgs", now)
	assert.Empty(t, m.rpm("--verify", "memhost"), "files, owners and modes are as the package says")
	require.NoError(t, os.WriteFile(configuration, []byte("# mine\n"), 0o644))
	m.asked()

	m.rpm("--erase", "memhost")
	m.isRemoved()
	assert.FileExists(t, configuration+".rpmsave")
}
