package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/bench"
)

const benchHostHelp = `Measures what the slot costs on this machine: calls, guests, loading, swapping, and the operations of every backend's module before a fake of its backend.
Every row stands beside its baselines (bare wazero, wazero's own check, go-sdk of Extism, the same HTTP calls made directly), measured in turns in the same run.

A full run takes some minutes and wants an otherwise idle machine; the load average is printed. Each round sets everything up anew. What is printed of a row is the
median of its rounds with the spread in which another run is to be expected, on all rows at once at 95 %; a ratio is ours divided by the baseline's, computed round by
round. A bar "holds" when the whole interval of the median (95 %) is below it, and is "missed" when the whole interval is above. With --compare, ratios are held
against those of an earlier run, and a figure without a baseline is measured by a loop that took turns with it: the machine's own speed is no difference.

Nothing outside of a temporary folder is touched, and no backend is asked. The exit code does not depend on any time.`

// benchFlags are the flags of bench host.
type benchFlags struct {
	short        bool
	rounds       int
	only         string
	memory       int
	profile      time.Duration
	out, compare string
}

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure", Args: noSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var f benchFlags
	host := &cobra.Command{
		Use: "host", Short: "What the slot costs, each figure beside its baselines", Long: benchHostHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchHost(cmd.Context(), &f) },
	}
	host.Flags().SortFlags = false
	host.Flags().BoolVar(&f.short, "short", false, "measure next to nothing, in some seconds: it shows that everything runs")
	host.Flags().IntVar(&f.rounds, "rounds", 0, "rounds of every row (default 12, or 1 with --short); fewer than 8 give no spread of all rows")
	host.Flags().StringVar(&f.only, "only", "", "measure only what matches this regular expression, as ^echo or backend/mem0 or memory")
	host.Flags().IntVar(&f.memory, "memory", -1, "calls over which the memory of the process is watched; 0 for none (default 20000, or 200 with --short)")
	host.Flags().DurationVar(&f.profile, "profile", 0, "profile the hot paths for so long each, as 10s: the ten functions that take most")
	host.Flags().StringVar(&f.out, "out", "", "write the result to a file, as JSON")
	host.Flags().StringVar(&f.compare, "compare", "", "say what differs from the result of an earlier run, in a file of --out")
	cmd.AddCommand(host)
	return cmd
}

func (a *app) benchHost(ctx context.Context, f *benchFlags) error {
	o := bench.Options{Rounds: f.rounds, Short: f.short, Memory: f.memory, Profile: f.profile, Version: a.version().Version}
	if f.rounds < 0 {
		return usageError("--rounds: want 1 or more", "12 is the default")
	}
	if f.memory < 0 {
		if o.Memory = 20_000; f.short {
			o.Memory = 200
		}
	}
	if f.only != "" {
		only, err := regexp.Compile(f.only)
		if err != nil {
			return usageError("--only: "+err.Error(), "for example --only '^echo'")
		}
		o.Only = only
	}
	var before *bench.Result
	if f.compare != "" {
		var err error
		if before, err = bench.Read(f.compare); err != nil {
			return abi.WrapError(abi.CodeInvalidArgument, err.Error(), err)
		}
	}
	began := a.Now()
	o.Progress = func(what string, step, of int) {
		if a.out.errTTY && !a.out.json {
			a.out.note("%5s  %d of %d  %s", a.Now().Sub(began).Round(time.Second), step, of, what)
		}
	}
	ctx, stop := a.untilInterrupted(ctx)
	defer stop()
	result, err := bench.Run(ctx, o)
	if a.interrupted {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := result.Write(f.out); err != nil {
			return fileError(f.out, err)
		}
	}
	if a.out.json {
		return a.out.object(result)
	}
	if err := result.Print(a.out.stdout); err != nil {
		return err
	}
	if before != nil {
		return bench.PrintComparison(a.out.stdout, before, result)
	}
	return nil
}
