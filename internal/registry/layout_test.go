package registry

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestAPackedModuleIsReadBack(t *testing.T) {
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	config, manifest, err := Pack(wasm)
	require.NoError(t, err)
	assert.Contains(t, string(config), `"architecture":"wasm"`)
	_, again, err := Pack(wasm)
	require.NoError(t, err)
	assert.Equal(t, manifest, again, "the same module has the same digest")

	r := Reference{Host: "localhost:5000", Name: "mem", Tag: "v1"}
	layer, err := layerOf(r, manifest)
	require.NoError(t, err)
	got, err := verified(r, bytes.NewReader(wasm), layer)
	require.NoError(t, err)
	assert.Equal(t, wasm, got)
	for _, lie := range []string{"", "\x00asm", "\x00asm\x02\x00\x00\x00", string(wasm) + "more"} {
		_, err = verified(r, strings.NewReader(lie), layer)
		require.Error(t, err, "%q", lie)
		assert.Equal(t, abi.CodeBackend, abi.AsError(err).Code)
	}
}

func TestWhatIsNoModuleIsRefused(t *testing.T) {
	_, manifest, err := Pack([]byte("\x00asm\x01\x00\x00\x00"))
	require.NoError(t, err)
	for old, new := range map[string]string{
		ConfigType:            "application/vnd.oci.image.config.v1+json",
		`"` + LayerType + `"`: `"application/vnd.oci.image.layer.v1.tar+gzip"`,
		`"size":8`:            `"size":99999999999`,
		"oci.image.manifest":  "oci.image.index",
		`"layers":[`:          `"layers":[{},`,
		`{"schemaVersion":2`:  `{"schemaVersion":2,`,
	} {
		wrong := strings.Replace(string(manifest), old, new, 1)
		require.NotEqual(t, string(manifest), wrong, old)
		_, err := layerOf(Reference{Host: "localhost", Name: "mem", Tag: "v1"}, []byte(wrong))
		require.ErrorContains(t, err, "oci://localhost/mem:v1: is no module", old)
	}
}
