package native

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

const dreamHelp = `Runs Dream, and shows and undoes what it changed: layered_memory's own queries and mutations by their usual names. Nanobot has them as /dream, /dream-log and
/dream-restore.`

// dreamCommand is the command line of Dream, the part of layered_memory that edits files.
func (a *commands) dreamCommand() *cobra.Command {
	root := &cobra.Command{Use: "dream", Short: "Run Dream, and show and undo its changes (layered_memory)",
		Long: dreamHelp,
		Args: cli.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	root.AddCommand(
		a.dreamVerb("run", "Run Dream now", cobra.NoArgs, func(ctx context.Context, d *cli.Door, s abi.MemoryScope,
			_ []string) error {
			return a.ledgerChange(ctx, d, &abi.NativeMutation{Scope: s, Name: "dream", Reason: "memhost dream run"})
		}),
		a.dreamVerb("log [SHA]", "Show the newest change of Dream, or the given one", cobra.MaximumNArgs(1), a.dreamLog),
		a.dreamVerb("versions", "List the last ten versions, newest first", cobra.NoArgs, a.dreamVersions),
		a.dreamVerb("diff FROM [TO]", "Show what differs between two versions; TO is the newest unless given",
			cobra.RangeArgs(1, 2), a.dreamDiff),
		a.dreamVerb("restore SHA", "Rewind the files to before a version, for good; later changes go, too", cobra.ExactArgs(1),
			func(ctx context.Context, d *cli.Door, s abi.MemoryScope, args []string) error {
				return a.ledgerChange(ctx, d, &abi.NativeMutation{Scope: s, Name: "dream_restore",
					Params: map[string]abi.Raw{"sha": quoted(args[0])}, Reason: "memhost dream restore"})
			}),
		a.dreamVerb("sessions [NAME]", "List the runs that are kept, or show what was said in one", cobra.MaximumNArgs(1),
			a.dreamSessions))
	return root
}

// dreamVerb is a verb that works in one scope.
func (a *commands) dreamVerb(use, short string, check cobra.PositionalArgs,
	do func(ctx context.Context, d *cli.Door, s abi.MemoryScope, args []string) error) *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return cli.WrapUsage(cmd, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *cli.Door) error {
				return do(ctx, d, f.Scope(), args)
			})
		}}
	f.Add(cmd.Flags())
	return cmd
}

// dreamAsk asks a native query whose parameters are texts. With --json it prints the answer, otherwise it reads it
// into answer; done is true where nothing is left to print.
func (a *commands) dreamAsk(ctx context.Context, d *cli.Door, s abi.MemoryScope, name string, params map[string]string,
	answer any) (done bool, err error) {
	q := &abi.NativeQuery{Scope: s, Name: name, Params: map[string]abi.Raw{}}
	for key, value := range params {
		if value != "" {
			q.Params[key] = quoted(value)
		}
	}
	r, err := d.NativeQuery(ctx, q)
	if err != nil {
		return true, err
	}
	if a.Out.JSON {
		return true, a.Out.Raw(r.Result)
	}
	if err := json.Unmarshal(r.Result, answer); err != nil {
		return true, abi.NewError(abi.CodeBackend, name+": "+err.Error())
	}
	return false, nil
}

// dreamVersion is one version of the files.
type dreamVersion struct {
	SHA, Time, Subject, Summary, Diff string
	Undone                            bool
}

func (v *dreamVersion) line() string {
	line := shortID(v.SHA) + "  " + v.Time + "  " + v.Subject
	if v.Undone {
		line += " (undone)"
	}
	return line
}

func (a *commands) dreamLog(ctx context.Context, d *cli.Door, s abi.MemoryScope, args []string) error {
	var v dreamVersion
	done, err := a.dreamAsk(ctx, d, s, "dream_log", map[string]string{"sha": at(args, 0)}, &v)
	if done {
		return err
	}
	a.Out.Print("%s\n", v.line())
	if v.Summary != "" {
		a.Out.Print("\nThe model said:\n%s\n", inset(v.Summary))
	}
	a.Out.Print("\n%s\n", strings.TrimRight(v.Diff, "\n"))
	return nil
}

func (a *commands) dreamVersions(ctx context.Context, d *cli.Door, s abi.MemoryScope, _ []string) error {
	var list []dreamVersion
	done, err := a.dreamAsk(ctx, d, s, "dream_restore", nil, &list)
	if done {
		return err
	}
	for i := range list {
		a.Out.Print("%s\n", list[i].line())
	}
	if len(list) == 0 {
		a.Out.Note("Dream has changed nothing yet")
	}
	return nil
}

func (a *commands) dreamDiff(ctx context.Context, d *cli.Door, s abi.MemoryScope, args []string) error {
	var v struct{ From, To, Diff string }
	done, err := a.dreamAsk(ctx, d, s, "dream_diff", map[string]string{"from": args[0], "to": at(args, 1)}, &v)
	if done {
		return err
	}
	a.Out.Print("%s", v.Diff)
	if v.Diff == "" {
		a.Out.Note("%s and %s are the same", shortID(v.From), shortID(v.To))
	}
	return nil
}

func (a *commands) dreamSessions(ctx context.Context, d *cli.Door, s abi.MemoryScope, args []string) error {
	var lines []struct {
		Key, Kind, Reason, Version, Role, Content string
		CreatedAt                                 string `json:"created_at"`
		Calls                                     []struct {
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	done, err := a.dreamAsk(ctx, d, s, "dream_sessions", map[string]string{"name": at(args, 0)}, &lines)
	if done {
		return err
	}
	for _, line := range lines {
		if line.Role == "" {
			version := "no change"
			if line.Version != "" {
				version = "version " + shortID(line.Version)
			}
			a.Out.Print("%s  %s, %s, %s\n", strings.TrimPrefix(line.Key, "dream:"), line.Kind,
				line.Reason, version)
			continue
		}
		a.Out.Print("\n%s:\n", line.Role)
		if line.Content != "" {
			a.Out.Print("%s\n", inset(line.Content))
		}
		for _, call := range line.Calls {
			a.Out.Print("%s\n", inset(call.Function.Name+" "+call.Function.Arguments))
		}
	}
	if len(lines) == 0 {
		a.Out.Note("no run of Dream is kept")
	}
	return nil
}

// at is an argument that may be missing.
func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// inset is a text for a terminal, each line indented by two blanks.
func inset(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
