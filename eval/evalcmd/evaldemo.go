package evalcmd

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/report"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/internal/cli"
)

const evalDemoHelp = `Makes a pack of made-up people whose preferences change, runs six local providers on it, and writes the report. Nothing is installed, no network is used.`

func (a *commands) evalDemoCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "demo", Short: "See a comparison of memories and an agent, in 20 seconds", Long: evalDemoHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.evalDemo(cmd.Context(), out) }}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the folder for pack and run, which must be new (default: a "+
		"temporary one)")
	return cmd
}

// demoLab compares every local memory that needs no model. static_profile and oracle_ipas get what the pack's builder
// wrote for them.
const demoLab = `{"lab": 1, "name": "demo", "pack": "demo.pack", "budgets": [300, 1000], "stability": 0.05,
  "providers": ["no_memory", "full_history", "static_profile", "oracle_ipas", "ledger_memory", "bm25", "recall"],
  "subject": {"seat": "stub", "budgets": [300]},
  "primary": {"metric": "answer_shown", "budget": 300, "reference": "full_history"}}`

func (a *commands) evalDemo(ctx context.Context, out string) error {
	if out == "" {
		dir, err := os.MkdirTemp("", "memhost-eval-")
		if err != nil {
			return cli.FileError(os.TempDir(), err)
		}
		out = dir
	}
	b, err := build.Find("synth")
	if err != nil {
		return err
	}
	path := filepath.Join(out, "demo.pack")
	m, err := b.Build(build.Request{Name: "demo", Options: map[string]string{"personas": "8", "sessions": "6",
		"turns": "5"}}, path)
	if err != nil {
		return err
	}
	a.Out.Note("%s pack    %s", a.Out.Passed(), packLine(m))
	p, err := pack.Open(path)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := lab.Parse([]byte(demoLab))
	if err != nil {
		return err
	}
	l.Providers = presentProviders(l.Providers, a.isBuiltin)
	l.Pack = path
	l.AddReferences(a.isBuiltin)
	o := a.evalOptions(l, p, out)
	folder := filepath.Join(out, "run")
	r, err := run.Begin(folder, l, path, p, o)
	if err != nil {
		return err
	}
	if err := a.evalGo(ctx, folder, r, p, o); err != nil {
		return err
	}
	e := &evaluatedRun{folder, r, p}
	scored, err := e.report(false)
	if err != nil {
		return err
	}
	if err := a.evalVerdicts(e, scored); err != nil {
		return err
	}
	a.Out.Note("report: %s", filepath.Join(folder, report.HTMLFile))
	if a.Out.TTY {
		a.openFile(filepath.Join(folder, report.HTMLFile))
	}
	return nil
}

// presentProviders returns the providers that this program includes.
func presentProviders(list []lab.Provider, known func(string) bool) []lab.Provider {
	var present []lab.Provider
	for _, p := range list {
		if known(p.Name()) {
			present = append(present, p)
		}
	}
	return present
}
