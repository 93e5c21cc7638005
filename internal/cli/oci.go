package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

const pushHelp = `Stores a module in an OCI registry, in the Wasm artifact layout of the CNCF, and prints its name there with the digest. MODULE is a file (with a slash in it, or ending
in .wasm) or the name of a built-in module. The same module always has the same digest.

--report FILE attaches what ` + "`memhost conformance --json`" + ` printed about this module, so that one can see it before the module is used.

Credentials are Docker's: what ` + "`docker login`" + ` stored, or a credential helper has.`

const pullHelp = `Fetches a module from an OCI registry into the cache, and prints its name with the digest. A module that was fetched is used without the registry from then on wherever it is
named with its digest. Its signatures are fetched each time, where the registry answers.

Where a configuration names a module by a tag, memhost.lock beside the configuration file keeps the digest that the tag had the first time. --lock puts the one of today into it.

MEMHOST_MIRRORS="ghcr.io=mirror.lan:5000 ..." names registries that are asked before another one; the last answer is that of the registry itself.`

func (a *app) pushCommand() *cobra.Command {
	var reportFile string
	cmd := &cobra.Command{
		Use: "push MODULE oci://HOST/NAME:TAG", Short: "Store a module in a registry", Long: pushHelp,
		Args:    cobra.ExactArgs(2),
		Example: "  memhost push ./mem.wasm oci://ghcr.io/team/mem:1.2",
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.openModule(args[0], isFile(args[0]))
			if err != nil {
				return err
			}
			to, err := registry.ParseReference(args[1])
			if err != nil {
				return err
			}
			var report []byte
			if reportFile != "" {
				if report, err = readReport(reportFile, m); err != nil {
					return err
				}
			}
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			stored, err := client.Push(cmd.Context(), to, m.wasm)
			if err != nil {
				return err
			}
			if report != nil {
				if err := client.Attach(cmd.Context(), stored, reportType, report, nil); err != nil {
					return err
				}
			}
			return a.showReference(stored, m)
		},
	}
	cmd.Flags().StringVar(&reportFile, "report", "", "attach a report of memhost conformance --json")
	return cmd
}

func (a *app) pullCommand() *cobra.Command {
	var to string
	var lock bool
	cmd := &cobra.Command{
		Use: "pull oci://HOST/NAME:TAG", Short: "Fetch a module from a registry", Long: pullHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  memhost pull oci://ghcr.io/team/mem:1.2\n  memhost pull oci://ghcr.io/team/mem:1.2 -o mem.wasm",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch r, err := registry.ParseReference(args[0]); {
			case !lock || err != nil:
			case r.Tag == "":
				return usageError("pull: --lock: "+r.String()+" has no tag that could be pinned",
					"memhost pull --lock "+registry.Scheme+r.Host+"/"+r.Name+":TAG")
			case a.lockPath() == "":
				return usageError("pull: --lock: there is no configuration file, and its lock file is beside it",
					"memhost pull --config FILE --lock "+args[0])
			}
			return a.pull(cmd.Context(), args[0], to, lock)
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "write the module to a file, too")
	cmd.Flags().BoolVar(&lock, "lock", false, "pin the tag to what it names now, in memhost.lock")
	return cmd
}

func (a *app) pull(ctx context.Context, name, to string, lock bool) error {
	r, err := registry.ParseReference(name)
	if err != nil {
		return err
	}
	m, r, err := a.fetch(ctx, r)
	if err != nil {
		return err
	}
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	// The module may be from the cache, or from a mirror: what is attached to it is the registry's of now.
	if _, err := client.Attached(ctx, r, client.Kept); err != nil {
		a.out.note("its signatures are those of the cache: %s", abi.AsError(err).Message)
	}
	if to != "" {
		if err := replaceFile(to, m.wasm); err != nil {
			return err
		}
	}
	if lock {
		if err := registry.UpdateLock(a.lockPath(), r); err != nil {
			return err
		}
	}
	return a.showReference(r, m)
}

func (a *app) showReference(r registry.Reference, m *module) error {
	if a.out.json {
		return a.out.object(map[string]any{"reference": r.String(), "digest": r.Digest, "name": m.name,
			"version": m.info.Manifest.Version, "sha256": m.info.SHA256, "bytes": m.info.Bytes})
	}
	a.out.print("%s\n", r)
	return nil
}

// pinnedReference reads a reference. It has the digest that the lock file has for its tag, if there is one, or the one
// that it had before in this process.
func (a *app) pinnedReference(name string) (registry.Reference, error) {
	r, err := registry.ParseReference(name)
	if err != nil {
		return r, err
	}
	if before, ok := a.pinned.Load(name); ok {
		return *before.(*registry.Reference), nil
	}
	path := a.lockPath()
	if path == "" {
		return r, nil
	}
	l, err := registry.ReadLock(path)
	if err != nil {
		return r, err
	}
	return l.Pin(r)
}

// lockLost adds to an error about a module that is gone that the lock file has named it.
func lockLost(err error, name string, r registry.Reference) error {
	if abi.CodeOf(err) != abi.CodeNotFound || strings.HasSuffix(name, r.Digest) {
		return err
	}
	return abi.AsError(err).WithHint(registry.LockFile + " pins it; `memhost pull --lock " + name +
		"` pins what the tag names now")
}

// pullModule is openModule for a module in a registry.
func (a *app) pullModule(name string) (*module, error) {
	r, err := a.pinnedReference(name)
	if err != nil {
		return nil, err
	}
	m, r, err := a.fetch(context.Background(), r)
	if err != nil {
		return nil, lockLost(err, name, r)
	}
	a.pinned.Store(name, &r)
	return m, nil
}

func (a *app) fetch(ctx context.Context, r registry.Reference) (*module, registry.Reference, error) {
	client, err := a.registryClient()
	if err != nil {
		return nil, r, err
	}
	wasm, r, err := client.Pull(ctx, r)
	if err != nil {
		return nil, r, err
	}
	m, err := inspected(wasm, r.String())
	return m, r, err
}

// lockModule pins the tag by which a configuration names a module, if the lock file does not yet.
func (a *app) lockModule(m *module) error {
	path := a.lockPath()
	if path == "" || !registry.IsReference(m.source) {
		return nil
	}
	r, err := registry.ParseReference(m.source)
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
		a.out.note("  the tag of %s is looked up at each start: %s", m.source, abi.AsError(err).Message)
	}
	return nil
}

// lockPath is the lock file of the configuration file that is in use, "" without one.
func (a *app) lockPath() string {
	file := config.FileOf(config.Options{File: a.flags.config, NamedFileOnly: a.mcp == mcpStdio || a.namedFileOnly,
		Environ: a.Environ})
	if file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(file), registry.LockFile)
}

// envMirrors names registries that are asked before others.
const envMirrors = "MEMHOST_MIRRORS"

// isRegistry wants HOST or HOST:PORT.
func isRegistry(host string) bool {
	r, err := registry.ParseReference(registry.Scheme + host + "/any")
	return err == nil && r.Host == host
}

// registryClient is the client of all registries. Its cache is beside that of compiled modules.
func (a *app) registryClient() (*registry.Client, error) {
	c := &registry.Client{Mirrors: map[string][]string{}, Kept: signing.BundleType}
	for _, pair := range strings.Fields(a.getenv(envMirrors)) {
		host, mirror, ok := strings.Cut(pair, "=")
		if !ok || !isRegistry(host) || !isRegistry(mirror) {
			return nil, abi.NewError(abi.CodeInvalidArgument, envMirrors+": found "+quote(pair)+", want HOST=MIRROR").
				WithHint(`for example MEMHOST_MIRRORS="ghcr.io=mirror.lan:5000"`)
		}
		c.Mirrors[host] = append(c.Mirrors[host], mirror)
	}
	if dir := a.cacheDir(); dir != "" {
		c.Cache = registry.Cache(filepath.Join(filepath.Dir(dir), "registry"))
	}
	return c, nil
}
