package toolchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	modulePath    = "github.com/memhost/memhost"
	pluginsFolder = "plugins"

	// extismABI is what a manifest says of a module for Extism.
	extismABI = "mh1-extism"
)

// otherFolders are where modules live that are no providers of the product: examples, and guests for the host's own
// tests.
func otherFolders() []string { return []string{"examples/plugins", "internal/test/testguest"} }

// Module is one plugin folder.
type Module struct {
	// Name is the folder's path below plugins/, with slashes: "mem0",
	// "conditions/no_memory". A module elsewhere has its path below the checkout:
	// "examples/plugins/notes".
	Name string
	// Dir is the folder, below the root that FindModules was given.
	Dir string
	// Language is what it is written in.
	Language Language
	// Tags are Go build tags beyond those of the target: extism, if the manifest says that the module is for that
	// engine.
	Tags []string
}

// Language is a way from sources to a module.
type Language string

// Go is compiled by TinyGo; a folder with a main.go. AssemblyScript is compiled by asc; a
// folder with an assembly/index.ts. C is compiled by clang; a folder with a plugin.c.
const (
	Go             Language = "go"
	AssemblyScript Language = "assemblyscript"
	C              Language = "c"
)

// Wasm is where the built module belongs: <folder>/<base name of the folder>.wasm.
func (m Module) Wasm() string {
	return filepath.Join(m.Dir, path.Base(m.Name)+".wasm")
}

// folder is the module's folder below the checkout, with slashes.
func (m Module) folder() string {
	for _, other := range otherFolders() {
		if strings.HasPrefix(m.Name, other+"/") {
			return m.Name
		}
	}
	return pluginsFolder + "/" + m.Name
}

// FindRoot walks up from a folder to the checkout of this repository.
func FindRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("toolchain: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if IsCheckout(at) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("toolchain: no go.mod of %s in %s or above it: run this inside the checkout",
				modulePath, start)
		}
	}
}

// IsCheckout reports whether a folder is a checkout of this repository.
func IsCheckout(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && regexp.MustCompile(`(?m)^module\s+`+regexp.QuoteMeta(modulePath)+`\s*$`).Match(b)
}

// FindModules lists every folder under plugins/, examples/plugins/ and internal/test/testguest/, at any depth, that has both
// a manifest.json and a main.go or an assembly/index.ts, sorted by name. Folders named testdata and those that start
// with a dot or an underscore are left out, as the go command does.
//
// Errors: plugins/ cannot be read.
func FindModules(root string) ([]Module, error) {
	out, err := findBelow(root, pluginsFolder, "")
	if err != nil {
		return nil, err
	}
	for _, folder := range otherFolders() {
		more, err := findBelow(root, folder, folder+"/")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortFunc(out, func(a, b Module) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// findBelow looks for modules in one folder of the checkout. prefix begins their names.
func findBelow(root, folder, prefix string) ([]Module, error) {
	base := filepath.Join(root, filepath.FromSlash(folder))
	var out []Module
	err := filepath.WalkDir(base, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if name := entry.Name(); at != base && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		language := languageOf(at)
		if at == base || language == "" {
			return nil
		}
		name, err := filepath.Rel(base, at)
		if err != nil {
			return err
		}
		m := Module{Name: prefix + filepath.ToSlash(name), Dir: at, Language: language}
		if m.Tags, err = tagsOf(at); err != nil {
			return err
		}
		out = append(out, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("toolchain: looking for modules: %w", err)
	}
	return out, nil
}

// languageOf tells what a folder's module is written in; empty when it is none.
func languageOf(dir string) Language {
	switch {
	case !isFile(filepath.Join(dir, manifestFile)):
		return ""
	case isFile(filepath.Join(dir, "main.go")):
		return Go
	case isFile(filepath.Join(dir, "assembly", "index.ts")):
		return AssemblyScript
	case isFile(filepath.Join(dir, "plugin.c")):
		return C
	}
	return ""
}

// tagsOf reads off the manifest which engine the module is for. A manifest that is no
// JSON is found later, with its module's name.
func tagsOf(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	var manifest struct {
		ABI string `json:"abi"`
	}
	if json.Unmarshal(b, &manifest) == nil && manifest.ABI == extismABI {
		return []string{"extism"}, nil
	}
	return nil, nil
}

// Select keeps the modules that are named; without names it keeps all. A name is the module's own, its last element if
// that is unique, or its path (./plugins/mem0).
//
// Errors: a name that fits no module or several, with those there are.
func Select(modules []Module, names []string) ([]Module, error) {
	if len(names) == 0 {
		return modules, nil
	}
	chosen := make(map[string]bool)
	var wrong []error
	for _, name := range names {
		match, err := selectOne(modules, name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		chosen[match] = true
	}
	var out []Module
	for _, m := range modules {
		if chosen[m.Name] {
			out = append(out, m)
		}
	}
	return out, errors.Join(wrong...)
}

func selectOne(modules []Module, name string) (string, error) {
	wanted := strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), pluginsFolder+"/")
	var all, fits []string
	for _, m := range modules {
		if m.Name == wanted {
			return m.Name, nil
		}
		if path.Base(m.Name) == wanted {
			fits = append(fits, m.Name)
		}
		all = append(all, m.Name)
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return "", fmt.Errorf("toolchain: no module %q, have %s", name, strings.Join(all, ", "))
	default:
		return "", fmt.Errorf("toolchain: module %q could be %s: give the whole name", name, strings.Join(fits, " or "))
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
