package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const manifestHelp = `Prints the run manifest of the slot: what serves, made of which module and configuration, since when, and what its scopes are called in the backend.
` + "`memhost run`" + ` keeps the same in manifest.json of its data folder, or where --manifest says.`

const verifyHelp = `Holds a run manifest against a module and a configuration: module bytes and version, ABI, provider, kind, capabilities, and the config hash, recomputed
from the manifest's own block and from the configuration's. The module is --plugin, else the one that --config names, else the built-in one that serves the
provider. Without --config no configuration is looked at.

The exit code is 0 when everything agrees, 8 when something differs (each difference is a line), and 2 for a file that is no run manifest, or of another
version.`

func (a *commands) manifestCommand() *cobra.Command {
	show := func(cmd *cobra.Command, _ []string) error {
		return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
			m, err := d.Manifest(ctx)
			if err != nil {
				return err
			}
			return a.Out.Value(m)
		})
	}
	cmd := &cobra.Command{Use: "manifest", Short: "Show the run manifest, or verify one", Long: manifestHelp,
		Args: cli.NoSuchCommand, RunE: show}
	cmd.AddCommand(&cobra.Command{Use: "show", Short: "Show the run manifest of the slot", Long: manifestHelp,
		Args: cobra.NoArgs, RunE: show})
	cmd.AddCommand(&cobra.Command{Use: "scopes", Short: "List all scopes of the slot, each as a JSON line",
		Long: "Lists all scopes of what serves, with the backend's names for them and how many events are open in each: " +
			"a JSON object on\neach line, in no particular order. The run manifest has 100 of them at most, and counts the " +
			"others.",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				lister, ok := d.Contract.(cli.ScopeLister)
				if !ok {
					return abi.NewError(abi.CodeUnsupported, "this slot lists no scopes")
				}
				return cli.EachScope(ctx, lister, func(s *report.ListedScope) error {
					a.Out.Print("%s\n", abi.Marshal(&wire.ListedScope{Scope: s.Scope, Generation: s.Generation,
						NativeScope: s.NativeScope, Since: s.Since, Queued: s.Queued, Pending: s.Pending, Lost: s.Lost}))
					return ctx.Err()
				})
			})
		}})
	var plugin string
	verify := &cobra.Command{
		Use: "verify FILE", Short: "Hold a run manifest against a module and a configuration", Long: verifyHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  memhost manifest verify data/manifest.json --plugin ./mem0.wasm --config memhost.yaml",
		RunE:    func(_ *cobra.Command, args []string) error { return a.verifyManifest(args[0], plugin) },
	}
	verify.Flags().StringVar(&plugin, "plugin", "", "the module: a file, oci://..., or the name of a built-in one")
	cmd.AddCommand(verify)
	return cmd
}

func (a *commands) verifyManifest(path, plugin string) error {
	text, err := cli.ReadFile(path, cli.MaxRunManifest)
	if err != nil {
		return err
	}
	m, err := report.ParseRunManifest(text)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = path + ": " + e.Message
		return &e
	}
	found, config, err := a.toVerify(m, plugin)
	if err != nil {
		return err
	}
	differences, err := host.VerifyManifest(m, found.Info, config)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if differences == nil {
			differences = []report.ManifestDifference{}
		}
		if err := a.Out.Object(map[string]any{"agrees": len(differences) == 0, "differences": differences,
			"module": found.Source, "config": a.Flags.Config}); err != nil {
			return err
		}
	} else {
		for _, d := range differences {
			a.Out.Print("%s: %s: the manifest says %s, found %s\n", d.Against, d.Field, d.Manifest,
				d.Found)
		}
		if len(differences) == 0 {
			against := "module " + cli.SourceText(found.Source)
			if config != nil {
				against += " and configuration " + a.Flags.Config
			}
			a.Out.Print("agrees: %s, with %s\n", path, against)
		}
	}
	if len(differences) > 0 {
		return cli.Done(cli.ExitDiffers)
	}
	return nil
}

// toVerify finds what a manifest is compared with.
func (a *commands) toVerify(m *report.RunManifest, plugin string) (found *cli.Module, config *host.ProviderConfig, err error) {
	if plugin != "" {
		if found, err = a.OpenModule(plugin, cli.IsFile(plugin)); err != nil {
			return nil, nil, err
		}
	}
	if a.Flags.Config != "" {
		c, err := a.Config()
		if err != nil {
			return nil, nil, err
		}
		if found == nil {
			if found, err = a.Resolve(c); err != nil {
				return nil, nil, err
			}
		}
		p := cli.ProviderConfig(c, found)
		config = &p
	}
	if found == nil {
		if found, err = a.OpenModule(m.Provider, false); err != nil {
			e := *abi.AsError(err)
			e.Hint = "name the module: --plugin FILE"
			return nil, nil, &e
		}
	}
	return found, config, nil
}
