package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

// pinnedReference parses a reference. It gets the digest that the lock file has for its tag, or else the one that it
// had before in this process.
func (a *App) pinnedReference(name string) (registry.Reference, error) {
	r, err := registry.ParseReference(name)
	if err != nil {
		return r, err
	}
	if before, ok := a.pinned.Load(name); ok {
		return *before.(*registry.Reference), nil
	}
	path := a.LockPath()
	if path == "" {
		return r, nil
	}
	l, err := registry.ReadLock(path)
	if err != nil {
		return r, err
	}
	return l.Pin(r)
}

// lockLost adds to an error about a missing module that the lock file names it.
func lockLost(err error, name string, r registry.Reference) error {
	if abi.CodeOf(err) != abi.CodeNotFound || strings.HasSuffix(name, r.Digest) {
		return err
	}
	return abi.AsError(err).WithHint(registry.LockFile + " pins it; `memhost pull --lock " + name +
		"` pins what the tag names now")
}

// pullModule is OpenModule for a module in a registry.
func (a *App) pullModule(name string) (*Module, error) {
	r, err := a.pinnedReference(name)
	if err != nil {
		return nil, err
	}
	m, r, err := a.Fetch(context.Background(), r)
	if err != nil {
		return nil, lockLost(err, name, r)
	}
	a.pinned.Store(name, &r)
	return m, nil
}

// Fetch gets a module from the cache or its registry. The returned reference has its digest.
func (a *App) Fetch(ctx context.Context, r registry.Reference) (*Module, registry.Reference, error) {
	client, err := a.RegistryClient()
	if err != nil {
		return nil, r, err
	}
	wasm, r, err := client.Pull(ctx, r)
	if err != nil {
		return nil, r, err
	}
	m, err := Inspected(wasm, r.String())
	return m, r, err
}

// lockModule pins the tag by which a configuration names a module, unless the lock file already does.
func (a *App) lockModule(m *Module) error {
	path := a.LockPath()
	if path == "" || !registry.IsReference(m.Source) {
		return nil
	}
	r, err := registry.ParseReference(m.Source)
	if err != nil || r.Tag == "" {
		return err
	}
	l, err := registry.ReadLock(path)
	if err != nil {
		return err
	}
	pinned, err := l.Pin(registry.Reference{Host: r.Host, Name: r.Name, Tag: r.Tag})
	if err != nil || pinned.Digest != "" {
		return err
	}
	if err := registry.UpdateLock(path, r); err != nil {
		a.Out.Note("  the tag of %s is looked up at each start: %s", m.Source, abi.AsError(err).Message)
	}
	return nil
}

// LockPath returns the lock file next to the configuration file in use, "" without one.
func (a *App) LockPath() string {
	file := config.FileOf(config.Options{File: a.Flags.Config, NamedFileOnly: a.MCP == MCPStdio || a.NamedFileOnly,
		Environ: a.Environ})
	if file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(file), registry.LockFile)
}

// envMirrors is the variable that names mirrors, which are asked before their registries.
const envMirrors = "MEMHOST_MIRRORS"

// isRegistry accepts HOST or HOST:PORT.
func isRegistry(host string) bool {
	r, err := registry.ParseReference(registry.Scheme + host + "/any")
	return err == nil && r.Host == host
}

// RegistryClient returns the client of all registries. Its cache is next to that of compiled modules.
func (a *App) RegistryClient() (*registry.Client, error) {
	c := &registry.Client{Mirrors: map[string][]string{}, Kept: signing.BundleType}
	for _, pair := range strings.Fields(a.Getenv(envMirrors)) {
		host, mirror, ok := strings.Cut(pair, "=")
		if !ok || !isRegistry(host) || !isRegistry(mirror) {
			return nil, abi.NewError(abi.CodeInvalidArgument, envMirrors+": found "+Quote(pair)+", want HOST=MIRROR").
				WithHint(`for example MEMHOST_MIRRORS="ghcr.io=mirror.lan:5000"`)
		}
		c.Mirrors[host] = append(c.Mirrors[host], mirror)
	}
	if dir := a.CacheDir(); dir != "" {
		c.Cache = registry.Cache(filepath.Join(filepath.Dir(dir), "registry"))
	}
	return c, nil
}
