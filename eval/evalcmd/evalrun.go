package evalcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/seat"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/cli"
)

// evalRunFlags are the flags of eval run.
type evalRunFlags struct {
	out, pack                string
	providers                []string
	budgets                  []int64
	replicates, concurrency  int
	yes, dry, faults, noRefs bool
	cassettes                bool
}

func (a *commands) evalRunCommand() *cobra.Command {
	var f evalRunFlags
	cmd := &cobra.Command{Use: "run [LAB.yaml] --out RUN", Short: "Run every provider of a lab file on its pack",
		Args: cobra.MaximumNArgs(1),
		Long: "Runs a lab file, or what the flags say. Before it starts it prints how many events, retrievals, " +
			"native calls and model calls it will make, and asks.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.evalRun(cmd.Context(), &f, args) }}
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "out", "o", "", "the run's folder, which must be new (default: runs/NAME beside the lab "+
		"file)")
	fs.StringVar(&f.pack, "pack", "", "the pack (instead of the lab file's)")
	fs.StringSliceVar(&f.providers, "providers", nil,
		"providers that need no configuration, separated by commas (without a lab file)")
	fs.Int64SliceVar(&f.budgets, "budgets", nil, "max_tokens, separated by commas; 0: no limit")
	fs.IntVar(&f.replicates, "replicates", 0, "how often each provider runs the pack")
	fs.IntVar(&f.concurrency, "concurrency", 0, "personas of a cell side by side; latencies are comparable with 1 only")
	fs.BoolVar(&f.cassettes, "cassettes", false, "record each cell on a cassette, one operation at a time")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fs.BoolVar(&f.dry, "dry-run", false, "count, and end")
	fs.BoolVar(&f.noRefs, "no-references", false, "leave out no_memory, bm25, full_history and recall")
	fs.BoolVar(&f.faults, "allow-faults", false, "run a pack that lint finds fatal faults in; the report says so")
	return cmd
}

// lab returns the lab that file and flags describe.
func (f *evalRunFlags) lab(args []string) (*lab.Lab, error) {
	var l *lab.Lab
	var err error
	if len(args) == 1 {
		l, err = lab.Read(args[0])
	} else {
		if f.pack == "" || len(f.providers) == 0 {
			return nil, cli.UsageError("name a lab file, or --pack and --providers",
				"docs/eval.md has a lab file to begin with")
		}
		// strings can always be marshaled
		text, _ := json.Marshal(map[string]any{"lab": lab.Version, "pack": f.pack, "providers": f.providers})
		l, err = lab.Parse(text)
	}
	if err != nil {
		return nil, err
	}
	if f.pack != "" {
		l.Pack = f.pack
	}
	if f.budgets != nil {
		l.Budgets = f.budgets
	}
	if f.replicates > 0 {
		l.Replicates = f.replicates
	}
	if f.concurrency > 0 {
		l.Concurrency = f.concurrency
	}
	l.Cassettes = l.Cassettes || f.cassettes
	return l, l.Validate()
}

func (a *commands) evalRun(ctx context.Context, f *evalRunFlags, args []string) error {
	l, err := f.lab(args)
	if err != nil {
		return err
	}
	p, err := pack.Open(l.Pack)
	if err != nil {
		return err
	}
	defer p.Close()
	faults, err := run.Lint(p)
	if err != nil && (faults == 0 || !f.faults) {
		return err
	}
	if !f.noRefs {
		l.AddReferences(a.isBuiltin)
	}
	same := func(p lab.Provider) bool { return l.Primary == nil || strings.EqualFold(p.Label, l.Primary.Reference) }
	if !slices.ContainsFunc(l.Providers, same) {
		return cli.UsageError(fmt.Sprintf("primary.reference: the run has no %q", l.Primary.Reference),
			"leave out --no-references, or name it among providers")
	}
	folder := filepath.Dir(l.Pack)
	if len(args) == 1 {
		folder = filepath.Dir(args[0])
	}
	o := a.evalOptions(l, p, folder)
	o.Faults = faults
	modules, unsourced, err := modulesOf(l, o)
	if err != nil {
		return err
	}
	warnings, err := score.CheckPrimary(l, p, unsourced)
	if err != nil {
		return err
	}
	costs, err := a.evalPlan(l, p, modules, warnings)
	if err != nil {
		return err
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := a.agreed(costs); err != nil {
			return err
		}
	}
	out := f.out
	if out == "" {
		out = filepath.Join(filepath.Dir(l.Pack), "runs", l.Name)
	}
	r, err := run.Begin(out, l, l.Pack, p, o)
	if err != nil {
		return err
	}
	return a.evalGo(ctx, out, r, p, o)
}

// configuredProvider is a provider's module with its configuration.
type configuredProvider struct {
	module *host.Module
	config host.ProviderConfig
}

// modulesOf checks the configuration of every provider, and returns their modules by label. unsourced has what the
// providers show that name no source events.
func modulesOf(l *lab.Lab, o run.Options) (modules map[string]*configuredProvider, unsourced map[string]string, err error) {
	modules, unsourced = map[string]*configuredProvider{}, map[string]string{}
	for i := range l.Providers {
		c, err := o.Provider(&l.Providers[i])
		if err != nil {
			return nil, nil, err
		}
		m, err := host.Inspect(c.Module, cli.LookOnly())
		if err != nil {
			return nil, nil, err
		}
		about, err := m.Unsourced(c.Name, c.Word, c.Block)
		if err != nil {
			return nil, nil, err
		}
		label := l.Providers[i].Label
		modules[label], unsourced[label] = &configuredProvider{m, c}, about
	}
	return modules, unsourced, nil
}

// evalPlan prints what the run will do, with warnings about its sealed comparison.
func (a *commands) evalPlan(l *lab.Lab, p *pack.Pack, modules map[string]*configuredProvider, warnings []string) ([]run.Cost, error) {
	costs, err := run.Plan(l, p, func(entry *lab.Provider) bool { return modules[entry.Label].hasBackend() })
	if err != nil {
		return nil, err
	}
	for i := range costs {
		if costs[i].BackendModelCalls, err = modules[costs[i].Label].backendModelCalls(&costs[i]); err != nil {
			return nil, err
		}
	}
	if a.Out.JSON {
		return costs, a.Out.Object(map[string]any{"lab": l, "pack": p.Manifest.Name, "costs": costs, "warnings": warnings})
	}
	a.Out.Note("%s: %s", l.Name, packLine(&p.Manifest))
	w := tabwriter.NewWriter(a.Out.Stderr, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "provider\tevents\tretrievals\ttest sessions\tconversations\tnative calls, at least\tmodel calls of the lab\t")
	for _, c := range costs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.Label, c.Events, c.Retrievals, c.TestSessions, c.Conversations,
			c.NativeCalls, c.ModelCalls)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	for _, w := range warnings {
		a.Out.Note("warning: %s", w)
	}
	for _, c := range costs {
		for _, line := range c.BackendModelCalls {
			a.Out.Note("%s, its backend's own model calls: %s", c.Label, line)
		}
	}
	return costs, nil
}

func (m *configuredProvider) hasBackend() bool { return hasBackend(m.module, m.config.Block) }

// backendModelCalls describes the model calls that the backend makes itself, one line for each declared kind.
func (m *configuredProvider) backendModelCalls(cost *run.Cost) (lines []string, err error) {
	if !m.hasBackend() {
		return nil, nil
	}
	list, declared, err := m.module.ModelCalls(m.config.Name, m.config.Word, m.config.Block)
	if err == nil && !declared {
		lines = []string{"not known: the module's manifest does not say"}
	}
	for i := range list {
		operations, done := map[string]int{abi.OpRecordEvent: cost.Events, abi.OpRetrieve: cost.Retrievals}[list[i].Operation]
		if !done {
			continue // a run forgets nothing and changes nothing by hand
		}
		lines = append(lines, list[i].Operation+", "+list[i].Model+": "+host.ModelCallsText(&list[i], int64(operations)))
	}
	return lines, err
}

// agreed asks for confirmation before a run that may cost money.
func (a *commands) agreed(costs []run.Cost) error {
	paid := false
	for _, c := range costs {
		paid = paid || c.NativeCalls > 0 || c.ModelCalls > 0
	}
	if !paid {
		return nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !a.Out.ErrTTY {
		return cli.UsageError("the run calls backends or models, and nobody can be asked", "say --yes")
	}
	fmt.Fprint(a.Out.Stderr, "Go on? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if strings.ToLower(strings.TrimSpace(answer)) != "y" {
		return cli.Done(cli.ExitRefused)
	}
	return nil
}

// evalGo runs the rest of a run, with progress.
func (a *commands) evalGo(ctx context.Context, folder string, r *rundir.Run, p *pack.Pack, o run.Options) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	if r.Lab.Agent != nil {
		agent, err := model.NewAgent(r.Lab, a.Getenv)
		if err != nil {
			return err
		}
		o.Agent = agent
	}
	if r.Lab.Subject != nil {
		var err error
		if o.Seat, err = seat.New(r.Lab, r.Dir, a.Getenv); err != nil {
			return err
		}
		if r.Lab.Simulator != nil {
			if o.Simulator, err = model.NewUserModel(r.Lab, folder, a.Getenv); err != nil {
				return err
			}
		}
	}
	spans, err := a.evalSpans(&o.Host)
	if err != nil {
		return err
	}
	defer a.endEvalSpans(spans)
	began := a.Now()
	show := a.evalProgress(r)
	o.Progress = show.show
	err = run.Go(traceparent.Accept(ctx, a.Getenv(traceparent.Variable)), folder, r, p, o)
	show.bar.Finish()
	if a.Interrupted {
		a.Out.Note("interrupted; `memhost eval resume %s` goes on", folder)
		return cli.ErrInterrupted
	}
	if err != nil {
		a.evalCells(r)
		if abi.CodeOf(err) != abi.CodeConflict && !r.Lab.Cassettes {
			a.Out.Note("when that is mended, `memhost eval resume %s` goes on at the same place", folder)
		}
		return err
	}
	a.Out.Note("%s %s in %s: %s", a.Out.Passed(), cli.Count(len(r.Cells), "cell"),
		a.Now().Sub(began).Round(100*time.Millisecond), folder)
	return nil
}
