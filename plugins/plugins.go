// Package plugins contains the built modules, so that `go run` and `go install` need only Go. Each is next to its
// sources, plugins/<path>/<name>.wasm, built by `make plugins`; modules.lock records the digests of those sources.
package plugins

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed */*.wasm conditions/*/*.wasm
var files embed.FS

// Module is one built module.
type Module struct {
	// Name is the module's name, which is also its folder's: "full_history".
	Name string
	// Path is its path in this folder: "conditions/full_history/full_history.wasm".
	Path string
	// Wasm is shared by all callers, who must not change it.
	Wasm []byte
}

// Builtin lists the modules by path.
func Builtin() []Module {
	var modules []Module
	// Reading embedded files cannot fail.
	_ = fs.WalkDir(files, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		wasm, err := files.ReadFile(at)
		modules = append(modules, Module{Name: strings.TrimSuffix(path.Base(at), ".wasm"), Path: at, Wasm: wasm})
		return err
	})
	return modules
}

// Find returns a module by its name.
func Find(name string) (Module, bool) {
	for _, m := range Builtin() {
		if m.Name == name {
			return m, true
		}
	}
	return Module{}, false
}
