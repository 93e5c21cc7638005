package registry

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/memhost/memhost/internal/base/wholefile"
)

// Cache is a folder of manifests and modules, each in a file sha256/HEX named by its digest. Empty means no cache.
// Everything read from it is verified against its digest, so a damaged file counts as missing.
type Cache string

func (c Cache) path(of string) string {
	return filepath.Join(string(c), filepath.FromSlash(strings.Replace(of, ":", "/", 1)))
}

// read returns the bytes with a digest, if the cache has them.
func (c Cache) read(of string, limit int64) ([]byte, bool) {
	if c == "" || !isDigest(of) {
		return nil, false
	}
	f, err := os.Open(c.path(of))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return b, err == nil && string(digest.FromBytes(b)) == of
}

// write stores bytes that have been verified against their digest. If the cache cannot be written, the only cost is
// another download, so this is not an error.
func (c Cache) write(as string, b []byte) {
	if c == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(c.path(as)), 0o700); err != nil {
		return
	}
	_ = wholefile.Write(c.path(as), b, 0o600)
}

// keptFile is the file with the blobs attached to a manifest: a JSON list of base64. It has no digest, since signatures
// protect its content.
func (c Cache) keptFile(of string) string { return c.path(of) + ".attached" }

// keep caches the blobs that are attached to a manifest.
func (c Cache) keep(of string, list [][]byte) {
	if c == "" {
		return
	}
	text, err := json.Marshal(list)
	if err != nil || os.MkdirAll(filepath.Dir(c.path(of)), 0o700) != nil {
		return
	}
	_ = wholefile.Write(c.keptFile(of), text, 0o600)
}

// kept returns the blobs that were attached to a manifest when it was last fetched.
func (c Cache) kept(of string) [][]byte {
	var list [][]byte
	if c == "" || !isDigest(of) {
		return nil
	}
	text, err := os.ReadFile(c.keptFile(of))
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil
	}
	return list
}
