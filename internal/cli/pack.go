package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

const packHelp = `Checks a manifest and attaches it to a module as the custom section memhost.manifest, in place of the one it has. The result is looked at as a slot would
look at it, and is written only if it passes: to -o, or over FILE.`

func (a *app) packCommand() *cobra.Command {
	var manifest, to string
	cmd := &cobra.Command{
		Use: "pack FILE.wasm --manifest manifest.json", Short: "Attach a manifest to a module", Long: packHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if manifest == "" {
				return usageError("pack: --manifest is missing", "memhost pack FILE.wasm --manifest manifest.json")
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

func (a *app) pack(ctx context.Context, file, manifestFile, to string) error {
	wasm, err := readFile(file, maxModuleFile)
	if err != nil {
		return err
	}
	text, err := readFile(manifestFile, maxManifestFile)
	if err != nil {
		return err
	}
	if _, _, err := host.ParseManifest(text); err != nil {
		return inFile(manifestFile, err)
	}
	packed, err := wasmbin.SetCustom(wasm, abi.ManifestSection, text)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, file+": "+err.Error(), err)
	}
	info, err := host.Inspect(packed, lookOnly(), engines()...)
	if err != nil {
		return inFile(file, err)
	}
	if err := replaceFile(to, packed); err != nil {
		return err
	}
	if !a.out.json {
		a.out.note("%s %s", a.out.passed(), to)
	}
	return a.inspect(ctx, &module{source: to, wasm: packed, info: info})
}

func inFile(path string, err error) error {
	e := *abi.AsError(err)
	e.Message = path + ": " + e.Message
	return &e
}

// replaceFile writes a file in one step. It keeps the mode of the one before.
func replaceFile(path string, content []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fileError(filepath.Dir(path), err)
	}
	if err := wholefile.Write(path, content, mode); err != nil {
		return fileError(path, err)
	}
	return nil
}
