package runs

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/internal/cli"
)

const replayHelp = `Runs the operations of a cassette (memhost run --cassette FILE) again, against a module and without any backend: every host call is answered as it was
then, and every answer must be the same, byte for byte. The first difference is shown, with the operation, the host call, what was expected and what came.

--plugin names the module, a file or a built-in one; it may be another than was recorded. Without it the built-in module that serves the provider is taken.
A cassette in which the slot was swapped takes one for each provider. modules.trust of the configuration holds for these modules as for those that serve.

In a cassette of an earlier memhost, members and warnings that the contract has gained since are no difference.

The exit code is 0 when everything was the same, 8 when something differs, and 2 for a cassette that was cut off or edited, or is of another version.`

func (a *commands) replayCommand() *cobra.Command {
	var plugins []string
	var partial bool
	cmd := &cobra.Command{
		Use: "replay CASSETTE", Short: "Replay a recorded run against a module", Long: replayHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  memhost replay run.cassette --plugin ./mem0.wasm",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			return a.replay(ctx, args[0], plugins, partial)
		},
	}
	cmd.Flags().StringArrayVar(&plugins, "plugin", nil,
		"the module: a file, oci://..., or the name of a built-in one (repeatable)")
	cmd.Flags().BoolVar(&partial, "partial", false, "replay what there is of a cassette that was cut off")
	return cmd
}

func (a *commands) replay(ctx context.Context, path string, plugins []string, partial bool) error {
	given, err := a.replayModules(plugins)
	if err != nil {
		return err
	}
	choose := func(recorded cassette.Load) ([]byte, error) {
		for _, m := range given {
			if m.Serves(recorded.Provider) != nil || len(given) == 1 {
				return m.Wasm, nil
			}
		}
		m, err := a.OpenModule(recorded.Provider, false)
		if err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("the cassette is of provider %q, which no module here serves", recorded.Provider)
			e.Hint = "name one that does: --plugin FILE"
			return nil, &e
		}
		return m.Wasm, nil
	}
	r, err := host.Replay(ctx, host.ReplayOptions{Path: path, Module: choose, Partial: partial, CacheDir: a.CacheDir(),
		Engines: cli.Engines(), Logger: a.Logger(hclog.Error)})
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if err := a.Out.Object(r); err != nil {
			return err
		}
	} else {
		a.showReplay(r)
	}
	if r.Difference != nil {
		return cli.Done(cli.ExitDiffers)
	}
	return nil
}

// replayModules opens the modules that --plugin names, and checks them against modules.trust.
func (a *commands) replayModules(plugins []string) (given []*cli.Module, err error) {
	if len(plugins) == 0 {
		return nil, nil
	}
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	for _, plugin := range plugins {
		m, err := a.OpenModule(plugin, cli.IsFile(plugin))
		if err != nil {
			return nil, err
		}
		if err := a.CheckTrust(c, m, false); err != nil {
			return nil, err
		}
		given = append(given, m)
	}
	return given, nil
}

func (a *commands) showReplay(r *host.ReplayReport) {
	if r.Cut != "" {
		a.Out.Note("  %s", r.Cut)
	}
	if r.Recorded.SHA256 != r.Replayed.SHA256 && r.Replayed.SHA256 != "" {
		a.Out.Note("  recorded with %s %s, sha256 %.12s; replayed with %s %s, sha256 %.12s", r.Recorded.Name,
			r.Recorded.Version, r.Recorded.SHA256,
			r.Replayed.Name, r.Replayed.Version, r.Replayed.SHA256)
	}
	same := fmt.Sprintf("%s, %d entries into the guest, %s", cli.Count(int(r.Operations), "operation"), r.Entries,
		cli.Count(int(r.Calls), "host call"))
	if r.Difference == nil {
		but := "byte for byte"
		if r.Older {
			but = "except for what the contract has gained since"
		}
		a.Out.Print("the same, %s: %s\n", but, same)
		return
	}
	a.Out.Print("%s\n", r.Difference.String())
	a.Out.Note("  the same until there: %s", same)
}
