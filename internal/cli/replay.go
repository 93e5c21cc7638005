package cli

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
)

const replayHelp = `Runs the operations of a cassette (memhost run --cassette FILE) again, against a module and without any backend: every host call is answered as it was
then, and every answer must be the same, byte for byte. The first difference is shown, with the operation, the host call, what was expected and what came.

--plugin names the module, a file or a built-in one; it may be another than was recorded. Without it the built-in module that serves the provider is taken.
A cassette in which the slot was swapped takes one for each provider. modules.trust of the configuration holds for these modules as for those that serve.

In a cassette of an earlier memhost, members and warnings that the contract has gained since are no difference.

The exit code is 0 when everything was the same, 8 when something differs, and 2 for a cassette that was cut off or edited, or is of another version.`

func (a *app) replayCommand() *cobra.Command {
	var plugins []string
	var partial bool
	cmd := &cobra.Command{
		Use: "replay CASSETTE", Short: "Replay a recorded run against a module", Long: replayHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  memhost replay run.cassette --plugin ./mem0.wasm",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.untilInterrupted(cmd.Context())
			defer stop()
			return a.replay(ctx, args[0], plugins, partial)
		},
	}
	cmd.Flags().StringArrayVar(&plugins, "plugin", nil,
		"the module: a file, oci://..., or the name of a built-in one (repeatable)")
	cmd.Flags().BoolVar(&partial, "partial", false, "replay what there is of a cassette that was cut off")
	return cmd
}

func (a *app) replay(ctx context.Context, path string, plugins []string, partial bool) error {
	given, err := a.replayModules(plugins)
	if err != nil {
		return err
	}
	choose := func(recorded cassette.Load) ([]byte, error) {
		for _, m := range given {
			if m.serves(recorded.Provider) != nil || len(given) == 1 {
				return m.wasm, nil
			}
		}
		m, err := a.openModule(recorded.Provider, false)
		if err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("the cassette is of provider %q, which no module here serves", recorded.Provider)
			e.Hint = "name one that does: --plugin FILE"
			return nil, &e
		}
		return m.wasm, nil
	}
	r, err := host.Replay(ctx, host.ReplayOptions{Path: path, Module: choose, Partial: partial, CacheDir: a.cacheDir(),
		Engines: engines(), Logger: a.logger(hclog.Error)})
	if err != nil {
		return err
	}
	if a.out.json {
		if err := a.out.object(r); err != nil {
			return err
		}
	} else {
		a.showReplay(r)
	}
	if r.Difference != nil {
		return &doneError{exitDiffers}
	}
	return nil
}

// replayModules opens the modules that --plugin names, and holds them against modules.trust.
func (a *app) replayModules(plugins []string) (given []*module, err error) {
	if len(plugins) == 0 {
		return nil, nil
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	for _, plugin := range plugins {
		m, err := a.openModule(plugin, isFile(plugin))
		if err != nil {
			return nil, err
		}
		if err := a.checkTrust(c, m, false); err != nil {
			return nil, err
		}
		given = append(given, m)
	}
	return given, nil
}

func (a *app) showReplay(r *host.ReplayReport) {
	if r.Cut != "" {
		a.out.note("  %s", printable(r.Cut))
	}
	if r.Recorded.SHA256 != r.Replayed.SHA256 && r.Replayed.SHA256 != "" {
		a.out.note("  recorded with %s %s, sha256 %.12s; replayed with %s %s, sha256 %.12s", r.Recorded.Name,
			r.Recorded.Version, r.Recorded.SHA256,
			r.Replayed.Name, r.Replayed.Version, r.Replayed.SHA256)
	}
	same := fmt.Sprintf("%s, %d entries into the guest, %s", count(int(r.Operations), "operation"), r.Entries,
		count(int(r.Calls), "host call"))
	if r.Difference == nil {
		but := "byte for byte"
		if r.Older {
			but = "except for what the contract has gained since"
		}
		a.out.print("the same, %s: %s\n", but, same)
		return
	}
	a.out.print("%s\n", printable(r.Difference.String()))
	a.out.note("  the same until there: %s", same)
}
