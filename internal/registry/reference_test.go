package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestReferencesAreReadAndWrittenAlike(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]Reference{
		"oci://ghcr.io/team/mem:1.2":             {Host: "ghcr.io", Name: "team/mem", Tag: "1.2"},
		"oci://localhost:5000/mem:v1@" + digest:  {Host: "localhost:5000", Name: "mem", Tag: "v1", Digest: digest},
		"oci://127.0.0.1:5000/a/b/mem@" + digest: {Host: "127.0.0.1:5000", Name: "a/b/mem", Digest: digest},
	} {
		r, err := ParseReference(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, r)
		assert.Equal(t, text, r.String())
		assert.Equal(t, r.Host != "ghcr.io", r.loopback(), text)
	}
	r, err := ParseReference("oci://ghcr.io/team/mem")
	require.NoError(t, err)
	assert.Equal(t, "latest", r.Tag, "as with other clients of registries")
}

func TestWhatIsNoReferenceIsRefusedWithTheForm(t *testing.T) {
	for _, text := range []string{"", "mem0", "ghcr.io/team/mem:1", "oci://", "oci://ghcr.io", "oci://ghcr.io/",
		"oci:///mem:1", "oci://ghcr.io/Team/mem:1", "oci://ghcr.io/mem:", "oci://ghcr.io/mem@", "oci://ghcr.io/mem@sha256:ab",
		"oci://ghcr.io/mem@sha512:" + strings.Repeat("0a", 64), "oci://ghcr.io/mem@sha256:" + strings.Repeat("0A", 32),
		"oci://user:secret@ghcr.io/mem:1", "oci://ghcr.io/../mem:1", "oci://ghcr.io/mem:1 2"} {
		_, err := ParseReference(text)
		require.Error(t, err, text)
		assert.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code, text)
		assert.Contains(t, abi.AsError(err).Hint, "oci://HOST/NAME:TAG", text)
	}
}
