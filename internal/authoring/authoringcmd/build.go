package authoringcmd

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/authoring/toolchain"
	"github.com/memhost/memhost/internal/cli"
)

const buildHelp = `Builds the plugin in FOLDER (this one by default) and attaches its manifest.json. What comes out is looked at as a slot would look at it, and is written, to -o
or FOLDER/NAME.wasm, only if it passes; NAME is the manifest's.

A Go plugin is compiled with the TinyGo that memhost's own modules are built with. "memhost toolchain" makes it, once, on Debian 12, linux/amd64.
Elsewhere TINYGO=PATH names a TinyGo of yours.

--compiler go compiles with the Go on the PATH instead: nothing has to be made, and the module is some ten times as large. That is for trying out.

A plugin in C is compiled with clang and lld, which are packages of Debian. CLANG=PATH names a clang of yours.

A plugin in AssemblyScript is compiled with what its package-lock.json pins, which npm installs in a folder of your cache, not in yours.`

// The compilers of a Go plugin.
const (
	compilerTinyGo = "tinygo"
	compilerGo     = "go"
)

// reasonToolchain is the error reason for a missing compiler.
const reasonToolchain = "toolchain_missing"

func (a *commands) buildCommand() *cobra.Command {
	var to, compiler string
	cmd := &cobra.Command{
		Use: "build [FOLDER]", Short: "Build a plugin's folder into a module", Long: buildHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.build(cmd.Context(), append(args, ".")[0], to, compiler)
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "where the module goes (default: NAME.wasm in the folder)")
	cmd.Flags().StringVar(&compiler, "compiler", compilerTinyGo, "of a Go plugin: tinygo, or go to try it out")
	return cmd
}

// builtModule is what was built, for --json.
type builtModule struct {
	File     string `json:"file"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	ABI      string `json:"abi"`
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	Compiler string `json:"compiler"`
}

func (a *commands) build(ctx context.Context, dir, to, compiler string) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	manifest, err := readManifest(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return abi.AsError(err).WithHint("a plugin's folder has one; `memhost new NAME` writes a plugin to begin with")
	}
	if err != nil {
		return err
	}
	plugin, err := toolchain.PluginIn(dir)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, err.Error(), err)
	}
	with, err := a.compilerFor(ctx, plugin, compiler)
	if err != nil {
		return err
	}
	wasm, err := toolchain.BuildPlugin(ctx, with, plugin)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, err.Error(), err)
	}
	info, err := host.Inspect(wasm, cli.LookOnly(), cli.Engines()...)
	if err != nil {
		return cli.InFile(dir, err)
	}
	if to == "" {
		to = filepath.Join(dir, manifest.Name+".wasm")
	}
	if err := cli.ReplaceFile(to, wasm); err != nil {
		return err
	}
	built := builtModule{File: to, Name: manifest.Name, Version: manifest.Version, ABI: manifest.ABI,
		SHA256: info.SHA256, Bytes: info.Bytes, Compiler: with.ID()}
	if a.Out.JSON {
		return a.Out.Object(built)
	}
	a.Out.Print("%s %s: %s %s, %s, sha256 %s\n", a.Out.Passed(), to, built.Name, built.Version, cli.Size(built.Bytes),
		built.SHA256[:12])
	return nil
}

func readManifest(path string) (*abi.ModuleManifest, error) {
	text, err := cli.ReadFile(path, cli.MaxManifestFile)
	if err != nil {
		return nil, err
	}
	manifest, _, err := host.ParseManifest(text)
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	return manifest, nil
}

// getClang says how to come by what compiles C.
const getClang = "install clang and lld (Debian: apt-get install clang lld), or name a clang with " + toolchain.EnvClang +
	"=PATH"

// compilerFor finds what a plugin is compiled with.
func (a *commands) compilerFor(ctx context.Context, plugin toolchain.Module, compiler string) (toolchain.Compiler, error) {
	if compiler != compilerTinyGo && compiler != compilerGo {
		return nil, cli.UsageError("--compiler: found "+cli.Quote(compiler)+", want "+compilerTinyGo+" or "+compilerGo, "")
	}
	if plugin.Language == toolchain.C {
		found, err := toolchain.FindClang(ctx)
		if err != nil {
			return nil, missingTool(err.Error(), getClang, err)
		}
		return found, nil
	}
	if plugin.Language == toolchain.AssemblyScript {
		if _, err := exec.LookPath("npm"); err != nil {
			return nil, missingTool("npm is not on the PATH",
				"install Node.js with npm: the compiler of AssemblyScript comes from there", err)
		}
		return &toolchain.Script{Log: a.Out.Stderr}, nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, missingTool("the go command is not on the PATH",
			"install Go 1.26; TinyGo compiles with its standard library", err)
	}
	if compiler == compilerGo {
		found, err := toolchain.FindStandardGo(ctx, plugin.Dir)
		if err != nil {
			return nil, missingTool(err.Error(), "want Go 1.26", err)
		}
		return found, nil
	}
	if command := a.Getenv(toolchain.EnvTinyGo); command != "" {
		found, err := toolchain.Development(ctx, command)
		if err != nil {
			return nil, missingTool(err.Error(), toolchain.EnvTinyGo+" is the path of a TinyGo", err)
		}
		return found, nil
	}
	const others = toolchain.EnvTinyGo + "=PATH names a TinyGo of yours; --compiler go builds with Go alone, to try the plugin out"
	need, err := toolchain.Look(ctx, plugin.Dir)
	if err != nil {
		return nil, missingTool(err.Error(), others, err)
	}
	if need.Made == nil {
		return nil, missingTool("memhost's TinyGo is not on this computer", "`memhost toolchain` makes it, and says first what "+
			"that takes; "+others, nil)
	}
	return need.Made, nil
}

// missingTool is the error for a missing compiler. Trying again does not help.
func missingTool(message, hint string, cause error) error {
	e := abi.WrapError(abi.CodeUnavailable, message, cause).WithReason(reasonToolchain).WithHint(hint)
	e.Retryable = false
	return e
}
