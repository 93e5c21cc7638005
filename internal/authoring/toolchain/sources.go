package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const manifestFile = "manifest.json"

// HashSources gives, by module name, one hash over everything that the module is
// compiled from: its manifest, every file that TinyGo would compile or embed from
// the module's folder and from the packages of this repository that it needs, and version
// and go.sum checksum of each foreign module that it needs. Tests do not count. The
// standard library counts with the toolchain, not here.
//
// Errors: a package that cannot be found or does not parse.
func HashSources(ctx context.Context, root string, modules []Module) (map[string]string, error) {
	if len(modules) == 0 {
		return nil, nil
	}
	root, err := realPath(root)
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	files := fileHashes{root: root, known: make(map[string]string)}
	out := make(map[string]string, len(modules))
	alike := make(map[string][]Module) // Go modules by their tags
	for _, m := range modules {
		if m.Language != AssemblyScript {
			tags := strings.Join(m.Tags, ",")
			alike[tags] = append(alike[tags], m)
			continue
		}
		if out[m.Name], err = hashScript(m, files); err != nil {
			return nil, fmt.Errorf("toolchain: module %s: %w", m.Name, err)
		}
	}
	for _, group := range alike {
		packages, err := listPackages(ctx, root, group)
		if err != nil {
			return nil, err
		}
		for _, m := range group {
			if out[m.Name], err = hashModule(m, packages, files); err != nil {
				return nil, fmt.Errorf("toolchain: module %s: %w", m.Name, err)
			}
		}
	}
	return out, nil
}

// goPackage is the part of `go list -json` that decides about a build.
type goPackage struct {
	Dir, ImportPath string
	Standard        bool
	Module          *goModule
	Deps            []string
	GoFiles         []string
	CgoFiles        []string
	CFiles          []string
	HFiles          []string
	EmbedFiles      []string
}

type goModule struct {
	Path, Version, Sum, GoVersion string
	Main                          bool
	Replace                       *goModule
}

// local reports whether the package's files are in a folder of the developer's and
// not in the module cache, where a checksum stands for them.
func (p *goPackage) local() bool {
	return p.Module == nil || p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == ""
}

// listPackages gives the packages that modules of the same tags need, by import path, with the
// files that TinyGo's build tags select.
func listPackages(ctx context.Context, root string, modules []Module) (map[string]*goPackage, error) {
	args := []string{
		"list", "-deps", "-tags", strings.Join(append(buildTags(), modules[0].Tags...), ","),
		"-json=Dir,ImportPath,Standard,Module,Deps,GoFiles,CgoFiles,CFiles,HFiles,EmbedFiles",
	}
	for _, m := range modules {
		args = append(args, "./"+m.folder())
	}
	env := cleanEnv(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=1")
	out, err := run(ctx, root, env, "go", args...)
	if err != nil {
		return nil, err
	}
	packages := make(map[string]*goPackage)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &goPackage{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("toolchain: go list: %w", err)
		}
		packages[p.ImportPath] = p
	}
}

func hashModule(m Module, packages map[string]*goPackage, files fileHashes) (string, error) {
	path := modulePath + "/" + m.folder()
	main := packages[path]
	if main == nil {
		return "", fmt.Errorf("go list says nothing about %s", path)
	}
	manifest, err := files.line(main.Dir, manifestFile)
	if err != nil {
		return "", err
	}
	lines := []string{manifest}
	for _, name := range append([]string{main.ImportPath}, main.Deps...) {
		p := packages[name]
		switch {
		case p == nil:
			return "", fmt.Errorf("go list says nothing about %s", name)
		case p.Standard:
		case p.local():
			added, err := files.lines(p)
			if err != nil {
				return "", err
			}
			lines = append(lines, added...)
		default:
			lines = append(lines, moduleLine(p.Module))
		}
	}
	if main.Module != nil {
		lines = append(lines, "go "+main.Module.GoVersion)
	}
	if len(m.Tags) > 0 {
		lines = append(lines, "tags "+strings.Join(m.Tags, ","))
	}
	return hashLines(lines), nil
}

func hashLines(lines []string) string {
	slices.Sort(lines)
	return hashOf([]byte(strings.Join(slices.Compact(lines), "\n")))
}

func moduleLine(m *goModule) string {
	if m.Replace != nil {
		m = m.Replace
	}
	return fmt.Sprintf("module %s %s %s", m.Path, m.Version, m.Sum)
}

// realPath gives the absolute path without symbolic links, as the go command names
// folders.
func realPath(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// fileHashes hashes each file once.
type fileHashes struct {
	root  string
	known map[string]string
}

func (f fileHashes) lines(p *goPackage) ([]string, error) {
	// The go command notes which folders a test has read, so that CheckLock in a test
	// is run again, not answered from the cache, when a file was added.
	if _, err := os.ReadDir(p.Dir); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.EmbedFiles) {
		line, err := f.line(p.Dir, name)
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

func (f fileHashes) line(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if line, ok := f.known[path]; ok {
		return line, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	short, err := filepath.Rel(f.root, path)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("file %s %s", filepath.ToSlash(short), hashOf(content))
	f.known[path] = line
	return line, nil
}
