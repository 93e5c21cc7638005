package registrycmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

const packHelp = `Checks a manifest and attaches it to a module as the custom section memhost.manifest, in place of the one it has. The result is looked at as a slot would
look at it, and is written only if it passes: to -o, or over FILE.`

func (a *commands) packCommand() *cobra.Command {
	var manifest, to string
	cmd := &cobra.Command{
		Use: "pack FILE.wasm --manifest manifest.json", Short: "Attach a manifest to a module", Long: packHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if manifest == "" {
				return cli.UsageError("pack: --manifest is missing", "memhost pack FILE.wasm --manifest manifest.json")
			}
			if to == "" {
				to = args[0]
			}
			return a.pack(cmd.Context(), args[0], manifest, to)
		},
	}
	cmd.Flags().StringVar(&manifest, "manifest", "", "the manifest, a JSON file (required)")
	cmd.Flags().StringVarP(&to, "output", "o", "", "where the packed module goes (default: over FILE)")
	return cmd
}

func (a *commands) pack(ctx context.Context, file, manifestFile, to string) error {
	wasm, err := cli.ReadFile(file, cli.MaxModuleFile)
	if err != nil {
		return err
	}
	text, err := cli.ReadFile(manifestFile, cli.MaxManifestFile)
	if err != nil {
		return err
	}
	if _, _, err := host.ParseManifest(text); err != nil {
		return cli.InFile(manifestFile, err)
	}
	packed, err := wasmbin.SetCustom(wasm, abi.ManifestSection, text)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, file+": "+err.Error(), err)
	}
	info, err := host.Inspect(packed, cli.LookOnly(), cli.Engines()...)
	if err != nil {
		return cli.InFile(file, err)
	}
	if err := cli.ReplaceFile(to, packed); err != nil {
		return err
	}
	if !a.Out.JSON {
		a.Out.Note("%s %s", a.Out.Passed(), to)
	}
	return a.inspect(ctx, &cli.Module{Source: to, Wasm: packed, Info: info})
}
