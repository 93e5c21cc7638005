package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memhost/memhost/internal/base/wholefile"
)

const (
	lockVersion = 1
	lockFile    = "modules.lock"
)

// Lock is the content of plugins/modules.lock: what each committed module was built
// from.
type Lock struct {
	Version int     `json:"lock"`
	Modules []Entry `json:"modules"`
}

// Entry is one module in the lock.
type Entry struct {
	Name string `json:"name"`
	// Sources is the hash that HashSources gave.
	Sources string `json:"sources"`
	// Recipe is the hash that Recipe gave.
	Recipe string `json:"recipe"`
	// Toolchain is the compiler's ID; it starts with "development:" when the module
	// was not built with the bootstrapped one.
	Toolchain string `json:"toolchain"`
	// SHA256 and Size belong to the built module.
	SHA256 string `json:"sha256"`
	Size   int    `json:"size"`
}

func lockPath(root string) string { return filepath.Join(root, pluginsFolder, lockFile) }

// ReadLock reads plugins/modules.lock; a missing file is an empty lock.
//
// Errors: the file cannot be read or is not a lock of a known version.
func ReadLock(root string) (Lock, error) {
	empty := Lock{Version: lockVersion}
	b, err := os.ReadFile(lockPath(root))
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("toolchain: %w", err)
	}
	var lock Lock
	if err := json.Unmarshal(b, &lock); err != nil {
		return empty, fmt.Errorf("toolchain: %s: %w: restore it from version control or delete it and run `make "+
			"plugins`", lockPath(root), err)
	}
	if lock.Version != lockVersion {
		return empty, fmt.Errorf("toolchain: %s has version %d, want %d", lockPath(root), lock.Version, lockVersion)
	}
	return lock, nil
}

// Write writes plugins/modules.lock, sorted by name.
func (l Lock) Write(root string) error {
	slices.SortFunc(l.Modules, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return writeFile(lockPath(root), append(b, '\n'))
}

// Entry finds a module's entry.
func (l Lock) Entry(name string) (Entry, bool) {
	for _, e := range l.Modules {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// set replaces or adds an entry.
func (l *Lock) set(e Entry) {
	l.Modules = slices.DeleteFunc(l.Modules, func(old Entry) bool { return old.Name == e.Name })
	l.Modules = append(l.Modules, e)
}

// CheckLock reports whether every module under plugins/ was built from the sources
// that are there now, and is the one that the lock names. It needs Go alone.
//
// Errors: one, listing every module that differs and how.
func CheckLock(root string) error {
	ctx := context.Background()
	lock, err := ReadLock(root)
	if err != nil {
		return err
	}
	modules, err := FindModules(root)
	if err != nil {
		return err
	}
	state, err := readState(ctx, root, modules)
	if err != nil {
		return err
	}
	problems := lock.compare(modules, state)
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("toolchain: %s/%s and the modules do not agree: run `make plugins` and commit the modules with "+
		"the lock\n  %s",
		pluginsFolder, lockFile, strings.Join(problems, "\n  "))
}

// state describes the checkout as it is now.
type state struct {
	recipe  string
	sources map[string]string // by module name
	wasm    map[string]string // sha256 by module name; absent when there is no file
}

func readState(ctx context.Context, root string, modules []Module) (s state, err error) {
	if s.recipe, err = Recipe(); err != nil {
		return s, err
	}
	if s.sources, err = HashSources(ctx, root, modules); err != nil {
		return s, err
	}
	s.wasm = make(map[string]string)
	for _, m := range modules {
		b, err := os.ReadFile(m.Wasm())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("toolchain: %w", err)
		}
		s.wasm[m.Name] = hashOf(b)
	}
	return s, nil
}

// compare lists what is wrong with each module, one line each, in the modules' order,
// then the entries that have no module.
func (l Lock) compare(modules []Module, now state) []string {
	var out []string
	names := make(map[string]bool)
	for _, m := range modules {
		names[m.Name] = true
		if problem := l.compareOne(m.Name, now); problem != "" {
			out = append(out, m.Name+": "+problem)
		}
	}
	for _, e := range l.Modules {
		if !names[e.Name] {
			out = append(out, e.Name+": in the lock, but there is no such module")
		}
	}
	return out
}

func (l Lock) compareOne(name string, now state) string {
	e, ok := l.Entry(name)
	wasm, built := now.wasm[name]
	switch {
	case !ok:
		return "not in the lock"
	case e.Sources != now.sources[name]:
		return fmt.Sprintf("sources changed: the module was built from %.12s, they are %.12s now", e.Sources,
			now.sources[name])
	case e.Recipe != now.recipe:
		return "the way modules are built changed (TinyGo's version, its target, its flags)"
	case !built:
		return "the lock names a built module, but there is none"
	case e.SHA256 != wasm:
		return fmt.Sprintf("the built module is %.12s, the lock says %.12s", wasm, e.SHA256)
	case isDevelopment(e.Toolchain):
		return "built with " + e.Toolchain + ": unset TINYGO for a module that is committed"
	}
	return ""
}

// current reports whether the committed module is what this compiler would make from
// the sources, as far as the lock tells.
func (l Lock) current(name, toolchain string, now state) bool {
	e, ok := l.Entry(name)
	return ok && e.Toolchain == toolchain && e.Sources == now.sources[name] && e.Recipe == now.recipe &&
		e.SHA256 == now.wasm[name]
}

func hashOf(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// writeFile replaces a file in one step; a file that has this content already is
// left alone.
func writeFile(name string, content []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := wholefile.Write(name, content, 0o644); err != nil {
		return fmt.Errorf("toolchain: writing %s: %w", name, err)
	}
	return nil
}
