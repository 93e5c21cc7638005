//go:build unix

package host_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
)

func TestHostileCassetteThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := host.Replay(t.Context(), host.ReplayOptions{Path: pipe,
		Module: func(cassette.Load) ([]byte, error) { return host.ProbeModule, nil }})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "is not a regular file", "copy it to a file")
}
