// Package native has the commands for what a provider offers beyond the contract: query and mutate with what its module
// declares, export and import.
//
// Reading order: commands.go, declared.go (a declaration becomes a command), values.go (its flags), show.go (its answer).
package native

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// Commands returns the commands for what a provider offers beyond the contract's operations.
func Commands(k *cli.App) []*cobra.Command {
	a := &commands{k}
	k.AddLate(a.addDeclared)
	return cli.InGroup(cli.GroupUse, a.kindCommand(query), a.kindCommand(mutation), a.exportCommand(), a.importCommand())
}

// commands makes and runs the commands of this package.
type commands struct{ *cli.App }

// kind is what distinguishes query from mutate.
type kind struct {
	verb, short, long, example string
	// of selects the declarations of this kind.
	of func(d *declarations) []abi.NativeDecl
}

var query = &kind{verb: "query", short: "Ask one of the provider's own queries", long: queryHelp,
	example: `  memhost query edges_of --params '{"node": "Zorvex"}' --run r1 --user ann`,
	of:      func(d *declarations) []abi.NativeDecl { return d.queries }}

var mutation = &kind{verb: "mutate", short: "Make one of the provider's own changes", long: mutateHelp,
	example: `  memhost mutate delete_memory --params '{"memory_id": "6f1c"}' --reason "asked for by ann" --run r1 --user ann`,
	of:      func(d *declarations) []abi.NativeDecl { return d.mutations }}

const queryHelp = `Asks one of the provider's own read queries by name. For diagnosis: it never goes into a prompt. What the module declares is listed below, each with its
parameters as flags; --params takes them as a JSON object. The answer is shown as the module declares, or as it came. With --json the whole answer is printed, with its trace.`

const mutateHelp = `Makes one of the provider's own changes by name, in its own words. What the module declares is listed below, each with its parameters as flags; --params
takes them as a JSON object. Prints the status (applied, no_change, rejected) and what the provider says of it; with --json the whole receipt.

The exit code is 4 where the slot or the scope is read-only.`

// kindCommand is query or mutate. A name that the module does not declare is still asked for, with --params.
func (a *commands) kindCommand(k *kind) *cobra.Command {
	c := &call{commands: a, kind: k}
	cmd := &cobra.Command{Use: k.verb + " NAME", Short: k.short, Long: k.long, Example: k.example,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.decl.Name = args[0]
			return c.run(cmd.Context(), nil)
		}}
	c.addFlags(cmd)
	return cmd
}

// declarations are what a module declares.
type declarations struct{ queries, mutations []abi.NativeDecl }

// addDeclared adds what the module declares: under query and mutate, and as commands with names of their own.
func (a *commands) addDeclared(ctx context.Context, root *cobra.Command, words []string) {
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	known := slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool {
		return c.Name() == first || c.HasAlias(first)
	})
	if known && first != query.verb && first != mutation.verb && first != "man" {
		return
	}
	if first != "man" { // the page does not depend on the configuration
		found, err := a.declared(ctx, first != "")
		if err != nil { // the command reports it when it runs
			for _, cmd := range root.Commands() {
				if cmd.Name() == first {
					cmd.FParseErrWhitelist.UnknownFlags = true
				}
			}
		}
		for _, k := range []*kind{query, mutation} {
			for _, cmd := range root.Commands() {
				if cmd.Name() == k.verb {
					a.addNames(cmd, k, k.of(found))
				}
			}
		}
		a.addCommands(root, found)
	}
	if a.Modules != nil && (first == "man" || first != "" && !known && !has(root, first)) {
		// Help for a command of a module that does not serve. The serving provider would reject it.
		for _, m := range a.Builtins() {
			a.addCommands(root, &declarations{m.Info.Manifest.NativeQueries, m.Info.Manifest.NativeMutations})
		}
	}
}

func has(parent *cobra.Command, name string) bool { return child(parent, name) != nil }

// child returns the subcommand with that name, nil if there is none.
func child(parent *cobra.Command, name string) *cobra.Command {
	for _, cmd := range parent.Commands() {
		if cmd.Name() == name || cmd.HasAlias(name) {
			return cmd
		}
	}
	return nil
}

// declared returns what the provider of the slot that the command line means declares, or what the configured module
// declares if no slot runs. ask is false for a list of commands, which must not ask a slot.
func (a *commands) declared(ctx context.Context, ask bool) (*declarations, error) {
	found := new(declarations)
	var d *cli.Door
	var err error
	if server := a.ServerNamed(); server != "" {
		if !ask {
			return found, nil
		}
		d, err = a.DialNamed(ctx, server)
	} else {
		c, failed := a.Config()
		if failed != nil {
			return found, failed
		}
		if ask {
			d, err = a.Running(ctx, c)
		}
		if d == nil && err == nil {
			found.queries, found.mutations, err = a.Natives(c)
		}
	}
	if d == nil || err != nil {
		return found, err
	}
	defer d.Close()
	within, cancel := context.WithTimeout(ctx, cli.AnswerWithin)
	defer cancel()
	offered, err := d.Capabilities(within)
	if err == nil {
		found.queries, found.mutations = offered.NativeQueries, offered.NativeMutations
	}
	return found, err
}
