package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesOfTrustAreRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "memhost.yaml")
	hex := strings.Repeat("0a", 32)
	require.NoError(t, os.WriteFile(file, []byte("modules:\n  trust:\n"+
		"    - oci://ghcr.io/team/* signed by keys/team.pub\n"+
		"    - oci://localhost:5000/mem signed by /my keys/a.pub until 2027-01-31\n    - sha256:"+hex+"\n"), 0o600))
	c, err := Load(Options{File: file, Environ: []string{}})
	require.NoError(t, err)
	lines := c.Trust()
	require.Len(t, lines, 3)
	assert.Equal(t, filepath.Join(dir, "keys", "team.pub"), lines[0].Key, "from the file's folder")
	assert.Equal(t, Trust{Line: lines[1].Line, Modules: "oci://localhost:5000/mem", Key: "/my keys/a.pub",
		Until: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)}, lines[1])
	assert.Equal(t, hex, lines[2].SHA256)

	for name, want := range map[string]bool{"oci://ghcr.io/team/mem": true, "oci://ghcr.io/team/a/b": true,
		"oci://ghcr.io/team": false, "oci://ghcr.io/teams/mem": false, "oci://ghcr.io.example/team/mem": false} {
		assert.Equal(t, want, lines[0].Names(name), name)
	}
	assert.True(t, lines[1].Names("oci://localhost:5000/mem"))
	assert.False(t, lines[1].Names("oci://localhost:5000/mem/more"))
	assert.False(t, lines[2].Names(""))
}

func TestALineOfTrustMayNameAnIdentity(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "memhost.yaml")
	require.NoError(t, os.WriteFile(file, []byte("modules:\n  sigstore_root: keys/trusted_root.json\n  trust:\n"+
		"    - oci://ghcr.io/team/* signed by https://github.com/team/mem/.github/workflows/release.yml@refs/tags/* "+
		"issued by https://token.actions.githubusercontent.com until 2027-01-31\n"), 0o600))
	c, err := Load(Options{File: file, Environ: []string{}})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "keys", "trusted_root.json"), c.Modules.SigstoreRoot)
	require.Len(t, c.Trust(), 1)
	assert.Equal(t, Trust{Line: c.Trust()[0].Line, Modules: "oci://ghcr.io/team/*",
		Identity: "https://github.com/team/mem/.github/workflows/release.yml@refs/tags/*",
		Issuer:   "https://token.actions.githubusercontent.com",
		Until:    time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)}, c.Trust()[0])

	for line, want := range map[string]bool{"anna@example.org issued by https://accounts.example": true,
		"https://github.com/team/mem/w.yml@* issued by https://a.example": true,
		"anna@* issued by https://a.example":                              false,
		"anna/* issued by https://a.example":                              false,
		"anna/x@* issued by https://a.example":                            false,
		"* issued by https://a.example":                                   false,
		"https://* issued by https://a.example":                           false,
		"https://github.com/te* issued by https://a.example":              false,
		"https://*/team issued by https://a.example":                      false,
		"anna issued by https://a.example":                                false,
		"anna@example.org issued by":                                      false,
		"anna@example.org issued by a b":                                  false,
		"anna@example.org bob@example.org issued by https://a.example":    false} {
		_, ok := readTrust("oci://ghcr.io/mem signed by " + line)
		assert.Equal(t, want, ok, line)
	}
	_, err = Load(Options{Dir: t.TempDir(), Environ: []string{}, Flags: map[string]any{
		"modules.trust": []string{"oci://ghcr.io/mem signed by a@example.org issued by https://a.example"}}})
	require.ErrorContains(t, err, "found an identity, want modules.sigstore_root, too")
}

func TestOtherLinesOfTrustAreRefused(t *testing.T) {
	for _, line := range []string{"mem", "sha256:ab", "sha256:" + strings.Repeat("0A", 32), "oci://ghcr.io/mem",
		"oci://ghcr.io/mem signed by", "oci://ghcr.io signed by a.pub", "oci://*/mem signed by a.pub",
		"oci://ghcr.io/t* signed by a.pub", "oci://ghcr.io/*/mem signed by a.pub", "oci://ghcr.io/mem:1 signed by a.pub",
		"oci://ghcr.io/../mem signed by a.pub", "oci://ghcr.io/mem signed by a.pub until tomorrow",
		"./mem.wasm signed by a.pub"} {
		_, ok := readTrust(line)
		assert.False(t, ok, line)
	}
	_, err := Load(Options{Dir: t.TempDir(), Environ: []string{}, Flags: map[string]any{
		"modules.trust": []string{"nonsense"}}})
	require.ErrorContains(t, err, `found "nonsense", want sha256:HEX`)
	_, err = Load(Options{Dir: t.TempDir(), Environ: []string{}, Flags: map[string]any{"modules.trust": []string{""}}})
	require.ErrorContains(t, err, "found an empty string, want a non-empty string")
}

func TestOnlySessionsAreGlobs(t *testing.T) {
	_, err := Load(Options{Dir: t.TempDir(), Environ: []string{}, Flags: map[string]any{
		"modules.trust": []string{"oci://ghcr.io/mem signed by [a.pub"}}})
	require.NoError(t, err, "a file may have a bracket")
	for _, glob := range []string{"", "[a"} {
		_, err = Load(Options{Dir: t.TempDir(), Environ: []string{}, Flags: map[string]any{
			"memory.test_sessions": []string{glob}}})
		require.ErrorContains(t, err, "want a glob like test_*")
	}
}
