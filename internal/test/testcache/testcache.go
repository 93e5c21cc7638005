// Package testcache is the folder where tests keep compiled modules: compiling one takes seconds under the race
// detector. All test processes of a user share it, from one run to the next.
package testcache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// makers are the folders and files, below the module's root, that decide what a module is compiled to. Another content
// of one is another cache.
var makers = []string{"go.sum", "internal/engine", "host/internal/guest", "host/extism"}

// maxAge is when a file of the cache is removed: what was built and is compiled no more goes with it.
const maxAge = 7 * 24 * time.Hour

var home, work string

// Run runs a package's tests with the cache: func TestMain(m *testing.M) { testcache.Run(m) }. If the user has no cache
// folder, the tests have their own one, which is removed at the end.
func Run(m *testing.M) {
	remove, err := Open()
	if err == nil {
		work, err = os.MkdirTemp("", "memhost-test")
	}
	if err != nil {
		panic(err)
	}
	m.Run()
	_ = os.RemoveAll(work)
	remove()
}

// Folder is a new folder that is removed after the package's tests, for examples: they have no t.TempDir.
func Folder() string {
	folder, err := os.MkdirTemp(work, "")
	if err != nil {
		panic(err)
	}
	return folder
}

// Open is Run for a TestMain that does more. Call remove after the tests.
//
// Errors: neither the user's cache folder nor one for temporary files can be written.
func Open() (remove func(), err error) {
	if home, err = shared(); err == nil {
		return func() {}, nil
	}
	if home, err = os.MkdirTemp("", "memhost-test-cache"); err == nil {
		err = os.MkdirAll(Dir(), 0o700)
	}
	return func() { _ = os.RemoveAll(home) }, err
}

// Dir is the cache, for host.Options.CacheDir and conformance.Options.CacheDir.
func Dir() string { return filepath.Join(Home(), "memhost", "modules") }

// Home is the same for a program that is started: the value of XDG_CACHE_HOME.
func Home() string {
	if home == "" {
		panic("this package's TestMain does not call testcache.Run")
	}
	return home
}

// shared makes the cache of this checkout's compiler in the user's cache folder, and removes old files of all.
func shared() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	digest, err := makersDigest()
	if err != nil {
		return "", err
	}
	base = filepath.Join(base, "memhost", "test-modules")
	removeOld(base, time.Now().Add(-maxAge))
	folder := filepath.Join(base, digest)
	modules := filepath.Join(folder, "memhost", "modules")
	if err := os.MkdirAll(modules, 0o700); err != nil {
		return "", err
	}
	probe, err := os.CreateTemp(modules, "probe.*.tmp")
	if err != nil {
		return "", err
	}
	return folder, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// makersDigest is 16 hexadecimal digits for the compiler's version: Go's, and the sources of makers.
func makersDigest() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version())
	for _, maker := range makers {
		err := filepath.WalkDir(filepath.Join(root, maker), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			content, err := os.ReadFile(name)
			fmt.Fprintf(hash, "%s %d\n%s", strings.TrimPrefix(name, root), len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// moduleRoot is the nearest folder with a go.mod: a test runs in its package's folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = parent
	}
}

// removeOld removes files that were written before a time. Another test process may do the same, so that one that is
// gone is no error. One that is open keeps its content on Unix, and cannot be removed on Windows.
func removeOld(base string, before time.Time) {
	_ = filepath.WalkDir(base, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(name)
		}
		return nil
	})
}
