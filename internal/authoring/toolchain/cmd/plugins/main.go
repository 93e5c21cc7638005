// Command plugins builds the modules under plugins/ and checks the committed ones.
// `make plugins` and `tools/plugins` run it; see package toolchain.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/authoring/toolchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugins:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "plugins",
		Short:         "build the modules under plugins/ and check the committed ones",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(bootstrapCommand(), buildCommand(), checkCommand(), lockCheckCommand())
	return root
}

func bootstrapCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "bootstrap",
		Short: "make the TinyGo that committed modules are built with",
		Long: "Makes the TinyGo that committed modules are built with, in $" + toolchain.EnvFolder +
			" or the user's cache folder, and installs Debian's packages for it where it may.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := toolchain.FindRoot(".")
			if err != nil {
				return err
			}
			tinygo, err := toolchain.Bootstrap(cmd.Context(), root, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), tinygo.ID())
			return err
		},
	}
}

func buildCommand() *cobra.Command {
	var b toolchain.Builder
	cmd := &cobra.Command{
		Use:   "build [module...]",
		Short: "build what changed, note it in plugins/modules.lock, print the sizes",
		Long: "Builds the modules whose sources, recipe or toolchain changed (all, or those named) and notes them in " +
			"plugins/modules.lock.\n" +
			"$" + toolchain.EnvTinyGo + " names another TinyGo for development; what it builds is marked in the lock " +
			"and must not be committed.",
		RunE: func(cmd *cobra.Command, names []string) error {
			return build(cmd, &b, names)
		},
	}
	cmd.Flags().BoolVarP(&b.Force, "force", "f", false, "build modules that are up to date, too")
	cmd.Flags().IntVarP(&b.Jobs, "jobs", "j", 2, "modules built at a time")
	cmd.Flags().StringVarP(&b.Out, "out", "o", "",
		"folder for the built modules; leaves the committed ones and the lock alone")
	return cmd
}

func build(cmd *cobra.Command, b *toolchain.Builder, names []string) error {
	modules, err := chosen(b, names)
	if err != nil {
		return err
	}
	b.Log = cmd.ErrOrStderr()
	if command := os.Getenv(toolchain.EnvTinyGo); command != "" {
		b.Compiler, err = toolchain.Development(cmd.Context(), command)
	} else {
		b.Compiler, err = toolchain.Bootstrap(cmd.Context(), b.Root, b.Log)
	}
	if err != nil {
		return err
	}
	b.Script = &toolchain.Script{Log: b.Log}
	results, err := b.Build(cmd.Context(), modules)
	return errors.Join(toolchain.PrintTable(cmd.OutOrStdout(), results), err)
}

func checkCommand() *cobra.Command {
	var b toolchain.Builder
	cmd := &cobra.Command{
		Use:   "check [module...]",
		Short: "rebuild everything and compare with the committed modules byte for byte",
		RunE: func(cmd *cobra.Command, names []string) error {
			return check(cmd, &b, names)
		},
	}
	cmd.Flags().IntVarP(&b.Jobs, "jobs", "j", 2, "modules built at a time")
	return cmd
}

func check(cmd *cobra.Command, b *toolchain.Builder, names []string) (err error) {
	if command := os.Getenv(toolchain.EnvTinyGo); command != "" {
		return fmt.Errorf("%s=%s is set, but committed modules are compared with what the bootstrapped TinyGo gives: "+
			"unset it", toolchain.EnvTinyGo, command)
	}
	modules, err := chosen(b, names)
	if err != nil {
		return err
	}
	b.Log = cmd.ErrOrStderr()
	tinygo, err := toolchain.Bootstrap(cmd.Context(), b.Root, b.Log)
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "memhost-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	b.Compiler, b.Script = tinygo.WithCache(cache), &toolchain.Script{Log: b.Log}
	return errors.Join(b.Check(cmd.Context(), modules), toolchain.CheckLock(b.Root))
}

func lockCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lock-check",
		Short: "compare sources and committed modules with plugins/modules.lock; needs Go alone",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := toolchain.FindRoot(".")
			if err != nil {
				return err
			}
			return toolchain.CheckLock(root)
		},
	}
}

// chosen fills the builder's root and finds the modules that the command is about.
func chosen(b *toolchain.Builder, names []string) ([]toolchain.Module, error) {
	root, err := toolchain.FindRoot(".")
	if err != nil {
		return nil, err
	}
	b.Root = root
	modules, err := toolchain.FindModules(root)
	if err != nil {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, errors.New("no module under plugins/, want a folder with a manifest.json and a main.go")
	}
	return toolchain.Select(modules, names)
}
