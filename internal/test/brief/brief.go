// Package brief keeps tests short unless somebody asks for their long form. A contributor runs `go test ./...` after each
// change, so that is short; `tools/tests -long` and TESTS=long run the long forms. Under the race detector, which makes a
// test ten times as long, tests are always short: one variant of each surface is enough to find races.
package brief

import (
	"os"
	"testing"
)

// Tests reports whether tests are to be short.
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
