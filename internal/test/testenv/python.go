package testenv

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// requirements are pinned packages, by what they are for. kubernetes.txt is for `tools/check-deploy` alone.
//
//go:embed requirements/*.txt
var requirements embed.FS

// requirementsOf are the pinned packages of requirements/<name>.txt, or of a file of that name in the folder LIVE_REQUIREMENTS, with
// which `make newest` tries other versions.
func requirementsOf(name string) ([]byte, error) {
	if dir := os.Getenv("LIVE_REQUIREMENTS"); dir != "" {
		if text, err := os.ReadFile(filepath.Join(dir, name+".txt")); !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return requirements.ReadFile("requirements/" + name + ".txt")
}

// pinned is the version to which requirements pin a package.
func pinned(name, project string) (string, error) {
	text, err := requirementsOf(name)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(project) + `==(.*)$`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("requirements of %s: no pin of %s", name, project)
	}
	return string(found[1]), nil
}

// python gives the bin folder of a virtual environment with the pinned packages of requirements/<name>.txt; other pins
// ("mem0ai==2.0.18") take the place of those of the same packages.
func (e *Env) python(ctx context.Context, name string, other ...string) (string, error) {
	pins, err := requirementsOf(name)
	if err != nil {
		return "", err
	}
	for _, pin := range other {
		project, _, _ := strings.Cut(pin, "==")
		pins = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(project)+`==.*$`).ReplaceAll(pins, []byte(pin))
	}
	python, err := e.tool(ctx, "python3", "python3", "python3-venv")
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", python, err)
	}
	recipe := "python " + strings.TrimSpace(string(version)) + "\n" + string(pins)
	dir, err := e.installed("python-"+name, recipe, func(dir string) error {
		e.say("install the pinned Python packages of %s into %s (once)", name, dir)
		list := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(list, pins, 0o644); err != nil {
			return err
		}
		if err := e.run(ctx, command{name: "pip-" + name, args: []string{python, "-m", "venv", dir}}); err != nil {
			return fmt.Errorf("%w\n(Debian has venv in the package python3-venv)", err)
		}
		return e.run(ctx, command{name: "pip-" + name, args: []string{filepath.Join(dir, "bin", "pip"), "install",
			"--progress-bar", "off", "--no-deps", "--disable-pip-version-check", "-r", list}})
	})
	return filepath.Join(dir, "bin"), err
}
