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
	"sync"
	"text/tabwriter"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Builder builds modules with one compiler. It must not be copied after first use.
type Builder struct {
	// Root is the checkout. Required.
	Root string
	// Compiler compiles Go. Required.
	Compiler Compiler
	// Script compiles AssemblyScript. Required if there is such a module.
	Script Compiler
	// Jobs is how many modules are built at a time; 0 means 2.
	Jobs int
	// Force builds modules that are up to date, too.
	Force bool
	// Out is a folder for the built modules, as <name>.wasm; the lock is then left alone. Empty means next to the
	// sources, recorded in the lock.
	Out string
	// Log gets a line for each step. Required.
	Log io.Writer

	logging sync.Mutex
}

// compiler is the one for a module's language.
func (b *Builder) compiler(m Module) Compiler {
	if m.Language == AssemblyScript {
		return b.Script
	}
	return b.Compiler
}

func (b *Builder) say(format string, args ...any) {
	b.logging.Lock()
	defer b.logging.Unlock()
	say(b.Log, format, args...)
}

// Result is one module after Build.
type Result struct {
	Module Module
	// Size and SHA256 belong to the built module; zero when it could not be built.
	Size   int
	SHA256 string
	// UpToDate says that the lock and the sources agree and nothing was compiled.
	UpToDate bool
	Err      error
}

// Build builds the modules whose sources, recipe or toolchain are no longer those in
// the lock, and notes what it built in the lock. One module's failure does not
// stop the others. A module over SizeLimit is an error and does not replace the one
// that is there; with Out it is written for a closer look.
//
// Errors: all of them joined, each naming its module.
func (b *Builder) Build(ctx context.Context, modules []Module) ([]Result, error) {
	lock, err := ReadLock(b.Root)
	if err != nil {
		return nil, err
	}
	before, err := readState(ctx, b.Root, modules)
	if err != nil {
		return nil, err
	}
	results := b.each(ctx, modules, func(m Module) Result {
		if e, ok := lock.Entry(m.Name); ok && !b.Force && b.Out == "" &&
			lock.current(m.Name, b.compiler(m).ID(), before) {
			return Result{Module: m, Size: e.Size, SHA256: e.SHA256, UpToDate: true, Err: checkSize(m, e.Size)}
		}
		return b.buildOne(ctx, m)
	})
	if b.Out == "" {
		if err := b.note(ctx, results, before); err != nil {
			return results, err
		}
	}
	var failed []error
	for _, r := range results {
		failed = append(failed, r.Err)
	}
	return results, errors.Join(failed...)
}

// Check compiles every module anew and compares it with the committed one, byte for
// byte.
//
// Errors: all of them joined; a module that differs is named with both hashes.
func (b *Builder) Check(ctx context.Context, modules []Module) error {
	lock, err := ReadLock(b.Root)
	if err != nil {
		return err
	}
	results := b.each(ctx, modules, func(m Module) Result {
		built, err := b.compile(ctx, m)
		if err != nil {
			return Result{Module: m, Err: err}
		}
		r := Result{Module: m, Size: len(built), SHA256: hashOf(built)}
		committed, err := os.ReadFile(m.Wasm())
		switch {
		case err != nil:
			r.Err = fmt.Errorf("toolchain: module %s: no committed module: %w", m.Name, err)
		case !bytes.Equal(built, committed):
			r.Err = fmt.Errorf("toolchain: module %s: the committed module is %s, a rebuild gives %s%s: run `make "+
				"plugins` and commit",
				m.Name, hashOf(committed), r.SHA256, otherToolchain(lock, m.Name, b.compiler(m).ID()))
		default:
			b.say("%s: same bytes", m.Name)
		}
		return r
	})
	var failed []error
	for _, r := range results {
		failed = append(failed, r.Err)
	}
	return errors.Join(failed...)
}

func otherToolchain(lock Lock, name, id string) string {
	if e, ok := lock.Entry(name); ok && e.Toolchain != id {
		return fmt.Sprintf(" (the lock says built with %s, this is %s)", e.Toolchain, id)
	}
	return ""
}

// each runs do for every module, Jobs at a time, and keeps the order.
func (b *Builder) each(ctx context.Context, modules []Module, do func(Module) Result) []Result {
	jobs := b.Jobs
	if jobs <= 0 {
		jobs = 2
	}
	slots := make(chan struct{}, jobs)
	results := make([]Result, len(modules))
	var all sync.WaitGroup
	for i, m := range modules {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := ctx.Err(); err != nil {
				results[i] = Result{Module: m, Err: fmt.Errorf("toolchain: module %s: %w", m.Name, err)}
				return
			}
			results[i] = do(m)
		})
	}
	all.Wait()
	return results
}

func (b *Builder) buildOne(ctx context.Context, m Module) Result {
	r := Result{Module: m}
	built, err := b.compile(ctx, m)
	if err != nil {
		r.Err = err
		return r
	}
	r.Size, r.SHA256 = len(built), hashOf(built)
	r.Err = checkSize(m, r.Size)
	to := m.Wasm()
	if b.Out != "" {
		to = filepath.Join(b.Out, filepath.FromSlash(m.Name)+".wasm")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("toolchain: module %s: %w", m.Name, err))
			return r
		}
	}
	if r.Err == nil || b.Out != "" {
		r.Err = errors.Join(r.Err, writeFile(to, built))
	}
	return r
}

func checkSize(m Module, size int) error {
	if size <= SizeLimit {
		return nil
	}
	return fmt.Errorf("toolchain: module %s has %d bytes, want at most %d (%d KB)", m.Name, size, SizeLimit,
		SizeLimit/1024)
}

func (b *Builder) compile(ctx context.Context, m Module) ([]byte, error) {
	b.say("%s: compiling", m.Name)
	return compileModule(ctx, b.compiler(m), m)
}

// compileModule gives the finished module: compiled, stripped, with its manifest.
func compileModule(ctx context.Context, compiler Compiler, m Module) (built []byte, err error) {
	manifest, err := compactManifest(m)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "memhost-plugin-")
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	out := filepath.Join(temp, "module.wasm")
	if err := compiler.Compile(ctx, m, out); err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Name, err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("toolchain: module %s: the compiler wrote no module: %w", m.Name, err)
	}
	built, err = finish(raw, manifest)
	if err != nil {
		return nil, fmt.Errorf("toolchain: module %s: %w", m.Name, err)
	}
	return built, nil
}

func compactManifest(m Module) ([]byte, error) {
	path := filepath.Join(m.Dir, manifestFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("toolchain: module %s: %w", m.Name, err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return nil, fmt.Errorf("toolchain: module %s: %s: %w", m.Name, path, err)
	}
	return out.Bytes(), nil
}

// finish drops what only debuggers read and attaches the manifest.
func finish(raw, manifest []byte) ([]byte, error) {
	if _, err := wasmbin.Parse(raw); err != nil {
		return nil, err
	}
	stripped, err := wasmbin.StripCustom(raw, strippedSections()...)
	if err != nil {
		return nil, err
	}
	return wasmbin.SetCustom(stripped, ManifestSection, manifest)
}

// note writes what was built into the lock, and drops entries of modules that are
// gone. A module whose sources changed while it was compiled is not noted: what its
// bytes come from is unknown.
func (b *Builder) note(ctx context.Context, results []Result, before state) error {
	modules, err := FindModules(b.Root)
	if err != nil {
		return err
	}
	after, err := readState(ctx, b.Root, modules)
	if err != nil {
		return err
	}
	lock, err := ReadLock(b.Root)
	if err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		if r.UpToDate || r.Err != nil {
			continue
		}
		name := r.Module.Name
		if after.sources[name] != before.sources[name] || after.recipe != before.recipe {
			r.Err = fmt.Errorf("toolchain: module %s: its sources changed while it was built: build again", name)
			continue
		}
		lock.set(Entry{
			Name: name, Sources: before.sources[name], Recipe: before.recipe,
			Toolchain: b.compiler(r.Module).ID(), SHA256: r.SHA256, Size: r.Size,
		})
	}
	there := make(map[string]bool)
	for _, m := range modules {
		there[m.Name] = true
	}
	kept := Lock{Version: lockVersion}
	for _, e := range lock.Modules {
		if there[e.Name] {
			kept.set(e)
		}
	}
	return kept.Write(b.Root)
}

// PrintTable writes one line for each module: its size and how that stands to
// SizeLimit.
func PrintTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "module\tKB\tof %d KB\t\n", SizeLimit/1024)
	for _, r := range results {
		_, _ = fmt.Fprintf(t, "%s\t%.1f\t%.0f%%\t%s\n", r.Module.Name, float64(r.Size)/1024,
			100*float64(r.Size)/SizeLimit, verdict(r))
	}
	return t.Flush()
}

func verdict(r Result) string {
	switch {
	case r.Size > SizeLimit:
		return fmt.Sprintf("TOO LARGE by %d bytes", r.Size-SizeLimit)
	case r.Err != nil:
		return "FAILED"
	case r.UpToDate:
		return "ok, up to date"
	default:
		return "ok"
	}
}
