package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PluginIn finds the plugin in a folder anywhere: one with a manifest.json and a main.go, a plugin.c or an
// assembly/index.ts.
//
// Errors: there is none.
func PluginIn(dir string) (Module, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return Module{}, fmt.Errorf("toolchain: %w", err)
	}
	m := Module{Name: filepath.Base(at), Dir: at, Language: languageOf(at)}
	if m.Language == "" {
		return m, fmt.Errorf("toolchain: %s holds no plugin: want a manifest.json beside a main.go, a plugin.c or "+
			"an assembly/index.ts", dir)
	}
	m.Tags, err = tagsOf(at)
	return m, err
}

// BuildPlugin gives a plugin's finished module: compiled, stripped, with its manifest. Nothing in the folder is
// changed.
//
// Errors: what the compiler said; a manifest.json that is no JSON. What it says is not looked at.
func BuildPlugin(ctx context.Context, compiler Compiler, m Module) ([]byte, error) {
	return compileModule(ctx, compiler, m)
}

// StandardGo compiles with the Go that is on the PATH: to try a plugin out without TinyGo. What it builds is some ten
// times as large, and slower to load.
type StandardGo struct{ golang goInstallation }

var _ Compiler = (*StandardGo)(nil)

// FindStandardGo asks the go command in a folder which Go it is.
//
// Errors: there is no go command, or it does not answer.
func FindStandardGo(ctx context.Context, dir string) (*StandardGo, error) {
	golang, err := findGo(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &StandardGo{golang}, nil
}

// ID names the version of Go.
func (g *StandardGo) ID() string { return developmentPrefix + g.golang.Version }

// Compile runs `go build`.
//
// Errors: the command with the end of its output.
func (g *StandardGo) Compile(ctx context.Context, m Module, out string) error {
	env := cleanEnv(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	args := []string{"build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-tags=" +
		strings.Join(m.Tags, ",")}
	_, err := run(ctx, m.Dir, env, g.golang.command(), append(args, "-o", out, ".")...)
	return err
}
