//go:build live

package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMem0GatewayAgainstRecordings runs the gateway's own tests: mem0's recorded server, request by request.
func TestMem0GatewayAgainstRecordings(t *testing.T) {
	m := Mem0Server(t)
	root, err := repository()
	require.NoError(t, err)
	cmd := exec.Command(m.Python, "-m", "pytest", "-p", "no:cacheprovider", filepath.Join(root, "gateways", "mem0", "tests"))
	cmd.Dir = filepath.Join(root, "gateways", "mem0")
	cmd.Env = append(append(os.Environ(), m.Environment...), "PYTHONDONTWRITEBYTECODE=1", "GATEWAY_URL="+m.URL, "STUB_URL="+stubURL(m.Env))
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}
