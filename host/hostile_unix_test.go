//go:build unix

package host

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
)

func TestHostileCassetteThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := Replay(t.Context(), ReplayOptions{Path: pipe,
		Module: func(cassette.Load) ([]byte, error) { return probeModule, nil }})
	requireCode(t, err, abi.CodeInvalidArgument, "is not a regular file", "copy it to a file")
}
