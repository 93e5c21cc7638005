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
	require.NoError(t, os.WriteFile(file, []byte("modules:\n  trust:\n    - oci://ghcr.io/team/* signed by keys/team.pub\n"+
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
}
