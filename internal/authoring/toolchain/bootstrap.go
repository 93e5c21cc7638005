package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// EnvFolder names the environment variable for the folder that holds bootstrapped
	// toolchains; without it they go to memhost/toolchain in the user's cache folder.
	EnvFolder = "MEMHOST_TOOLCHAIN"

	// EnvTinyGo names the environment variable for a TinyGo to develop with.
	EnvTinyGo = "TINYGO"

	stampFile  = "stamp.json"
	targetName = "target.json"
	tempPrefix = ".making-"
	// tempAge is how old an unfinished toolchain must be to be taken for abandoned.
	tempAge = 24 * time.Hour
)

// Bootstrap returns the TinyGo that committed modules are built with. If it does not exist yet, Bootstrap builds it: it
// installs Debian's packages if it may, copies the pinned TinyGo's sources, patches them, builds them and writes a
// target file, all into one folder outside the tree. Every step is said on log. Nothing is done twice; a bootstrap that
// was interrupted leaves nothing that a later one would take for whole. dir is where the go command is asked which Go
// it is: the checkout, or the folder of a plugin.
//
// Errors: a machine without a recipe (the error names TINYGO); a Go that TinyGo does not
// accept; packages that are missing and may not be installed here, with the command
// that installs them; a step that failed, with the end of its output.
func Bootstrap(ctx context.Context, dir string, log io.Writer) (*TinyGo, error) {
	n, err := Look(ctx, dir)
	if err == nil && len(n.Packages) > 0 {
		if err = installPackages(ctx, n.Packages, log); err == nil {
			n, err = Look(ctx, dir)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(n.Packages) > 0 {
		return nil, fmt.Errorf("toolchain: Debian packages still missing after apt-get: %s", strings.Join(n.Packages, " "))
	}
	n.maker.log = log
	if err := n.maker.ensure(ctx); err != nil {
		return nil, err
	}
	return n.maker.tinygo(), nil
}

// Need is what Bootstrap would have to do.
type Need struct {
	// Version is that of the pinned TinyGo, Folder where it is or would be.
	Version, Folder string
	// Packages are Debian packages that are missing; Install is the command, for root, that installs them.
	Packages []string
	Install  string
	// Made is the TinyGo if it exists already, nil if it has to be built.
	Made *TinyGo

	maker maker
}

// Look finds out what Bootstrap would do, and does nothing.
//
// Errors: those of Bootstrap for a machine without a recipe and for another Go.
func Look(ctx context.Context, dir string) (*Need, error) {
	golang, err := findGo(ctx, dir)
	if err != nil {
		return nil, err
	}
	osRelease, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	if err := checkPlatform(golang, string(osRelease)); err != nil {
		return nil, err
	}
	pinned, err := pinnedTinyGo(pinMod)
	if err != nil {
		return nil, err
	}
	if err := checkGo(golang.Version, pinned); err != nil {
		return nil, err
	}
	n := &Need{Version: pinned}
	if n.Folder, err = cacheFolder(os.Getenv(EnvFolder), os.UserCacheDir); err != nil {
		return nil, err
	}
	have, err := installedPackages(ctx)
	if err != nil {
		return nil, err
	}
	if n.Packages = missingPackages(have); len(n.Packages) > 0 {
		n.Install = "apt-get update && apt-get " + strings.Join(installArguments(n.Packages), " ")
		return n, nil // their versions are part of the folder's name
	}
	recipe, err := Recipe()
	if err != nil {
		return nil, err
	}
	n.maker = maker{golang: golang, log: io.Discard, pinned: pinned,
		stamp: stamp{ID: toolchainID(pinned, golang.Version, have), Recipe: recipe}}
	n.Folder = filepath.Join(n.Folder, fmt.Sprintf("%s+recipe-%.8s", n.maker.stamp.ID, recipe))
	n.maker.dir = n.Folder
	if n.maker.whole() {
		n.Made = n.maker.tinygo()
	}
	return n, nil
}

// toolchainID names everything outside the repository whose version shapes a module.
func toolchainID(tinygo, golang string, packages map[string]string) string {
	return strings.Join([]string{
		"tinygo-" + tinygo,
		"go-" + strings.TrimPrefix(golang, "go"),
		"llvm-" + upstream(packages[llvmPackage]),
		"binaryen-" + upstream(packages[binaryenPackage]),
		"wasi-libc-" + upstream(packages[wasiLibcPackage]),
	}, "+")
}

// cacheFolder is where toolchains are kept; set is the value of EnvFolder.
func cacheFolder(set string, userCache func() (string, error)) (string, error) {
	if set != "" {
		return filepath.Abs(set)
	}
	cache, err := userCache()
	if err != nil {
		return "", fmt.Errorf("toolchain: no cache folder (%w): set %s to a folder for toolchains", err, EnvFolder)
	}
	return filepath.Join(cache, "memhost", "toolchain"), nil
}

// stamp is written last into a toolchain; a folder without the right one is not
// whole.
type stamp struct {
	ID     string `json:"id"`
	Recipe string `json:"recipe"`
}

// maker makes one toolchain in dir.
type maker struct {
	dir    string
	golang goInstallation
	pinned string
	stamp  stamp
	log    io.Writer
}

func (m *maker) tinygo() *TinyGo {
	t := &TinyGo{
		id:      m.stamp.ID,
		command: filepath.Join(m.dir, "bin", "tinygo"),
		target:  filepath.Join(m.dir, targetName),
		env: cleanEnv(os.Environ(), "TINYGOROOT="+filepath.Join(m.dir, "root"), "WASMOPT="+debianWasmOpt,
			"GOROOT="+m.golang.Root, "GOTOOLCHAIN=local"),
	}
	return t.WithCache(filepath.Join(m.dir, "cache"))
}

func (m *maker) whole() bool {
	b, err := os.ReadFile(filepath.Join(m.dir, stampFile))
	var found stamp
	return err == nil && json.Unmarshal(b, &found) == nil && found == m.stamp &&
		isFile(filepath.Join(m.dir, "bin", "tinygo"))
}

// ensure makes the toolchain in a temporary folder and renames it when it works.
func (m *maker) ensure(ctx context.Context) (err error) {
	if m.whole() {
		return nil
	}
	base := filepath.Dir(m.dir)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := removeAbandoned(base, time.Now()); err != nil {
		return err
	}
	say(m.log, "making toolchain %s in %s", m.stamp.ID, base)
	temp, err := os.MkdirTemp(base, tempPrefix)
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := m.make(ctx, temp); err != nil {
		return err
	}
	if m.whole() {
		return nil // another process has made it
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := os.Rename(temp, m.dir); err != nil && !m.whole() {
		return fmt.Errorf("toolchain: %w", err)
	}
	say(m.log, "toolchain ready: %s", m.dir)
	return nil
}

func (m *maker) make(ctx context.Context, dir string) error {
	pin := filepath.Join(dir, "pin")
	if err := os.Mkdir(pin, 0o755); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := errors.Join(writeFile(filepath.Join(pin, "go.mod"), pinMod),
		writeFile(filepath.Join(pin, "go.sum"), pinSum)); err != nil {
		return err
	}
	env := cleanEnv(os.Environ(), "CGO_ENABLED=1", "GOTOOLCHAIN=local")
	command := filepath.Join(dir, "bin", "tinygo")

	say(m.log, "copying TinyGo's sources")
	if _, err := run(ctx, pin, env, m.golang.command(), "mod", "download", tinygoModule); err != nil {
		return err
	}
	source, err := run(ctx, pin, env, m.golang.command(), "list", "-m", "-f", "{{.Dir}}", tinygoModule)
	if err != nil {
		return err
	}
	tinygoRoot := filepath.Join(dir, "root")
	if err := os.CopyFS(tinygoRoot, os.DirFS(strings.TrimSpace(string(source)))); err != nil {
		return fmt.Errorf("toolchain: copying TinyGo's sources: %w", err)
	}
	if err := patch(tinygoRoot, insertions()); err != nil {
		return err
	}
	// src/net is a submodule of TinyGo's repository and not in the module zip.
	if err := os.MkdirAll(filepath.Join(tinygoRoot, "src", "net"), 0o755); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}

	say(m.log, "building TinyGo %s (a minute)", m.pinned)
	if _, err := run(ctx, pin, env, m.golang.command(), "mod", "edit", "-replace",
		tinygoModule+"=../root"); err != nil {
		return err
	}
	if _, err := run(ctx, pin, env, m.golang.command(), "build", "-trimpath", "-tags", llvmTag, "-o", command,
		tinygoModule); err != nil {
		return err
	}

	target, err := targetFile()
	if err != nil {
		return fmt.Errorf("toolchain: target file: %w", err)
	}
	if err := writeFile(filepath.Join(dir, targetName), target); err != nil {
		return err
	}
	if err := m.verify(ctx, command, tinygoRoot); err != nil {
		return err
	}
	mark, err := json.Marshal(m.stamp)
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return writeFile(filepath.Join(dir, stampFile), mark)
}

// verify asks the new TinyGo what it is.
func (m *maker) verify(ctx context.Context, command, tinygoRoot string) error {
	out, err := run(ctx, "", append(m.tinygo().env, "TINYGOROOT="+tinygoRoot), command, "version")
	if err != nil {
		return err
	}
	got := strings.TrimSpace(string(out))
	want := fmt.Sprintf("tinygo version %s ", m.pinned)
	if !strings.HasPrefix(got, want) || !strings.Contains(got, m.golang.Version) {
		return fmt.Errorf("toolchain: the TinyGo that was built says %q, want TinyGo %s with %s", got, m.pinned,
			m.golang.Version)
	}
	return nil
}

// removeAbandoned deletes what bootstraps left that were killed long ago.
func removeAbandoned(base string, now time.Time) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), tempPrefix) || now.Sub(info.ModTime()) < tempAge {
			continue
		}
		if err := os.RemoveAll(filepath.Join(base, entry.Name())); err != nil {
			return fmt.Errorf("toolchain: %w", err)
		}
	}
	return nil
}

func say(log io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(log, format+"\n", args...)
}
