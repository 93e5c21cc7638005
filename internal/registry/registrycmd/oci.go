package registrycmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/registry"
)

const pushHelp = `Stores a module in an OCI registry, in the Wasm artifact layout of the CNCF, and prints its name there with the digest. MODULE is a file (with a slash in it, or ending
in .wasm) or the name of a built-in module. The same module always has the same digest.

--report FILE attaches what ` + "`memhost conformance --json`" + ` printed about this module, so that one can see it before the module is used.

Credentials are Docker's: what ` + "`docker login`" + ` stored, or a credential helper has.`

const pullHelp = `Fetches a module from an OCI registry into the cache, and prints its name with the digest. A module that was fetched is used without the registry from then on wherever it is
named with its digest. Its signatures are fetched each time, where the registry answers.

Where a configuration names a module by a tag, memhost.lock beside the configuration file keeps the digest that the tag had the first time. --lock puts the one of today into it.

MEMHOST_MIRRORS="ghcr.io=mirror.lan:5000 ..." names registries that are asked before another one; the last answer is that of the registry itself.`

func (a *commands) pushCommand() *cobra.Command {
	var reportFile string
	cmd := &cobra.Command{
		Use: "push MODULE oci://HOST/NAME:TAG", Short: "Store a module in a registry", Long: pushHelp,
		Args:    cobra.ExactArgs(2),
		Example: "  memhost push ./mem.wasm oci://ghcr.io/team/mem:1.2",
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.OpenModule(args[0], cli.IsFile(args[0]))
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
			client, err := a.RegistryClient()
			if err != nil {
				return err
			}
			stored, err := client.Push(cmd.Context(), to, m.Wasm)
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

func (a *commands) pullCommand() *cobra.Command {
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
				return cli.UsageError("pull: --lock: "+r.String()+" has no tag that could be pinned",
					"memhost pull --lock "+registry.Scheme+r.Host+"/"+r.Name+":TAG")
			case a.LockPath() == "":
				return cli.UsageError("pull: --lock: there is no configuration file, and its lock file is beside it",
					"memhost pull --config FILE --lock "+args[0])
			}
			return a.pull(cmd.Context(), args[0], to, lock)
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "write the module to a file, too")
	cmd.Flags().BoolVar(&lock, "lock", false, "pin the tag to what it names now, in memhost.lock")
	return cmd
}

func (a *commands) pull(ctx context.Context, name, to string, lock bool) error {
	r, err := registry.ParseReference(name)
	if err != nil {
		return err
	}
	m, r, err := a.Fetch(ctx, r)
	if err != nil {
		return err
	}
	client, err := a.RegistryClient()
	if err != nil {
		return err
	}
	// The module may come from the cache or a mirror, but its signatures should be the registry's current ones.
	if _, err := client.Attached(ctx, r, client.Kept); err != nil {
		a.Out.Note("its signatures are those of the cache: %s", abi.AsError(err).Message)
	}
	if to != "" {
		if err := cli.ReplaceFile(to, m.Wasm); err != nil {
			return err
		}
	}
	if lock {
		if err := registry.UpdateLock(a.LockPath(), r); err != nil {
			return err
		}
	}
	return a.showReference(r, m)
}

func (a *commands) showReference(r registry.Reference, m *cli.Module) error {
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"reference": r.String(), "digest": r.Digest, "name": m.Name,
			"version": m.Info.Manifest.Version, "sha256": m.Info.SHA256, "bytes": m.Info.Bytes})
	}
	a.Out.Print("%s\n", r)
	return nil
}
