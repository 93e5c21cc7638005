//go:build live

package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// gatewayTests runs a gateway's checks and its own tests: types, lint, pytest. environment is what its tests need to find the database and the stub.
func gatewayTests(t *testing.T, name, python string, environment []string, tests ...string) {
	t.Helper()
	source, err := gatewaySource(name)
	require.NoError(t, err)
	for _, tool := range [][]string{{"ruff", "check", "--no-cache", "."}, {"mypy", "--cache-dir=" + os.DevNull}, append([]string{"pytest", "-p", "no:cacheprovider", "--durations=5"}, tests...)} {
		t.Run(tool[0], func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, append([]string{"-m"}, tool...)...)
			cmd.Dir = source
			cmd.Env = append(append(os.Environ(), environment...), "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			require.NoError(t, err)
		})
	}
}

// gatewayInstalled installs a gateway from the checkout and as a wheel, and has each answer --version and read its configuration file with --check.
func gatewayInstalled(t *testing.T, e *Env, name, python, config string) {
	t.Helper()
	for _, wheel := range []bool{false, true} {
		dir, err := e.installGateway(t.Context(), name, python, wheel)
		require.NoError(t, err)
		program := filepath.Join(dir, "bin", "memhost-gateway-"+name)
		for _, arguments := range [][]string{{"--version"}, {"--check", "--config", config}} {
			cmd := exec.CommandContext(t.Context(), program, arguments...)
			cmd.Env = append(cleanEnvironment(t.TempDir()), "PYTHONPATH="+dir)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s %v: %s", program, arguments, out)
		}
	}
}

// TestGateway_mem0 is `make test-gateway GATEWAY=mem0`.
func TestGateway_mem0(t *testing.T) {
	m := Mem0Server(t)
	t.Run("installed", func(t *testing.T) { gatewayInstalled(t, m.Env, "mem0", m.Python, m.Config) })
	gatewayTests(t, "mem0", m.Python, m.Environment)
}
