package native

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/declared"
	"github.com/memhost/memhost/internal/text/convert"
)

// addNames adds declarations below query or mutate, by their names.
func (a *commands) addNames(parent *cobra.Command, k *kind, list []abi.NativeDecl) {
	for i := range list {
		if d := &list[i]; !has(parent, d.Name) {
			parent.AddCommand(a.declaredCommand(k, d, d.Name, &abi.NativeCommand{}))
		}
	}
}

// addCommands adds declarations under the names that they declare for the command line. A name that is taken stays as
// it is: memhost's own commands take precedence, then the first declaration.
func (a *commands) addCommands(root *cobra.Command, of *declarations) {
	mine := map[*cobra.Command]bool{}
	for _, k := range []*kind{query, mutation} {
		list := k.of(of)
		for i := range list {
			d := &list[i]
			c, err := d.ReadCommand()
			if err != nil { // it has none, or one of a later form
				continue
			}
			parent := root
			if len(c.Words) > 1 {
				parent = child(root, c.Words[0])
				if parent == nil {
					parent = group(c.Words[0])
					mine[parent] = true
					root.AddCommand(parent)
				} else if !mine[parent] {
					continue
				}
			}
			last := c.Words[len(c.Words)-1]
			if has(parent, last) {
				continue
			}
			cmd := a.declaredCommand(k, d, last, c)
			if parent == root {
				cmd.GroupID = cli.GroupUse
			}
			parent.AddCommand(cmd)
		}
	}
}

// group returns a command that only has subcommands.
func group(name string) *cobra.Command {
	return &cobra.Command{Use: name, GroupID: cli.GroupUse, Short: "Declared by the module: see `memhost " + name + " --help`",
		Args: cli.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
}

// declaredCommand makes the command for a declaration. Its texts are the module's.
func (a *commands) declaredCommand(k *kind, d *abi.NativeDecl, name string, as *abi.NativeCommand) *cobra.Command {
	c := &call{commands: a, kind: k, decl: *d, alone: len(as.Words) > 0}
	about := declared.Text(d.About, declared.MaxAbout)
	short := strings.TrimRight(about, ".")
	if short == "" {
		short = "Declared by the module, without a description"
	}
	use, least := name, 0
	for _, arg := range as.Args {
		word := strings.ToUpper(arg.Param)
		if arg.File {
			word = "FILE"
		}
		if arg.Optional {
			word = "[" + word + "]"
		} else {
			least++
		}
		use += " " + word
	}
	takes := cobra.RangeArgs(least, len(as.Args))
	if len(as.Args) == 0 {
		takes = cobra.NoArgs
	}
	cmd := &cobra.Command{Use: use, Short: short, Long: about, Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := map[string]abi.Raw{}
			for i, arg := range args {
				if err := c.argument(as.Args[i], arg, given); err != nil {
					return err
				}
			}
			return c.run(cmd.Context(), given)
		}}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return cli.WrapUsage(cmd, err)
		}
		return nil
	}
	c.addFlags(cmd)
	c.addParams(cmd, as)
	return cmd
}

// call is a command that runs a query or a mutation.
type call struct {
	*commands
	kind *kind
	decl abi.NativeDecl
	// alone prints the result without its trace with --json, as commands with names of their own do.
	alone bool

	scope                  cli.ScopeFlags
	params, reason, output string
	oneline                bool
	values                 map[string]*value
}

// argument adds a positional argument to the parameters.
func (c *call) argument(arg abi.NativeArg, text string, given map[string]abi.Raw) error {
	if !arg.File {
		v := &value{kind: declared.KindAny}
		for _, p := range declared.Params(&c.decl) {
			if p.Name == arg.Param {
				v.kind = p.Kind
			}
		}
		if err := v.Set(text); err != nil {
			return cli.UsageError(strings.ToUpper(arg.Param)+": "+err.Error(), "")
		}
		given[arg.Param] = v.raw
		return nil
	}
	content, err := cli.ReadFile(text, maxFile)
	if err == nil {
		content, err = io.ReadAll(convert.UTF8(bytes.NewReader(content)))
	}
	if err != nil {
		return err
	}
	if !abi.ValidJSON(content) {
		return cli.UsageError(text+": not JSON", "")
	}
	given[arg.Param] = content
	return nil
}

// maxFile is the largest file that is a parameter, in bytes.
const maxFile = 64 << 20

// run sends the request, with the given arguments and the flags.
func (c *call) run(ctx context.Context, given map[string]abi.Raw) error {
	params, err := paramsOf(c.params)
	if err != nil {
		return err
	}
	for name, v := range c.values {
		if v.raw != nil {
			given[name] = v.raw
		}
	}
	for name, v := range given {
		if params == nil {
			params = map[string]abi.Raw{}
		}
		params[name] = v
	}
	c.Begins = c.kind == mutation
	if err := c.scope.Complete(c.App); err != nil {
		return err
	}
	ask := c.query
	if c.kind == mutation {
		ask = c.mutate
	}
	if c.output == "" {
		return ask(ctx, params)
	}
	var text bytes.Buffer
	to := c.Out.Stdout
	c.Out.Stdout = &text
	err = ask(ctx, params)
	c.Out.Stdout = to
	if text.Len() == 0 {
		return err
	}
	if failed := os.WriteFile(c.output, text.Bytes(), 0o600); failed != nil {
		return cli.FileError(c.output, failed)
	}
	return err
}

func (c *call) query(ctx context.Context, params map[string]abi.Raw) error {
	q := &abi.NativeQuery{Scope: c.scope.Scope(), Name: c.decl.Name, Params: params}
	if err := q.Validate(); err != nil {
		return err
	}
	return c.WithDoor(ctx, func(ctx context.Context, d *cli.Door) error {
		r, err := d.NativeQuery(ctx, q)
		if abi.CodeOf(err) == abi.CodeNotFound {
			c.TellNearScopes(ctx, d, q.Scope)
		}
		if err != nil {
			return err
		}
		if len(r.Result) == 0 {
			r.Result = abi.Raw("null")
		}
		switch {
		case c.Out.JSON && !c.alone:
			err = c.Out.Value(r)
		case c.Out.JSON:
			err = c.Out.Raw(r.Result)
		default:
			err = c.show(r.Result)
			c.TellNearScopes(ctx, d, q.Scope)
		}
		return c.verdict(r.Result, err)
	})
}

func (c *call) mutate(ctx context.Context, params map[string]abi.Raw) error {
	m := &abi.NativeMutation{Scope: c.scope.Scope(), Name: c.decl.Name, Params: params, Reason: c.reason}
	if err := m.Validate(); err != nil {
		return err
	}
	return c.WithDoor(ctx, func(ctx context.Context, d *cli.Door) error {
		r, err := d.NativeMutation(ctx, m)
		if err != nil {
			return err
		}
		if c.Out.JSON {
			err = c.Out.Value(r)
		} else {
			err = c.showChange(r)
		}
		if r.Status == string(abi.StatusSkippedReadOnly) {
			return cli.Done(cli.ExitRefused)
		}
		return c.verdict(details(r), err)
	})
}

// details returns what a receipt reports beyond its status, as an object.
func details(r *abi.MutationReceipt) abi.Raw {
	if r.Trace == nil || len(r.Trace.Details) == 0 {
		return abi.Raw("{}")
	}
	text, _ := json.Marshal(r.Trace.Details) // of JSON that was decoded
	return text
}

// paramsOf parses the flag --params: a JSON object, or nothing. It is parsed as part of a request, so that mistakes are
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
