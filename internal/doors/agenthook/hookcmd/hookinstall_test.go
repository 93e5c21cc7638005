package hookcmd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProgramOfGoRunIsTemporary: an agent's settings must not name a program that is gone when `go run` ends.
func TestAProgramOfGoRunIsTemporary(t *testing.T) {
	for program, want := range map[string]bool{
		"/tmp/go-build3441247965/b001/exe/memhost":      true,
		"/tmp/go-build3441247965/b001/memhost.test":     false,
		"/var/folders/x1/T/go-build12/b001/exe/memhost": true,
		"/home/ann/.cache/go-build/3f/3f0c-d/memhost":   true,
		"/home/ann/go/bin/memhost":                      false,
		"/usr/bin/memhost":                              false,
		"/home/ann/go-builds/memhost":                   false,
		"/home/ann/src/go-build-tools/bin/memhost":      false,
		"/home/ann/go-build3441247965":                  false,
	} {
		require.Equal(t, want, isTemporary(program), program)
	}
}
