package registry

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/memhost/memhost/abi"
)

// Media types of the CNCF's Wasm layout, config v0.
const (
	ConfigType = "application/vnd.wasm.config.v0+json"
	LayerType  = "application/wasm"
)

// Size limits, in bytes.
const (
	maxModule = 64 << 20
)

// layerOf parses a manifest that was verified against its digest, and returns the one layer, which is the module.
func layerOf(r Reference, manifest []byte) (ocispec.Descriptor, error) {
	wrong := func(format string, args ...any) (ocispec.Descriptor, error) {
		return ocispec.Descriptor{}, abi.NewError(abi.CodeInvalidArgument,
			r.String()+": is no module: "+fmt.Sprintf(format, args...)).
			WithHint("`memhost push` stores a module in the form that is read")
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return wrong("its manifest is not JSON of the form: %s", err)
	}
	if m.MediaType != ocispec.MediaTypeImageManifest {
		return wrong("its manifest has media type %q, want %q", m.MediaType, ocispec.MediaTypeImageManifest)
	}
	if m.Config.MediaType != ConfigType {
		return wrong("its config has media type %q, want %q", m.Config.MediaType, ConfigType)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != LayerType {
		return wrong("want exactly one layer, of media type %q", LayerType)
	}
	layer := m.Layers[0]
	if !isDigest(string(layer.Digest)) || layer.Size < 0 {
		return wrong("its layer has digest %q and size %d", layer.Digest, layer.Size)
	}
	if layer.Size > maxModule {
		return wrong("its layer has %d bytes, more than the %d that are read", layer.Size, maxModule)
	}
	return layer, nil
}

// verified reads the content of a descriptor. Wrong bytes are an error with code backend; a connection that breaks too
// early is one with code unavailable.
func verified(r Reference, from io.Reader, d ocispec.Descriptor) ([]byte, error) {
	body := &brokenReader{from: from}
	b, err := content.ReadAll(body, d)
	switch {
	case body.broken != nil:
		e := abi.WrapError(abi.CodeUnavailable,
			fmt.Sprintf("%s: the connection to the registry broke after %d of %d bytes: %s", r, body.n, d.Size,
				body.broken), body.broken).WithHint("try again")
		e.Retryable = true
		return nil, e
	case err != nil:
		return nil, abi.WrapError(abi.CodeBackend,
			fmt.Sprintf("%s: the registry sent other bytes than %s of %d bytes: %s", r, d.Digest, d.Size, err), err).
			WithHint(other)
	}
	return b, nil
}

// brokenReader counts the bytes read, and keeps the error that ended reading early.
type brokenReader struct {
	from   io.Reader
	n      int64
	broken error
}

func (b *brokenReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.broken = err
	}
	return n, err
}

// Pack returns the config and the manifest of a module. They are deterministic, so the same module always has the same
// digest.
func Pack(wasm []byte) (config, manifest []byte, err error) {
	layer := content.NewDescriptorFromBytes(LayerType, wasm)
	config, err = json.Marshal(map[string]any{"created": "1970-01-01T00:00:00Z", "architecture": "wasm",
		"os": "wasip1", "layerDigests": []digest.Digest{layer.Digest}})
	if err != nil {
		return nil, nil, err
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest,
		Config: content.NewDescriptorFromBytes(ConfigType, config), Layers: []ocispec.Descriptor{layer}}
	m.SchemaVersion = 2
	manifest, err = json.Marshal(m)
	return config, manifest, err
}
