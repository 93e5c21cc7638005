package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// EnvClang names the clang that compiles plugins in C, in place of the one that FindClang finds.
const EnvClang = "CLANG"

// Clang compiles C with an installed clang and its linker, lld. It links no C library: sdk/c/memhost.h needs none.
type Clang struct{ command, version string }

var _ Compiler = (*Clang)(nil)

// FindClang looks for a clang with lld in the same folder: the command $CLANG, else clang or clang-14 to clang-22 on
// the PATH, as Debian names them.
//
// Errors: there is none.
func FindClang(ctx context.Context) (*Clang, error) {
	names := []string{"clang"}
	for version := 22; version >= 14; version-- {
		names = append(names, fmt.Sprintf("clang-%d", version))
	}
	if name := os.Getenv(EnvClang); name != "" {
		names = []string{name}
	}
	without := ""
	for _, name := range names {
		command, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		said, err := run(ctx, "", os.Environ(), command, "--version")
		if err != nil {
			return nil, err
		}
		linker, err := run(ctx, "", os.Environ(), command, "--print-prog-name=wasm-ld")
		if err != nil {
			return nil, err
		}
		if _, err := exec.LookPath(strings.TrimSpace(string(linker))); err != nil {
			without = command
			continue
		}
		version, _, _ := strings.Cut(string(said), "\n")
		return &Clang{command, strings.TrimSpace(version)}, nil
	}
	if without != "" {
		return nil, fmt.Errorf("toolchain: %s has no wasm-ld, the linker of lld", without)
	}
	return nil, errors.New("toolchain: " + names[0] + " is not on the PATH")
}

// ID names the version of clang.
func (c *Clang) ID() string { return developmentPrefix + c.version }

// Compile compiles plugin.c, with the header in the same folder.
//
// Errors: the command with the end of its output.
func (c *Clang) Compile(ctx context.Context, m Module, out string) error {
	_, err := run(ctx, m.Dir, os.Environ(), c.command, "--target=wasm32", "-std=c11", "-O2", "-mbulk-memory",
		"-nostdlib", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wl,--no-entry,--stack-first,--strip-debug",
		"-o", out, "plugin.c")
	return err
}
