// Package plugins carries the built modules, so that `go run` and `go install` need nothing but Go.
//
// Each is beside its sources, plugins/<path>/<name>.wasm, built by `make plugins`; modules.lock holds them to those
// sources.
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
	// Name is its folder's, which is the module's own name: "full_history".
	Name string
	// Path is its path in this folder: "conditions/full_history/full_history.wasm".
	Path string
	// Wasm is shared by all callers and not to be changed.
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
