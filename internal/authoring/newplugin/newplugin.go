// Package newplugin writes the folder of a new plugin, from the templates that the program carries.
//
// templates/ has a folder for each language; one that builds on another adds to its files and replaces those of the
// same name. A file's name loses .tmpl at its end, and dot_ before a file or folder becomes a dot; in its text the values
// between « and » are filled in.
package newplugin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/c"
)

//go:embed templates
var templates embed.FS

// The languages that a plugin can be written in.
const (
	Go       = "go"
	GoExtism = "go-extism" // Go, as a module for Extism

	AssemblyScript = "assemblyscript" // for Extism

	C = "c"
)

// Languages lists them, the default one first.
func Languages() []string { return []string{Go, GoExtism, AssemblyScript, C} }

// NeedsMemhost reports whether a plugin in a language is built with memhost's Go module.
func NeedsMemhost(language string) bool { return language == Go || language == GoExtism }

// layers are a language's folders of templates, a later one over an earlier one.
func layers(language string) []string {
	if language == GoExtism {
		return []string{"common", Go, GoExtism}
	}
	return []string{"common", language}
}

// goVersion is what a new Go module asks for: what memhost itself does.
const goVersion = "1.26.0"

// Options say what to write.
type Options struct {
	// Name is the module's and the provider's: a small letter, then up to 63 small letters, digits and underscores.
	// Required.
	Name string
	// Language is one of Languages. Required.
	Language string
	// Version is the version of memhost that a Go plugin requires, as v0.1.0.
	Version string
	// Checkout is a folder with memhost's sources, which a Go plugin is built with instead of a version.
	Checkout string
}

// setupNode is a step of a workflow: tests in AssemblyScript run with Node.js.
const setupNode = `
      - uses: actions/setup-node@v4
        with: {node-version: 22}`

// values fills in «.Name» and the others.
func values(o Options) *strings.Replacer {
	v := map[string]string{"Name": o.Name, "ScopeID": scopeID(o.Name), "ABI": abi.ABIMemhost, "GoVersion": goVersion,
		"Version": o.Version, "Requirements": requirements(o.Language), "Replace": "", "Installed": "latest", "SetupNode": "",
		"UnitTests": "make unit", "Build": "memhost toolchain --yes && memhost build"}
	switch {
	case o.Checkout != "":
		v["Version"] = "v0.0.0"
		v["Replace"] = "\n\nreplace github.com/memhost/memhost => " + quotePath(o.Checkout)
	case o.Version != "": // a release, which others can install
		v["Installed"] = o.Version
	}
	switch o.Language {
	case GoExtism:
		v["ABI"] = abi.ABIExtism
	case AssemblyScript:
		v["ABI"] = abi.ABIExtism
		v["SetupNode"], v["UnitTests"], v["Build"] = setupNode, "npm run unit", "memhost build"
	case C:
		v["UnitTests"], v["Build"] = "make check", "apt-get update && apt-get install -y clang lld && memhost build"
	}
	var pairs []string
	for name, value := range v {
		pairs = append(pairs, "«."+name+"»", value)
	}
	return strings.NewReplacer(pairs...)
}

// Write makes the folder dir with everything in it, in one step, and lists the files. What fails leaves nothing behind.
//
// Errors: invalid_argument for a name or a language that is none; conflict when dir is there already; unavailable when
// it cannot be written.
func Write(dir string, o Options) ([]string, error) {
	files, err := Render(o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, abi.NewError(abi.CodeConflict,
			dir+" is there already").WithHint("--dir takes another folder; nothing is written over")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, abi.WrapError(abi.CodeInvalidArgument, dir+": "+err.Error(), err)
	}
	if err := writeAll(dir, files); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "the folder "+dir+" cannot be written: "+err.Error(), err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names, nil
}

// writeAll writes into a folder beside dir, which becomes dir when all is there.
func writeAll(dir string, files []File) (err error) {
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-plugin-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for _, f := range files {
		at := filepath.Join(temp, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, f.Text, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// File is one file of a new plugin.
type File struct {
	// Name is its path below the folder, with slashes.
	Name string
	Text []byte
}

// Render gives the files of a new plugin, sorted by name.
//
// Errors: invalid_argument for a name or a language that is none.
func Render(o Options) ([]File, error) {
	if err := Check(o); err != nil {
		return nil, err
	}
	v := values(o)
	texts := map[string][]byte{}
	for _, layer := range layers(o.Language) {
		root := path.Join("templates", layer)
		err := fs.WalkDir(templates, root, func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			texts[fileName(strings.TrimPrefix(at, root+"/"))], err = render(at, v)
			return err
		})
		if err != nil {
			return nil, abi.WrapError(abi.CodeInternal, "templates of "+o.Language+": "+err.Error(), err)
		}
	}
	if o.Language == C {
		texts["memhost.h"], texts["plugin.c"] = c.Header, c.Example
	}
	var files []File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		files = append(files, File{name, texts[name]})
	}
	return files, nil
}

// Check looks at name and language.
//
// Errors: invalid_argument for one that is none.
func Check(o Options) error {
	manifest := abi.ModuleManifest{Manifest: abi.ManifestVersion, Name: o.Name, Version: "0", ABI: abi.ABIMemhost,
		ConfigSchema: abi.Raw("{}"),
		Providers:    []abi.ProviderDecl{{Name: o.Name, Kind: abi.KindArchitecture}}}
	if err := manifest.Validate(); err != nil {
		e := *abi.AsError(err) // the rules for names are the manifest's
		return e.WithHint("the name is the module's, the provider's and the folder's, for example my_memory")
	}
	if !slices.Contains(Languages(), o.Language) {
		hint := "there are " + strings.Join(Languages(), ", ")
		if near := abi.Nearest(o.Language, Languages()); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return abi.NewError(abi.CodeInvalidArgument,
			"lang: no plugin is written in "+strconv.Quote(o.Language)).WithHint(hint)
	}
	return nil
}

func render(at string, v *strings.Replacer) ([]byte, error) {
	template, err := templates.ReadFile(at)
	if err != nil {
		return nil, err
	}
	text := v.Replace(string(template))
	if _, unknown, found := strings.Cut(text, "«"); found {
		return nil, fmt.Errorf("%s: no value is called «%.20s", at, unknown)
	}
	return []byte(text), nil
}

// fileName is the path of a template's file: dot_github/workflows/plugin.yml.tmpl is .github/workflows/plugin.yml.
func fileName(name string) string {
	steps := strings.Split(strings.TrimSuffix(name, ".tmpl"), "/")
	for i, step := range steps {
		if rest, ok := strings.CutPrefix(step, "dot_"); ok {
			steps[i] = "." + rest
		}
	}
	return path.Join(steps...)
}

// scopeID is a name as the generated scopeID escapes it, for its test.
func scopeID(name string) string {
	return sdk.NativeID(sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-'}, name)
}

// quotePath is a path as it may stand in a go.mod.
func quotePath(p string) string {
	if strings.ContainsAny(p, " \t\"'`()[]{},;") || strings.Contains(p, "//") {
		return strconv.Quote(p)
	}
	return p
}

// NextStep is the command that comes first in a new plugin's folder.
func NextStep(language string) string {
	switch language {
	case AssemblyScript:
		return "npm test"
	case C:
		return "make test"
	}
	return requirements(language) + " && make test"
}

// requirements is the command that completes a Go plugin's go.mod and go.sum. If go get is enough, it needs only
// memhost's module, while go mod tidy also wants those that memhost's own tests import. It sees no imports of a wasm
// build.
func requirements(language string) string {
	if language == GoExtism {
		return "go mod tidy"
	}
	return "go get -t ."
}
