package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// BuildPlugin builds the plugin in a folder anywhere, one with a manifest.json, and gives the finished module: compiled, stripped, with its manifest.
// Nothing in the folder is changed.
//
// Errors: what the compiler said; a manifest.json that is missing or no JSON. What it says is not looked at.
func BuildPlugin(ctx context.Context, compiler Compiler, dir string) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	return compileModule(ctx, compiler, Module{Name: filepath.Base(dir), Dir: dir})
}

// StandardGo compiles with the Go that is on the PATH: to try a plugin out where there is no TinyGo. What it builds is some ten times as large, and slower
// to load.
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
func (g *StandardGo) Compile(ctx context.Context, dir, out string) error {
	env := cleanEnv(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	_, err := run(ctx, dir, env, g.golang.command(), "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	return err
}
