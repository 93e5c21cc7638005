// Package testcache is the compilation cache that the tests of a package share: compiling a module takes a second under
// the race detector.
package testcache

import (
	"os"
	"testing"
)

var dir string

// Run runs a package's tests with a cache for them, and removes it: func TestMain(m *testing.M) { testcache.Run(m) }.
func Run(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "memhost-test-cache"); err != nil {
		panic(err)
	}
	m.Run()
	_ = os.RemoveAll(dir)
}

// Dir is the cache, for host.Options.CacheDir and conformance.Options.CacheDir.
func Dir() string {
	if dir == "" {
		panic("this package's TestMain does not call testcache.Run")
	}
	return dir
}
