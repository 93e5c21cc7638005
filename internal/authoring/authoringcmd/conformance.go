package authoringcmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

const conformanceHelp = `Checks a provider against the sixteen clauses that every provider must pass, and shows a verdict for each:

  pass            what the clause says was seen
  not_applicable  the manifest declares that it does not apply, and the check saw the same
  pending         the backend did not get ready within --ready-within
  inconclusive    nothing stands against the provider, and nothing proves it
  fail            the provider does something else

The provider is the configured one, or the one of --plugin NAME or FILE; its backend is where its block leads, which may be a real one. The check works in
scopes of its own, on data folders of its own, and resets what it wrote; a slot that runs is not asked. It records some 105 turns: with a backend that
calls an LLM for each, that costs. --clause 1,2 checks less.

--against tiny checks it in front of a backend that this program brings along (memhost backend --help describes it) and starts for the time of the check, on
a free port: every HTTP origin of the block leads there. --against tiny-queue is the same backend where what is recorded waits in a queue first.

A provider that retains nothing is asked in the configured scope (memory.scope), where its block may give it something to say.

When the backend goes away, the report has what was seen until then, and says in which clause the run ended.

The exit code is 0 when every clause is pass or not_applicable, 1 when one fails, 3 when none fails and one is pending or the backend went away, 7 when what
remains is inconclusive.`

// conformanceFlags are the flags of the command.
type conformanceFlags struct {
	clauses []int
	against string
	junit   string
	ready   time.Duration
	query   string
	verbose bool
}

func (a *commands) conformanceCommand() *cobra.Command {
	var f conformanceFlags
	cmd := &cobra.Command{
		Use: "conformance", Short: "Check a provider against the contract, clause by clause", Long: conformanceHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.conformance(cmd.Context(), &f) },
	}
	cmd.Flags().IntSliceVar(&f.clauses, "clause", nil, "check these clauses only, as 3 or 1,2,7 (repeatable)")
	cmd.Flags().StringVar(&f.against, "against", "", "check it in front of tiny or tiny-queue, whatever its block says")
	cmd.Flags().StringVar(&f.junit, "junit", "", "write the report to a file, as JUnit XML")
	cmd.Flags().DurationVar(&f.ready, "ready-within", 30*time.Second,
		"how long a scope may take until what was recorded can be retrieved")
	cmd.Flags().StringVar(&f.query, "query", "What do you know about me?",
		"the question for a provider that retains nothing")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every part of every clause")
	cli.AddConfigFlags(cmd.Flags())
	return cmd
}

func (a *commands) conformance(ctx context.Context, f *conformanceFlags) error {
	if f.ready <= 0 {
		return cli.UsageError("--ready-within: want more than nothing", "for example --ready-within 2m")
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	target, end, err := a.conformanceTarget(c, f)
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	show := !a.Out.JSON
	report, err := conformance.Run(ctx, target, conformance.Options{Clauses: f.clauses, CacheDir: a.CacheDir(),
		Logger: a.Logger(hclog.Error),
		Limits: a.HostOptions(c, nil).Limits, Progress: func(r conformance.ClauseReport) {
			if show {
				a.showClause(&r, f.verbose)
			}
		}})
	if report == nil {
		return err
	}
	ended := err
	if f.junit != "" {
		var text bytes.Buffer
		if err := report.WriteJUnit(&text); err != nil {
			return err
		}
		if err := os.WriteFile(f.junit, text.Bytes(), 0o644); err != nil {
			return cli.FileError(f.junit, err)
		}
	}
	if a.Out.JSON {
		if err := a.Out.Object(report); err != nil {
			return err
		}
	} else {
		a.showConformance(report)
	}
	switch {
	case report.Verdict == conformance.Fail:
		return cli.Done(cli.ExitFailed)
	case ended != nil && a.Out.JSON: // the report says it
		return cli.Done(cli.ExitCode(ended))
	case ended != nil:
		return ended
	case report.Verdict == conformance.Pending:
		return cli.Done(cli.ExitRetry)
	case report.Verdict == conformance.Inconclusive:
		return cli.Done(cli.ExitPartly)
	}
	return nil
}

// conformanceTarget is the configured provider as the kit takes it. end must be called: it ends what --against started.
func (a *commands) conformanceTarget(c *config.Config, f *conformanceFlags) (_ conformance.Target, end func(), err error) {
	m, err := a.Resolve(c)
	if err != nil {
		return conformance.Target{}, nil, err
	}
	provider, end := cli.ProviderConfig(c, m), func() {}
	if f.against != "" {
		if provider.Block, end, err = backendsFor(f.against, m, provider.Block); err != nil {
			return conformance.Target{}, nil, err
		}
	}
	if _, err := m.Info.Check(provider.Name, provider.Word, provider.Block); err != nil {
		end()
		return conformance.Target{}, nil, err
	}
	provider.Smoke, provider.Scope = host.SmokeNever, nil
	scope := c.Scope()
	return conformance.Target{Provider: provider, ReadyWithin: f.ready,
		Known: &conformance.Known{Scope: abi.MemoryScope{RunID: scope.RunID, PersonaID: scope.PersonaID},
			Query: f.query}}, end, nil
}

// showClause prints a clause as it ends: its verdict, and the parts that are not green.
func (a *commands) showClause(r *conformance.ClauseReport, all bool) {
	mark := a.Out.Passed()
	switch r.Verdict {
	case conformance.Fail:
		mark = a.Out.Mark("✗", "no")
	case conformance.Pending, conformance.Inconclusive:
		mark = a.Out.Mark("?", "??")
	}
	a.Out.Print("%s %2d %-14s %6.1f s %5d calls  %s\n", mark, r.Number, r.Verdict, float64(r.MS)/1000,
		r.Cost.NativeCalls, r.Words)
	if r.Declared != "" {
		a.Out.Print("     declared: %s\n", r.Declared)
	}
	for _, p := range r.Parts {
		if all || !p.Verdict.Green() {
			a.Out.Print("     %s: %s: %s\n       %s\n", p.Name, p.Verdict, p.Words, p.Reason)
			if len(p.Resembles) > 0 {
				a.Out.Print("       resembles: %s\n", strings.Join(p.Resembles, "; "))
			}
		}
	}
}

// showConformance prints the sum.
func (a *commands) showConformance(r *conformance.Report) {
	backend := ""
	if r.Backend != "" && r.Backend != r.Provider {
		backend = ", backend " + strings.TrimSpace(r.Backend+" "+r.BackendVersion)
	}
	cost := fmt.Sprintf("%d native calls", r.Cost.NativeCalls)
	if r.Cost.LLMCalls != nil {
		cost += fmt.Sprintf(", %d calls to language models", *r.Cost.LLMCalls)
	}
	a.Out.Print("%s: %s (%s %s, sha256 %s%s) in %.1f s, %s\n", r.Verdict, r.Provider, r.Module, r.Version,
		r.SHA256[:12], backend, float64(r.MS)/1000, cost)
	if r.Ended != "" {
		a.Out.Print("ended before the last clause, %s\n", r.Ended)
	}
	for _, n := range r.Notes {
		a.Out.Print("note: %s\n", n)
	}
}
