package cli

import (
	"github.com/spf13/cobra"
)

const configHelp = `Prints the effective configuration: defaults, then the file, then the environment, then flags, each laid over the one before. Of the native blocks only
the chosen one is shown, and credentials never. What is printed is a configuration that means the same.`

func (a *app) configCommand() *cobra.Command {
	var origins bool
	cmd := &cobra.Command{
		Use: "config", Short: "Show the effective configuration", Long: configHelp, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.showConfig(origins) },
	}
	cmd.Flags().BoolVar(&origins, "origins", false, "say of each value where it came from")
	addConfigFlags(cmd.Flags())
	return cmd
}

func (a *app) showConfig(origins bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if _, err := a.resolveChecked(c); err != nil {
		return err
	}
	if !a.out.json {
		_, err := a.out.stdout.Write(c.YAML(origins))
		return err
	}
	if !origins {
		return a.out.object(c.Blanked())
	}
	from := map[string]string{}
	for _, path := range c.Paths() {
		from[path] = c.Source(path).String()
	}
	return a.out.object(map[string]any{"config": c.Blanked(), "origins": from})
}
