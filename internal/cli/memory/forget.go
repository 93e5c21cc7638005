package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
)

const forgetHelp = `Removes some of what a scope's memory holds: single events, a session, a range of time, or the
provider's own items. The archive loses it too, and recording it again is refused (conflict, reason forgotten). On a terminal it asks first;
elsewhere it wants --yes. Asked again it goes on.

It prints what was removed, and what may remain and why: what the provider made of it, a provider that has no forget,
one that had it before a swap. "outside" are copies that the slot cannot reach, such as a database's files. Backups,
cassettes, logs and folders of runs are files of yours that it does not touch.

--persona erases all of a user's memory: every scope that the data folder knows of them is reset, by the provider that
serves or by one that served before a swap, which is opened with the configuration that it had; the archive loses their
events.

The exit code is 0 when all is removed, 3 while it is in progress, and 1 when something remains or may remain.`

// forgetFlags say what is to be forgotten.
type forgetFlags struct {
	events, native             []string
	session, from, to, because string
	persona                    string
}

func (a *commands) forgetCommand() *cobra.Command {
	var s cli.ScopeFlags
	var f forgetFlags
	var yes bool
	cmd := &cobra.Command{
		Use: "forget", Short: "Remove some of a scope's memory", Long: forgetHelp, Args: cobra.NoArgs,
		Example: `  memhost forget --event e-17 --event e-18 --reason "asked by ann"
  memhost forget --session s4 --yes
  memhost forget --persona ann --yes
  memhost forget --from 2026-03-01T00:00:00Z --to 2026-03-02T00:00:00Z --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.persona != "" {
				return a.forgetPersonaCommand(cmd, &s, &f, yes)
			}
			if f.choices() != 1 {
				return cli.UsageError("forget: want exactly one of --event, --session, --from with --to, and --native-id",
					"--persona NAME erases all that is held of a user")
			}
			if err := s.Complete(a.App); err != nil {
				return err
			}
			r := &abi.ForgetRequest{Scope: s.Scope(), EventIDs: f.events, SessionID: f.session, From: f.from, To: f.to,
				NativeIDs: f.native, Reason: f.because}
			if err := r.Validate(); err != nil {
				return cli.UsageError(abi.AsError(err).Message, "")
			}
			if !yes && !cli.IsTerminal(a.Stdin) {
				return cli.UsageError("forget removes "+describeSelection(r)+" of run "+cli.Quote(s.Run)+", user "+cli.Quote(s.User)+
					" and cannot ask here", "say --yes if that is meant")
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				return a.forget(ctx, d, r, yes)
			})
		},
	}
	s.Add(cmd.Flags())
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(name) // here --persona is not --user but means everything held of a person
	})
	cmd.Flags().StringArrayVar(&f.events, "event", nil, "an event id; repeatable")
	cmd.Flags().StringVar(&f.session, "session", "", "all events of a session up to now")
	cmd.Flags().StringVar(&f.from, "from", "", "with --to: events of that time, both ends included (RFC 3339)")
	cmd.Flags().StringVar(&f.to, "to", "", "see --from")
	cmd.Flags().StringArrayVar(&f.native, "native-id", nil, "an id of the provider's own; repeatable")
	cmd.Flags().StringVar(&f.persona, "persona", "", "all of a user's memory: every provider that the data folder knows "+
		"for them, and the archive; of all runs, unless --run is given")
	cmd.Flags().StringVar(&f.because, "reason", "", "why, for the provider's records")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// choices counts the ways in which the flags say what to forget.
func (f *forgetFlags) choices() (n int) {
	for _, is := range []bool{len(f.events) > 0, f.session != "", f.from+f.to != "", len(f.native) > 0} {
		if is {
			n++
		}
	}
	return n
}

// describeSelection describes what a request forgets.
func describeSelection(r *abi.ForgetRequest) string {
	switch {
	case len(r.EventIDs) > 0:
		return cli.Count(len(r.EventIDs), "event")
	case r.SessionID != "":
		return "session " + cli.Quote(r.SessionID)
	case len(r.NativeIDs) > 0:
		return cli.Count(len(r.NativeIDs), "native item")
	}
	return "what happened from " + r.From + " to " + r.To
}

func (a *commands) forget(ctx context.Context, d *cli.Door, r *abi.ForgetRequest, yes bool) error {
	if !yes {
		m, err := d.Manifest(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out.Stderr, "Forget %s in %s (%s), run %s, user %s? Type yes: ", describeSelection(r), m.Provider, d.Where(),
			cli.Quote(r.Scope.RunID), cli.Quote(r.Scope.PersonaID))
		if err := a.confirmed(ctx, "nothing was forgotten"); err != nil {
			return err
		}
	}
	receipt, err := d.Forget(ctx, r)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if err := a.Out.Value(receipt); err != nil {
			return err
		}
	} else {
		a.showForgotten(r.Scope, receipt)
		a.TellNearScopes(ctx, d, r.Scope)
		if len(r.NativeIDs) > 0 {
			a.Out.Note("  %s", "no event is forgotten by a native id: an archive and shadows still have what was said; "+
				"--event forgets it")
		}
	}
	return forgetExit(receipt.Status, receipt.DerivedMayRemain)
}

// confirmed reads the answer to a question. Any answer but yes ends the command with a note.
func (a *commands) confirmed(ctx context.Context, otherwise string) error {
	answer, err := a.ask(ctx)
	if err != nil {
		return err
	}
	if answer != "yes" {
		a.Out.Note("%s", otherwise)
		return cli.Done(cli.ExitFailed)
	}
	return nil
}

// forgetExit returns the exit code for the status of a forgetting, and for what may remain.
func forgetExit(status abi.ForgetStatus, mayRemain []string) error {
	switch {
	case status == abi.ForgetInProgress:
		return cli.Done(cli.ExitRetry)
	case status == abi.ForgetDone && len(mayRemain) == 0:
		return nil
	}
	return cli.Done(cli.ExitFailed)
}

// showRemains prints what may remain, and what the slot cannot reach.
func (a *commands) showRemains(mayRemain, outside []string) {
	for _, what := range mayRemain {
		a.Out.Print("  may remain: %s\n", what)
	}
	for _, what := range outside {
		a.Out.Print("  outside: %s\n", what)
	}
}

// forgetPersonaCommand implements --persona.
func (a *commands) forgetPersonaCommand(cmd *cobra.Command, s *cli.ScopeFlags, f *forgetFlags, yes bool) error {
	if len(f.events)+len(f.native) > 0 || f.session+f.from+f.to != "" || s.User != "" {
		return cli.UsageError("--persona erases all of a user's memory: no other choice goes with it but --run",
			"say --persona alone, or --user with --event, --session, --from with --to, or --native-id")
	}
	if !yes && !cli.IsTerminal(a.Stdin) {
		return cli.UsageError("forget erases all that is held of user "+cli.Quote(f.persona)+" and cannot ask here",
			"say --yes if that is meant")
	}
	r := &report.PersonaRequest{PersonaID: f.persona, RunID: s.Run, Reason: f.because}
	return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
		return a.forgetPersona(ctx, d, r, yes)
	})
}

// idsShown is the most ids of a kind that are printed.
const idsShown = 50

func (a *commands) showForgotten(scope abi.MemoryScope, r *abi.ForgetReceipt) {
	a.Out.Print("%s\n", r.Status)
	nothing := len(r.DerivedMayRemain) == 0
	for _, kind := range slices.Sorted(maps.Keys(r.Removed)) {
		if ids := r.Removed[kind]; len(ids) > 0 {
			more := ""
			if n := len(ids) - idsShown; n > 0 {
				ids, more = ids[:idsShown], fmt.Sprintf(" and %d more (--json names all)", n)
			}
			a.Out.Print("  removed: %s: %s%s\n", kind, strings.Join(ids, " "), more)
			nothing = false
		}
	}
	if nothing && r.Status == abi.ForgetDone {
		a.Out.Note("  nothing of that was there, in run %s, user %s; --run and --user name another scope",
			cli.Quote(scope.RunID), cli.Quote(scope.PersonaID))
	}
	a.showRemains(r.DerivedMayRemain, r.Outside)
}
