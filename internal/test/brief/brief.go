// Package brief tells tests to be short: with -short, and under the race detector, which makes a test ten times as
// long. There one variant of each surface is enough to find races. `make test-long` runs all of them without it.
package brief

import "testing"

// Tests reports whether tests are to be short.
func Tests() bool { return testing.Short() || Race }

// Skip leaves a test, or a variant of one, to make test-long.
func Skip(t testing.TB) {
	t.Helper()
	if Tests() {
		t.Skip("left to make test-long")
	}
}
