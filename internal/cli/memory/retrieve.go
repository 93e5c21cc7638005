package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/schema"
)

const retrieveHelp = `Asks the slot what an agent would get for QUERY, and prints that context on standard output: one memory-context element, or nothing. A line on
standard error says where it came from and what it cost. With --json the whole result is printed, with evidence and trace.`

type retrieveFlags struct {
	cli.ScopeFlags
	session, scenario, context, attribute, asOf string
	filters                                     []string
	minTokens, maxTokens, maxItems              int64
}

func (a *commands) retrieveCommand() *cobra.Command {
	var f retrieveFlags
	cmd := &cobra.Command{
		Use: "retrieve QUERY", SuggestFor: []string{"search", "recall"},
		Short: "See what an agent would get", Long: retrieveHelp, Args: oneQuery,
		Example: `  memhost retrieve "What should I order to drink?" --run demo --user mara`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := f.request(a, cmd, args[0])
			if err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				return a.retrieve(ctx, d, request)
			})
		},
	}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "cli", "session id")
	fs.Int64Var(&f.maxTokens, "max-tokens", 0, "the most tokens")
	fs.Int64Var(&f.minTokens, "min-tokens", 0, "tokens wished for; a shortfall is reported")
	fs.Int64Var(&f.maxItems, "max-items", 0, "the most items of the backend")
	fs.StringVar(&f.scenario, "scenario", "", "label: kind of task")
	fs.StringVar(&f.context, "context", "", "label: context, as work or personal")
	fs.StringVar(&f.attribute, "attribute", "", "label: attribute asked for")
	fs.StringVar(&f.asOf, "as-of", "", "answer as memory stood then (RFC 3339); the trace says whether the provider "+
		"could")
	fs.StringArrayVar(&f.filters, "filter", nil, "KEY=VALUE; a value is JSON, or text if it is none (repeatable)")
	return cmd
}

func (f *retrieveFlags) request(a *commands, cmd *cobra.Command, query string) (*abi.RetrieveRequest, error) {
	if err := f.Complete(a.App); err != nil {
		return nil, err
	}
	if err := requireWords(query); err != nil {
		return nil, err
	}
	r := &abi.RetrieveRequest{Query: query, Scope: f.Scope(), SessionID: f.session, Scenario: f.scenario,
		Context: f.context, Attribute: f.attribute, AsOf: f.asOf}
	for _, b := range []struct {
		flag  string
		value int64
		to    **int64
	}{{"min-tokens", f.minTokens, &r.Budget.MinTokens}, {"max-tokens", f.maxTokens, &r.Budget.MaxTokens},
		{"max-items", f.maxItems, &r.Budget.MaxItems}} {
		if !cmd.Flags().Changed(b.flag) {
			continue
		}
		if b.value < 1 {
			return nil, cli.UsageError(fmt.Sprintf("--%s: found %d, want 1 or more", b.flag, b.value),
				"without the flag there is no such limit")
		}
		*b.to = &b.value
	}
	for _, pair := range f.filters {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, cli.UsageError("--filter: found "+cli.Quote(pair)+", want KEY=VALUE", "")
		}
		if r.Filters == nil {
			r.Filters = map[string]abi.Raw{}
		}
		r.Filters[key] = rawValue(value)
	}
	return r, r.Validate()
}

// oneQuery requires the question as one argument.
func oneQuery(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf(`retrieve: want one QUERY, in quotes where it has several words; got %d`, len(args))
}

// requireWords rejects a question without words, usually an empty shell variable. Programs may ask without words over
// HTTP; some providers then return what they hold.
func requireWords(question string) error {
	if strings.TrimSpace(question) == "" {
		return cli.UsageError("the question is empty", "is a variable of the shell unset?")
	}
	return nil
}

// rawValue converts a text to JSON: unchanged if it is valid JSON, otherwise as a string.
func rawValue(text string) abi.Raw {
	if abi.ValidJSON([]byte(text)) {
		return abi.Raw(text)
	}
	return schema.Canonical(text)
}

func (a *commands) retrieve(ctx context.Context, d *cli.Door, request *abi.RetrieveRequest) error {
	result, err := d.Retrieve(ctx, request)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(result)
	}
	if result.FormattedContext != "" {
		a.Out.Print("%s\n", strings.TrimSuffix(result.FormattedContext, "\n"))
	}
	a.Out.Note("%s; %s", cli.Costs(result, d.Where()), cli.ScopeText(request.Scope))
	if result.FormattedContext == "" {
		a.TellNearScopes(ctx, d, request.Scope)
	}
	if result.Trace != nil {
		for _, w := range result.Trace.Warnings {
			a.Out.Note("  warning: %s", w)
		}
	}
	return nil
}
