package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const developmentPrefix = "development:"

// Compiler turns a module's folder into a module, as the compiler leaves
// it: still with names, still without manifest.
type Compiler interface {
	// ID names the compiler in the lock. Two compilers of one ID give equal bytes for
	// equal sources.
	ID() string
	// Compile builds a module and writes it to the file out.
	Compile(ctx context.Context, m Module, out string) error
}

// TinyGo is an installed TinyGo; Bootstrap and Development make one.
type TinyGo struct {
	id      string
	command string
	target  string
	env     []string
}

var _ Compiler = (*TinyGo)(nil)

// ID names versions, of a bootstrapped TinyGo also those of what it is linked with.
func (t *TinyGo) ID() string { return t.id }

// Compile runs `tinygo build`.
//
// Errors: the command with the end of its output.
func (t *TinyGo) Compile(ctx context.Context, m Module, out string) error {
	gc, between, err := collector(ctx, m)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-target=" + t.target, "-gc=" + gc}, compileFlags()...)
	tags := slices.Clone(m.Tags)
	if between {
		tags = append(tags, betweenTag)
	}
	if len(tags) > 0 {
		args = append(args, "-tags="+strings.Join(tags, ","))
	}
	_, err = run(ctx, m.Dir, t.env, t.command, append(args, "-o", out, ".")...)
	return err
}

// collector is the one that a module is built with: the sdk's if the module has it, which TinyGo calls custom, or else
// TinyGo's; and whether it collects between operations only.
func collector(ctx context.Context, m Module) (gc string, between bool, err error) {
	env := cleanEnv(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=1")
	out, err := run(ctx, m.Dir, env, "go", "list", "-deps", "-tags", strings.Join(append(buildTags(), m.Tags...), ","),
		".")
	if err != nil {
		return "", false, err
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, heapPackage) {
		return tinygoCollector, false, nil
	}
	return sdkCollector, !slices.Contains(packages, gcPackage), nil
}

// WithCache gives the same compiler with another folder for compiled packages; an
// empty folder makes it compile everything anew.
func (t *TinyGo) WithCache(dir string) *TinyGo {
	with := *t
	with.env = append(append([]string(nil), t.env...), "GOCACHE="+dir)
	return &with
}

// Development uses a TinyGo that the developer has, with its own target wasip1. Its
// modules are for trying out: the lock marks them and CheckLock refuses them.
//
// Errors: the command cannot be run.
func Development(ctx context.Context, command string) (*TinyGo, error) {
	found, err := exec.LookPath(command)
	if err != nil {
		return nil, fmt.Errorf("toolchain: TINYGO=%s: %w", command, err)
	}
	if found, err = filepath.Abs(found); err != nil {
		return nil, fmt.Errorf("toolchain: TINYGO=%s: %w", command, err)
	}
	out, err := run(ctx, "", os.Environ(), found, "version")
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "tinygo version ")
	return &TinyGo{id: developmentPrefix + "tinygo " + version, command: found, target: "wasip1", env: os.Environ()},
		nil
}

func isDevelopment(id string) bool { return strings.HasPrefix(id, developmentPrefix) }
