package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/alone"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// LockFile is the name of the lock file, which is next to the configuration file.
const LockFile = "memhost.lock"

const lockVersion = 1

// Lock pins what references resolved to:
//
//	{"version": 1, "modules": {"oci://ghcr.io/team/mem:1.2": "sha256:..."}}
type Lock struct {
	Version int `json:"version"`
	// Modules maps a reference without a digest to the digest of its manifest.
	Modules map[string]string `json:"modules"`
}

// ReadLock reads a lock file; a missing file pins nothing. Errors have the code invalid_argument.
func ReadLock(path string) (*Lock, error) {
	empty := &Lock{Version: lockVersion, Modules: map[string]string{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	wrong := func(why string) (*Lock, error) {
		return nil, abi.NewError(abi.CodeInvalidArgument, path+": "+why).
			WithHint("take the file back from where it is kept, or remove it to resolve tags anew")
	}
	if err != nil {
		return wrong(err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	l := &Lock{}
	if err := d.Decode(l); err != nil {
		return wrong("is no lock file: " + err.Error())
	}
	if d.More() {
		return wrong("is no lock file: more follows the object")
	}
	if l.Version != lockVersion {
		return wrong(fmt.Sprintf("has version %d, want %d", l.Version, lockVersion))
	}
	for name, digest := range l.Modules {
		r, err := ParseReference(name)
		if err != nil || r.String() != name || r.Digest != "" || !isDigest(digest) {
			return wrong(fmt.Sprintf("pins %q to %q, want a reference with a tag and a sha256 digest", name, digest))
		}
	}
	if l.Modules == nil {
		l.Modules = empty.Modules
	}
	return l, nil
}

// Pin adds to a reference the digest that the lock file has for it. It returns an error with code conflict if the
// reference has another digest. A reference that is not in the lock file is returned unchanged.
func (l *Lock) Pin(r Reference) (Reference, error) {
	pinned := l.Modules[r.tagged()]
	switch {
	case pinned == "" || r.Tag == "":
		return r, nil
	case r.Digest == "":
		r.Digest = pinned
	case r.Digest != pinned:
		return r, abi.NewError(abi.CodeConflict, fmt.Sprintf("%s: %s pins %s", r, LockFile, pinned)).
			WithHint("use the digest of the lock file, or change the lock file: memhost pull --lock " + r.String())
	}
	return r, nil
}

// Set pins a reference with a tag to its digest.
func (l *Lock) Set(r Reference) {
	if r.Tag != "" {
		l.Modules[r.tagged()] = r.Digest
	}
}

// UpdateLock pins a reference with a tag in a lock file. Concurrent processes take turns. Errors have the code
// invalid_argument.
func UpdateLock(path string, r Reference) error {
	// The folder is locked, because the file itself is replaced.
	defer alone.Wait(filepath.Dir(path))()
	l, err := ReadLock(path)
	if err != nil {
		return err
	}
	l.Set(r)
	if err := l.Write(path); err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, path+": cannot be written: "+err.Error(), err)
	}
	return nil
}

// Write writes a lock file atomically.
func (l *Lock) Write(path string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.WriteDurable(path, append(text, '\n'), 0o644)
}

// tagged is the reference without its digest.
func (r Reference) tagged() string {
	r.Digest = ""
	return r.String()
}
