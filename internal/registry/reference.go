// Package registry copies modules to and from OCI registries, in the Wasm artifact layout of the CNCF: one layer of
// type application/wasm, and a config of type application/vnd.wasm.config.v0+json.
//
// A module is identified by the digest of its OCI manifest, which covers everything else. Registries are not trusted:
// manifest and module are verified against their digests, whether they come from the registry or from the cache.
package registry

import (
	"net"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/memhost/memhost/abi"
)

// Scheme is the prefix of a reference to a module in a registry.
const Scheme = "oci://"

// Reference names a module in a registry: oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST].
type Reference struct {
	Host string // for example localhost:5000
	Name string // for example team/mem
	// Tag is empty if only a digest was given; without both it is "latest".
	Tag string
	// Digest is the digest of the OCI manifest, as sha256:<64 hexadecimal digits>. Empty means whatever the tag points
	// to.
	Digest string
}

// IsReference reports whether s names a module in a registry, rather than a file or a built-in one.
func IsReference(s string) bool { return strings.HasPrefix(s, Scheme) }

// ParseReference parses a reference. Errors have the code invalid_argument.
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

// loopback reports whether the registry is on this computer. Only there is plain HTTP allowed.
func (r Reference) loopback() bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
