package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

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

// installGateway installs a gateway as its users do, without its dependencies, into a folder of its own: from the checkout, or as a wheel built from it. It
// returns the folder, which belongs into PYTHONPATH; its programs are in bin. Nothing is written into the checkout: setuptools builds where the sources are,
// so it gets a copy.
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
		if err := e.run(ctx, command{name: "pip-gateway", args: append(pip, "wheel", "--no-deps", "--no-build-isolation", "-w", built, tree)}); err != nil {
			return "", err
		}
		wheels, err := filepath.Glob(filepath.Join(built, "*.whl"))
		if err != nil || len(wheels) != 1 {
			return "", errors.Join(fmt.Errorf("pip built %d wheels of %s, want 1", len(wheels), name), err)
		}
		what = wheels[0]
	}
	return target, e.run(ctx, command{name: "pip-gateway", args: append(pip, "install", "--no-deps", "--no-build-isolation", "--target", target, what)})
}
