package native

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

const mutateHelp = `Makes one of the provider's own changes by name, in its own words. Prints the status (applied, no_change, rejected) and what the provider says of it; with
--json the whole receipt. --params is a JSON object. The names and their parameters are in the provider's page, and in the error for a wrong one.

The exit code is 4 where the slot or the scope is read-only.`

func (a *commands) mutateCommand() *cobra.Command {
	var f cli.ScopeFlags
	var params, reason string
	cmd := &cobra.Command{
		Use: "mutate NAME", Short: "Make one of the provider's own changes", Long: mutateHelp, Args: cobra.ExactArgs(1),
		Example: `  memhost mutate delete_memory --params '{"memory_id": "6f1c"}' --reason "asked for by ann" --run r1 --user ann`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Begins = true
			if err := f.Complete(a.App); err != nil {
				return err
			}
			given, err := paramsOf(params)
			if err != nil {
				return err
			}
			m := &abi.NativeMutation{Scope: f.Scope(), Name: args[0], Params: given, Reason: reason}
			if err := m.Validate(); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				return a.ledgerChange(ctx, d, m)
			})
		},
	}
	f.Add(cmd.Flags())
	cmd.Flags().StringVar(&params, "params", "", "the change's parameters, a JSON object")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the provider's records")
	return cmd
}

// paramsOf reads the flag --params: a JSON object, or nothing. It is read as a part of a request, so that mistakes are
// reported in the contract's words.
func paramsOf(text string) (map[string]abi.Raw, error) {
	if text == "" {
		return nil, nil
	}
	if !abi.ValidJSON([]byte(text)) {
		return nil, cli.UsageError("--params: not JSON", "want a JSON object")
	}
	q := new(abi.NativeQuery)
	err := abi.UnmarshalStrict([]byte(`{"scope":{"run_id":"","persona_id":""},"name":"","params":`+text+`}`), q)
	if err != nil {
		return nil, cli.UsageError("--params: "+abi.AsError(err).Message, "want a JSON object")
	}
	return q.Params, nil
}

const queryHelp = `Asks one of the provider's own read queries by name, and prints the backend's answer as it came. For diagnosis: it never goes into a prompt. --params is a
JSON object. With --json the whole answer is printed, with its trace.`

func (a *commands) queryCommand() *cobra.Command {
	var f cli.ScopeFlags
	var params string
	cmd := &cobra.Command{
		Use: "query NAME", Short: "Ask one of the provider's own queries", Long: queryHelp, Args: cobra.ExactArgs(1),
		Example: `  memhost query edges_of --params '{"node": "Zorvex"}' --run r1 --user ann`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Complete(a.App); err != nil {
				return err
			}
			given, err := paramsOf(params)
			if err != nil {
				return err
			}
			q := &abi.NativeQuery{Scope: f.Scope(), Name: args[0], Params: given}
			if err := q.Validate(); err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				r, err := d.NativeQuery(ctx, q)
				if err != nil {
					return err
				}
				if a.Out.JSON {
					return a.Out.Value(r)
				}
				if len(r.Result) == 0 {
					r.Result = abi.Raw("null")
				}
				return a.Out.Raw(r.Result)
			})
		},
	}
	f.Add(cmd.Flags())
	cmd.Flags().StringVar(&params, "params", "", "the query's parameters, a JSON object")
	return cmd
}
