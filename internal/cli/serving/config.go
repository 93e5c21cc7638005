package serving

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
)

const configHelp = `Prints the effective configuration: defaults, then the file, then the environment, then flags, each laid over the one before. Of the native blocks only
the chosen one is shown, and credentials never. What is printed is a configuration that means the same.`

func (a *commands) configCommand() *cobra.Command {
	var origins bool
	cmd := &cobra.Command{
		Use: "config", Short: "Show the effective configuration", Long: configHelp, Args: cli.NoSuchCommand,
		RunE: func(*cobra.Command, []string) error { return a.showConfig(origins) },
	}
	cmd.Flags().BoolVar(&origins, "origins", false, "say of each value where it came from")
	cli.AddConfigFlags(cmd.Flags())
	cmd.AddCommand(a.configSchemaCommand())
	return cmd
}

const configSchemaHelp = `Prints a JSON Schema (draft 2020-12) of the configuration file, with the blocks of the built-in providers, for editors that complete and
check while one types. With a provider's name it prints that of its block alone. Defaults and meanings are in it.

  memhost config schema > memhost.schema.json

and as the first line of memhost.yaml, for editors with yaml-language-server (VS Code with the YAML extension, Neovim, Helix, Zed):

  # yaml-language-server: $schema=./memhost.schema.json`

func (a *commands) configSchemaCommand() *cobra.Command {
	var plugin string
	cmd := &cobra.Command{
		Use: "schema [PROVIDER]", Short: "Print a JSON Schema of the configuration, for editors",
		Long: configSchemaHelp, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.configSchema(args, plugin) },
	}
	cmd.Flags().StringVar(&plugin, "plugin", "", "a module file, whose providers are in the schema, too")
	return cmd
}

func (a *commands) configSchema(args []string, plugin string) error {
	modules := a.Builtins()
	if plugin != "" {
		own, err := a.OpenModule(plugin, !registry.IsReference(plugin))
		if err != nil {
			return err
		}
		modules = append([]*cli.Module{own}, modules...)
	}
	var blocks []config.Block
	var names []string
	for _, m := range modules {
		for _, p := range m.Info.Manifest.Providers {
			if slices.Contains(names, p.Name) { // the one from the file takes precedence over the built-in one
				continue
			}
			names = append(names, p.Name)
			blocks = append(blocks, config.Block{Provider: config.Provider{Name: p.Name, Kind: p.Kind},
				Schema: m.Info.Manifest.ConfigSchema, Preset: p.Preset})
		}
	}
	if len(args) == 0 {
		whole, err := config.EditorSchema(blocks)
		if err != nil {
			return err
		}
		return a.Out.Object(whole)
	}
	i := slices.Index(names, args[0])
	if i < 0 {
		hint := "want one of " + strings.Join(names, ", ") + "; --plugin FILE adds a module of your own"
		if near := abi.Nearest(args[0], names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return cli.UsageError("no provider is called "+cli.Quote(args[0]), hint)
	}
	block, err := config.BlockSchema(blocks[i], "#")
	if err != nil {
		return err
	}
	return a.Out.Object(block)
}

func (a *commands) showConfig(origins bool) error {
	c, err := a.Config()
	if err != nil {
		return err
	}
	if _, err := a.ResolveChecked(c); err != nil {
		return err
	}
	if !a.Out.JSON {
		_, err := a.Out.Stdout.Write(c.YAML(origins))
		return err
	}
	if !origins {
		return a.Out.Object(c.Blanked())
	}
	from := map[string]string{}
	for _, path := range c.Paths() {
		from[path] = c.Source(path).String()
	}
	return a.Out.Object(map[string]any{"config": c.Blanked(), "origins": from})
}
