package toolchain

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// scriptFiles are what an AssemblyScript module is compiled from besides assembly/:
// the lock pins the compiler and Extism's PDK, the configuration has the flags.
func scriptFiles() []string {
	return []string{manifestFile, "package.json", "package-lock.json", "asconfig.json"}
}

// Script compiles AssemblyScript with the packages that a module's package-lock.json
// pins. They are installed at the first need, below $MEMHOST_TOOLCHAIN or the user's cache
// folder: never into the tree.
type Script struct {
	// Log gets a line for each step. Required.
	Log io.Writer
}

var _ Compiler = (*Script)(nil)

// ID says where the compiler's version stands: the lock file of a module is one of its
// sources, so another version is another source hash.
func (s *Script) ID() string { return "assemblyscript of package-lock.json" }

// Compile installs what the module's package-lock.json pins, unless that is done already, and runs asc on a copy of the
// sources next to the packages.
//
// Errors: node or npm is not there; the command with the end of its output.
func (s *Script) Compile(ctx context.Context, m Module, out string) error {
	dir, err := s.install(ctx, m)
	if err != nil {
		return err
	}
	// The compiler finds packages above the sources, so they are copied to where the packages are.
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, name := range append(scriptFiles(), "assembly") {
		if err := copyInto(filepath.Join(m.Dir, name), filepath.Join(work, name)); err != nil {
			return fmt.Errorf("toolchain: %w", err)
		}
	}
	_, err = run(ctx, work, os.Environ(), "node", "../node_modules/assemblyscript/bin/asc.js", "assembly/index.ts",
		"--target", "release", "--outFile", out)
	return err
}

// install runs npm ci in a folder of its own for each lock file.
func (s *Script) install(ctx context.Context, m Module) (string, error) {
	lock, err := os.ReadFile(filepath.Join(m.Dir, "package-lock.json"))
	if err != nil {
		return "", fmt.Errorf("toolchain: %w", err)
	}
	base, err := cacheFolder(os.Getenv(EnvFolder), os.UserCacheDir)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "assemblyscript-"+hashOf(lock)[:16])
	if isFile(filepath.Join(dir, "installed")) {
		return dir, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", fmt.Errorf("toolchain: module %s is written in AssemblyScript, and node with npm is not there: %w",
			m.Name, err)
	}
	say(s.Log, "%s: npm ci into %s", m.Name, dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("toolchain: %w", err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyInto(filepath.Join(m.Dir, name), filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("toolchain: %w", err)
		}
	}
	if _, err := run(ctx, dir, os.Environ(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "installed"), nil, 0o644)
}

// copyInto copies a file, or a folder with all that is in it.
func copyInto(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// hashScript gives one hash over everything that an AssemblyScript module is compiled from.
func hashScript(m Module, files fileHashes) (string, error) {
	dir, err := realPath(m.Dir)
	if err != nil {
		return "", err
	}
	names := scriptFiles()
	err = filepath.WalkDir(filepath.Join(dir, "assembly"), func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(at, ".ts") {
			return err
		}
		name, err := filepath.Rel(dir, at)
		names = append(names, name)
		return err
	})
	if err != nil {
		return "", err
	}
	var lines []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		line, err := files.line(dir, name)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return hashLines(lines), nil
}
