// Package brief keeps tests short. A contributor runs `go test ./...` after each change, so that leaves out variants,
// random histories beyond the first, and tests that start several servers or wait for real time. There are three sizes:
//
//   - go test ./...: quick
//   - TESTS=all, and always under the race detector: each test in its short form
//   - TESTS=long: each test in its long form (tools/tests -long). The race detector makes a test ten times as long, so
//     with it tests are always short: one variant of each surface is enough to find races.
package brief

import (
	"os"
	"testing"
)

// Quick reports whether tests are to be quick.
func Quick() bool { return !Race && os.Getenv("TESTS") == "" }

// Leave leaves a test, or a variant of one, out of the quick ones.
func Leave(t testing.TB) {
	t.Helper()
	if Quick() {
		t.Skip("left to TESTS=all, or -race")
	}
}

// Tests reports whether tests should be short, as they are unless TESTS=long.
func Tests() bool {
	return testing.Short() || Race || os.Getenv("TESTS") != "long"
}

// Skip leaves a test, or a variant of one, to the long forms.
func Skip(t testing.TB) {
	t.Helper()
	if Tests() {
		t.Skip("left to tools/tests -long, or TESTS=long")
	}
}
