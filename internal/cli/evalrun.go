package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// evalRun are the flags of eval run.
type evalRunFlags struct {
	out, pack                string
	providers                []string
	budgets                  []int64
	replicates, concurrency  int
	yes, dry, faults, noRefs bool
	cassettes                bool
}

func (a *app) evalRunCommand() *cobra.Command {
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
	fs.BoolVar(&f.noRefs, "no-references", false, "leave out no_memory, bm25 and full_history")
	fs.BoolVar(&f.faults, "allow-faults", false, "run a pack that lint finds fatal faults in; the report says so")
	return cmd
}

// lab is the lab that file and flags ask for.
func (f *evalRunFlags) lab(args []string) (*lab.Lab, error) {
	var l *lab.Lab
	var err error
	if len(args) == 1 {
		l, err = lab.Read(args[0])
	} else {
		if f.pack == "" || len(f.providers) == 0 {
			return nil, usageError("name a lab file, or --pack and --providers",
				"docs/eval.md has a lab file to begin with")
		}
		// of strings: cannot fail
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
	if l.Primary != nil {
		if err := score.Known(l.Primary.Metric); err != nil {
			return nil, err
		}
	}
	return l, l.Validate()
}

func (a *app) evalRun(ctx context.Context, f *evalRunFlags, args []string) error {
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
		return usageError(fmt.Sprintf("primary.reference: the run has no %q", l.Primary.Reference),
			"leave out --no-references, or name it among providers")
	}
	folder := filepath.Dir(l.Pack)
	if len(args) == 1 {
		folder = filepath.Dir(args[0])
	}
	o := a.evalOptions(l, p, folder)
	o.Faults = faults
	costs, err := a.evalPlan(l, p, o)
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

// isBuiltin tells whether a provider is carried by this program.
func (a *app) isBuiltin(name string) bool {
	for _, p := range a.knownProviders() {
		if p.Name == name {
			return true
		}
	}
	return false
}

// evalOptions resolves a lab's providers as memhost configurations. folder is the base for relative names in them.
func (a *app) evalOptions(l *lab.Lab, p *pack.Pack, folder string) run.Options {
	return run.Options{Now: a.Now, Logger: hclog.NewNullLogger(), Host: a.evalHost(), Dir: folder,
		Local: func(entry *lab.Provider) bool {
			c, err := a.evalProvider(l, entry, p, folder)
			if err != nil {
				return false
			}
			info, err := host.Inspect(c.Module, lookOnly())
			return err == nil && !hasBackend(info, c.Block)
		},
		Provider: func(entry *lab.Provider) (host.ProviderConfig, error) {
			c, err := a.evalProvider(l, entry, p, folder)
			if err != nil {
				e := *abi.AsError(err)
				e.Message = "providers, " + entry.Label + ": " + e.Message
				return c, &e
			}
			return c, nil
		}}
}

// evalHost are the options that every cell's host shares.
func (a *app) evalHost() host.Options {
	v := a.version()
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "memhost", "modules")
	}
	return host.Options{Version: v.Version, Commit: v.Commit, CacheDir: cache}
}

// evalProvider reads a lab's entry as a memhost configuration. Where the entry has no block for a control that the pack
// knows the truth for, the pack's is used.
func (a *app) evalProvider(l *lab.Lab, entry *lab.Provider, p *pack.Pack, folder string) (host.ProviderConfig, error) {
	name, memory := entry.Name(), map[string]any{}
	for key, value := range entry.Memory {
		memory[key] = value
	}
	if _, short := memory["provider"]; short {
		delete(memory, "provider")
		word := config.WordBackend
		for _, known := range a.knownProviders() {
			if known.Name == name && known.Kind == abi.KindControl {
				word = config.WordCondition
			}
		}
		memory[word] = name
	}
	if own, set := memory["frame"]; set && own != l.Frame {
		return host.ProviderConfig{}, usageError(fmt.Sprintf("memory.frame: is %v, the lab's is %s", own, l.Frame),
			"one frame serves all providers: set frame in the lab")
	}
	memory["frame"] = l.Frame
	if entry.Plugin != "" {
		memory["plugin"] = entry.Plugin
	}
	conditions, _ := memory["conditions"].(map[string]any)
	if block, known := p.Conditions[name]; known && conditions[name] == nil {
		blocks := map[string]any{name: block}
		for other, value := range conditions {
			blocks[other] = value
		}
		memory["conditions"] = blocks
	}
	tree := map[string]any{"memory": memory}
	if entry.Secrets != nil {
		tree["secrets"] = entry.Secrets
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return host.ProviderConfig{}, usageError(err.Error(), "")
	}
	o := config.Options{File: "lab.json", Text: text, Dir: folder, Environ: a.unconfigured(), Known: a.knownProviders(),
		Module: a.providersOf}
	c, err := config.Load(o)
	if err != nil {
		return host.ProviderConfig{}, err
	}
	m, err := a.resolveChecked(c)
	if err != nil {
		return host.ProviderConfig{}, err
	}
	return providerConfig(c, m), nil
}

// unconfigured is the environment without variables that configure memhost: a run is what its lab file says.
func (a *app) unconfigured() []string {
	list := []string{"PATH="} // nil would mean the process's own
	for _, pair := range a.Environ {
		if !strings.HasPrefix(pair, "MEMHOST_") {
			list = append(list, pair)
		}
	}
	return list
}

// evalPlan checks every provider, and prints what the run will do.
func (a *app) evalPlan(l *lab.Lab, p *pack.Pack, o run.Options) ([]run.Cost, error) {
	remote := map[string]bool{}
	for i := range l.Providers {
		c, err := o.Provider(&l.Providers[i])
		if err != nil {
			return nil, err
		}
		info, err := host.Inspect(c.Module, lookOnly())
		if err != nil {
			return nil, err
		}
		remote[l.Providers[i].Label] = hasBackend(info, c.Block)
	}
	costs, err := run.Plan(l, p, func(entry *lab.Provider) bool { return remote[entry.Label] })
	if err != nil {
		return nil, err
	}
	if a.out.json {
		return costs, a.out.object(map[string]any{"lab": l, "pack": p.Manifest.Name, "costs": costs})
	}
	a.out.note("%s: %s", l.Name, packLine(&p.Manifest))
	w := tabwriter.NewWriter(a.out.stderr, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "provider\tevents\tretrievals\ttest sessions\tnative calls, at least\tmodel calls\t")
	for _, c := range costs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", c.Label, c.Events, c.Retrievals, c.TestSessions, c.NativeCalls,
			c.ModelCalls)
	}
	return costs, w.Flush()
}

// hasBackend tells whether a provider's block names any origin: a module may have routes that its configuration leaves
// unused.
func hasBackend(m *host.Module, block abi.Raw) bool {
	var tree any
	if json.Unmarshal(block, &tree) != nil {
		return false
	}
	for _, origin := range m.Manifest.Origins {
		if value, there := jsonpointer.Find(tree, origin.From); there && value != nil {
			return true
		}
	}
	return false
}

// agreed asks before what may cost money.
func (a *app) agreed(costs []run.Cost) error {
	paid := false
	for _, c := range costs {
		paid = paid || c.NativeCalls > 0 || c.ModelCalls > 0
	}
	if !paid {
		return nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !a.out.errTTY {
		return usageError("the run calls backends or models, and nobody can be asked", "say --yes")
	}
	fmt.Fprint(a.out.stderr, "Go on? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if strings.ToLower(strings.TrimSpace(answer)) != "y" {
		return &doneError{exitRefused}
	}
	return nil
}

// evalGo runs what is left of a run, with progress.
func (a *app) evalGo(ctx context.Context, folder string, r *rundir.Run, p *pack.Pack, o run.Options) error {
	ctx, stop := a.untilInterrupted(ctx)
	defer stop()
	if r.Lab.Agent != nil {
		agent, err := model.NewAgent(r.Lab, a.getenv)
		if err != nil {
			return err
		}
		defer agent.Close()
		o.Agent = agent
	}
	began := a.Now()
	show := &evalProgress{app: a, bars: map[string]*progress{}, done: map[string]int{}}
	o.Progress = show.told
	err := run.Go(ctx, folder, r, p, o)
	show.finish()
	if a.interrupted {
		a.out.note("interrupted; `memhost eval resume %s` goes on", folder)
		return errInterrupted
	}
	if err != nil {
		a.evalCells(r)
		return err
	}
	a.out.note("%s %d cells in %s: %s", a.out.passed(), len(r.Cells), a.Now().Sub(began).Round(100*time.Millisecond),
		folder)
	return nil
}

// evalProgress shows one bar at a time: that of the cell which told something last.
type evalProgress struct {
	*app
	mu   sync.Mutex
	bars map[string]*progress
	done map[string]int
}

func (s *evalProgress) told(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%s/%d", p.Label, p.Replicate)
	bar, known := s.bars[name]
	if !known {
		bar = s.out.progress(p.Total, fmt.Sprintf("%-22s", name))
		s.bars[name] = bar
	}
	if more := p.Done - s.done[name]; more > 0 {
		bar.add(more)
		s.done[name] = p.Done
	}
}

func (s *evalProgress) finish() {
	for _, bar := range s.bars {
		bar.finish()
	}
}

// evalCells prints how each cell stands.
func (a *app) evalCells(r *rundir.Run) {
	for _, c := range r.Cells {
		mark, more := a.out.open(), ""
		switch c.State {
		case rundir.Complete:
			mark = a.out.passed()
		case rundir.Failed:
			mark, more = a.out.broken(), ": "+printable(cut(c.Error.Message, 200))
		}
		a.out.print("%s %s/%d %s%s\n", mark, c.Label, c.Replicate, c.State, more)
	}
}

func (a *app) evalResumeCommand() *cobra.Command {
	var packPath string
	cmd := &cobra.Command{Use: "resume RUN", Short: "Go on with a run that was ended", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := rundir.Open(args[0])
			if err != nil {
				return err
			}
			if packPath == "" {
				packPath = r.PackPath
			}
			p, err := pack.Open(packPath)
			if err != nil {
				return err
			}
			defer p.Close()
			return a.evalGo(cmd.Context(), args[0], r, p, a.evalOptions(r.Lab, p, r.Dir))
		}}
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *app) evalReplayCommand() *cobra.Command {
	var packPath, out string
	cmd := &cobra.Command{Use: "replay RUN --out ANOTHER",
		Short: "Run it again from its cassettes, without any backend", Args: cobra.ExactArgs(1),
		Long: `Plays each cassette of a run that was made with cassettes: true through the module, which must answer byte for byte as then, and makes a run of the same
answers. Its metrics.json is that of every other replay. Models are not asked again: what an agent said is not in it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usageError("--out: required", "a new folder for the run")
			}
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			ctx, stop := a.untilInterrupted(cmd.Context())
			defer stop()
			r, err := run.Replay(ctx, args[0], out, e.pack, a.evalOptions(e.run.Lab, e.pack, e.run.Dir))
			if err != nil {
				return err
			}
			a.out.note("%s %d cells from their cassettes: %s", a.out.passed(), len(r.Cells), out)
			return nil
		}}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the new run's folder")
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *app) evalStatusCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "status RUN", Short: "How far a run is", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.untilInterrupted(cmd.Context())
			defer stop()
			for {
				r, err := rundir.Open(args[0])
				if err != nil {
					return err
				}
				if a.out.json {
					err = a.out.object(r)
				} else {
					err = a.evalStatus(args[0], r)
				}
				if err != nil || !follow || r.CompleteAt != "" || ctx.Err() != nil {
					return err
				}
				a.Sleep(ctx, 2*time.Second)
			}
		}}
	cmd.Flags().BoolVar(&follow, "follow", false, "print it again every two seconds, until the run is complete")
	return cmd
}

func (a *app) evalStatus(folder string, r *rundir.Run) error {
	a.out.print("%s, begun %s\n", r.Lab.Name, r.BegunAt)
	for _, c := range r.Cells {
		records, probes := 0, 0
		for line, err := range journal.Read(filepath.Join(c.Folder(folder), journal.Name)) {
			if err != nil {
				break // being written, or not begun
			}
			switch line.Kind {
			case journal.KindRecord:
				records++
			case journal.KindProbe:
				if line.Probe.Read == 1 {
					probes++
				}
			}
		}
		total := r.Pack.Counts.Probes * len(r.Lab.BudgetsOf(r.Lab.Find(c.Label)))
		a.out.print("  %-28s %-9s %6d of %d events, %5d of %d retrievals\n", fmt.Sprintf("%s/%d", c.Label, c.Replicate),
			c.State, records, r.Pack.Counts.Events, probes, total)
	}
	return nil
}

func (a *app) evalVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{Use: "verify RUN", Short: "Check that nothing of a run was changed later",
		Args: cobra.ExactArgs(1),
		Long: `Reads every journal, checks that each line follows the one before, and holds the last one to the head that run.json seals. That finds a change of one file.
Somebody who writes journals and run.json anew makes a chain that is whole: --head compares the run with a head that was noted elsewhere when it was made.`,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := rundir.Open(args[0])
			if err != nil {
				return err
			}
			found := r.Head()
			for _, c := range r.Cells {
				if c.State != rundir.Complete {
					return abi.NewError(abi.CodeConflict,
						fmt.Sprintf("cell %s/%d is %s: its head is not sealed yet", c.Label, c.Replicate, c.State))
				}
				lines, err := journal.Verify(filepath.Join(c.Folder(args[0]), journal.Name), c.Head)
				if err != nil {
					return err
				}
				if !a.out.json {
					a.out.print("%s %s/%d: %d lines, head %.12s\n", a.out.passed(), c.Label, c.Replicate, lines, c.Head)
				}
			}
			if head != "" && head != found {
				a.out.note("the run's head is %s, not %s", found, head)
				return &doneError{exitDiffers}
			}
			if a.out.json {
				return a.out.object(map[string]string{"head": found})
			}
			a.out.print("head %s\n", found)
			return nil
		}}
	cmd.Flags().StringVar(&head, "head", "", "the head that was noted when the run was made")
	return cmd
}
