// Package registry moves modules to and from OCI registries, in the Wasm artifact layout of the CNCF: one layer of type
// application/wasm, and a config of type application/vnd.wasm.config.v0+json.
//
// A module is known by the digest of its OCI manifest, which covers everything else. Nothing is taken on a registry's
// word: manifest and module are held against their digests, from the registry and from the cache.
package registry

import (
	"net"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/memhost/memhost/abi"
)

// Scheme begins the name of a module in a registry.
const Scheme = "oci://"

// Reference names a module in a registry: oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST].
type Reference struct {
	Host string // as localhost:5000
	Name string // as team/mem
	// Tag is empty where only a digest was given; without both it is "latest".
	Tag string
	// Digest is that of the OCI manifest, as sha256:<64 hexadecimal digits>. Empty: whatever the tag names.
	Digest string
}

// IsReference tells a module in a registry from a file or the name of a built-in one.
func IsReference(s string) bool { return strings.HasPrefix(s, Scheme) }

// ParseReference reads a reference. An error has the code invalid_argument.
func ParseReference(s string) (Reference, error) {
	wrong := func(why string) (Reference, error) {
		return Reference{}, abi.NewError(abi.CodeInvalidArgument, s+": "+why).
			WithHint("want oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST")
	}
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return wrong("does not begin with " + Scheme)
	}
	whole, digest, pinned := strings.Cut(rest, "@")
	if !strings.Contains(whole, "/") {
		return wrong("names no module, only a registry")
	}
	parsed, err := registry.ParseReference(whole)
	if err != nil {
		return wrong("is no reference: " + err.Error())
	}
	if strings.HasSuffix(whole, ":") {
		return wrong("has an empty tag")
	}
	r := Reference{Host: parsed.Registry, Name: parsed.Repository, Tag: parsed.Reference, Digest: digest}
	if pinned && !isDigest(digest) {
		return wrong("has no valid digest: want sha256: and 64 lower-case hexadecimal digits")
	}
	if r.Tag == "" && !pinned {
		r.Tag = "latest"
	}
	return r, nil
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func (r Reference) String() string {
	s := Scheme + r.Host + "/" + r.Name
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// loopback reports whether the registry is on this computer: only there is plain HTTP spoken.
func (r Reference) loopback() bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
