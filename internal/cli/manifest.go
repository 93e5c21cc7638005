package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/registry"
)

const manifestHelp = `Prints the run manifest of the slot: what serves, made of which module and configuration, since when, and what its scopes are called in the backend.
` + "`memhost run`" + ` keeps the same in manifest.json of its data folder, or where --manifest says.`

const verifyHelp = `Holds a run manifest against a module and a configuration: module bytes and version, ABI, provider, kind, capabilities, and the config hash, recomputed
from the manifest's own block and from the configuration's. The module is --plugin, else the one that --config names, else the built-in one that serves the
provider. Without --config no configuration is looked at.

The exit code is 0 when everything agrees, 8 when something differs (each difference is a line), and 2 for a file that is no run manifest, or of another
version.`

func (a *app) manifestCommand() *cobra.Command {
	show := func(cmd *cobra.Command, _ []string) error {
		return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
			m, err := d.Manifest(ctx)
			if err != nil {
				return err
			}
			return a.out.value(m)
		})
	}
	cmd := &cobra.Command{Use: "manifest", Short: "Show the run manifest, or verify one", Long: manifestHelp,
		Args: noSuchCommand, RunE: show}
	cmd.AddCommand(&cobra.Command{Use: "show", Short: "Show the run manifest of the slot", Long: manifestHelp,
		Args: cobra.NoArgs, RunE: show})
	cmd.AddCommand(&cobra.Command{Use: "scopes", Short: "List all scopes of the slot, each as a JSON line",
		Long: "Lists all scopes of what serves, with the backend's names for them and how many events are open in each: " +
			"a JSON object on\neach line, in no particular order. The run manifest has 100 of them at most, and counts the " +
			"others.",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDoor(cmd.Context(), func(ctx context.Context, d *door) error {
				lister, ok := d.Contract.(scopeLister)
				if !ok {
					return abi.NewError(abi.CodeUnsupported, "this slot lists no scopes")
				}
				return eachScope(ctx, lister, func(s *report.ListedScope) error {
					a.out.print("%s\n", abi.Marshal(&wire.ListedScope{Scope: s.Scope, Generation: s.Generation,
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

// scopeLister lists the scopes of a slot: the slot itself, or a client of it.
type scopeLister interface {
	ListScopes(ctx context.Context, q report.ScopeQuery) (*report.ScopePage, error)
}

// eachScope visits all scopes of a slot.
func eachScope(ctx context.Context, of scopeLister, visit func(*report.ListedScope) error) error {
	q := report.ScopeQuery{Limit: report.MaxPage}
	for {
		page, err := of.ListScopes(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Scopes {
			if err := visit(&page.Scopes[i]); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// maxRunManifest bounds a manifest that is read, in bytes.
const maxRunManifest = 64 << 20

func (a *app) verifyManifest(path, plugin string) error {
	text, err := readFile(path, maxRunManifest)
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
	differences, err := host.VerifyManifest(m, found.info, config)
	if err != nil {
		return err
	}
	if a.out.json {
		if differences == nil {
			differences = []report.ManifestDifference{}
		}
		if err := a.out.object(map[string]any{"agrees": len(differences) == 0, "differences": differences,
			"module": found.source, "config": a.flags.config}); err != nil {
			return err
		}
	} else {
		for _, d := range differences {
			a.out.print("%s: %s: the manifest says %s, found %s\n", d.Against, d.Field, printable(d.Manifest),
				printable(d.Found))
		}
		if len(differences) == 0 {
			against := "module " + sourceText(found.source)
			if config != nil {
				against += " and configuration " + a.flags.config
			}
			a.out.print("agrees: %s, with %s\n", path, printable(against))
		}
	}
	if len(differences) > 0 {
		return &doneError{exitDiffers}
	}
	return nil
}

// toVerify finds what a manifest is compared with.
func (a *app) toVerify(m *abi.RunManifest, plugin string) (found *module, config *host.ProviderConfig, err error) {
	if plugin != "" {
		if found, err = a.openModule(plugin, isFile(plugin)); err != nil {
			return nil, nil, err
		}
	}
	if a.flags.config != "" {
		c, err := a.config()
		if err != nil {
			return nil, nil, err
		}
		if found == nil {
			if found, err = a.resolve(c); err != nil {
				return nil, nil, err
			}
		}
		p := providerConfig(c, found)
		config = &p
	}
	if found == nil {
		if found, err = a.openModule(m.Provider, false); err != nil {
			e := *abi.AsError(err)
			e.Hint = "name the module: --plugin FILE"
			return nil, nil, &e
		}
	}
	return found, config, nil
}

// isFile tells a module's file from the name of a built-in one and from a module in a registry.
func isFile(plugin string) bool {
	return !registry.IsReference(plugin) && (strings.ContainsAny(plugin, `/\`) || strings.HasSuffix(plugin, ".wasm"))
}
