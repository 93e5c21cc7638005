//go:build live

package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// gatewayTests runs a gateway's checks and its own tests: types, lint, pytest. environment is what its tests need to
// find the database and the stub.
func gatewayTests(t *testing.T, name, python string, environment []string, tests ...string) {
	t.Helper()
	source, err := gatewaySource(name)
	require.NoError(t, err)
	for _, tool := range [][]string{{"ruff", "check", "--no-cache", "."}, {"mypy", "--cache-dir=" + os.DevNull},
		append([]string{"pytest", "-p", "no:cacheprovider", "-s", "--durations=5"}, tests...)} {
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

// gatewayInstalled installs a gateway from the checkout and as a wheel, and has each answer --version and read its
// configuration file with --check.
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

// TestGateway_mem0 is `tools/live gateway-mem0`.
func TestGateway_mem0(t *testing.T) {
	m := Mem0Server(t)
	t.Run("installed", func(t *testing.T) { gatewayInstalled(t, m.Env, "mem0", m.Python, m.Config) })
	gatewayTests(t, "mem0", m.Python, m.Environment)
}

// TestGateway_graphiti is `tools/live gateway-graphiti`.
func TestGateway_graphiti(t *testing.T) {
	require.NoError(t, newForTest(t).TestGraphitiGateway(t.Context(), func(text string) { t.Log(text) }))
}

// gatewaySource is the folder of a gateway in this repository.
func gatewaySource(name string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "gateways", name)
	if _, err := os.Stat(filepath.Join(dir, "pyproject.toml")); err != nil {
		return "", fmt.Errorf("there is no gateway %s: %w", name, err)
	}
	return dir, nil
}

// installGateway installs a gateway as its users do, without its dependencies, into a folder of its own: from the
// checkout, or as a wheel built from it. It returns the folder, which belongs into PYTHONPATH; its programs are in bin.
// Nothing is written into the checkout: setuptools builds where the sources are, so it gets a copy.
func (e *Env) installGateway(ctx context.Context, name, python string, wheel bool) (string, error) {
	source, err := gatewaySource(name)
	if err != nil {
		return "", err
	}
	how := map[bool]string{true: "wheel", false: "checkout"}[wheel]
	home := filepath.Join(e.Dir, "gateway-"+name+"-"+how)
	tree, target := filepath.Join(home, "source"), filepath.Join(home, "installed")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	if err := os.CopyFS(tree, os.DirFS(source)); err != nil {
		return "", err
	}
	e.say("install the %s gateway (%s)", name, how)
	pip := []string{python, "-m", "pip", "--disable-pip-version-check", "-q"}
	what := tree
	if wheel {
		built := filepath.Join(home, "wheels")
		if err := e.run(ctx, command{name: "pip-gateway",
			args: append(pip, "wheel", "--no-deps", "--no-build-isolation", "-w", built, tree)}); err != nil {
			return "", err
		}
		wheels, err := filepath.Glob(filepath.Join(built, "*.whl"))
		if err != nil || len(wheels) != 1 {
			return "", errors.Join(fmt.Errorf("pip built %d wheels of %s, want 1", len(wheels), name), err)
		}
		what = wheels[0]
	}
	return target, e.run(ctx, command{name: "pip-gateway",
		args: append(pip, "install", "--no-deps", "--no-build-isolation", "--target", target, what)})
}
