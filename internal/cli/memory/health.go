package memory

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask the provider how it is", Args: cobra.NoArgs,
		Long: "Asks the provider for its condition. The exit code is 0 for ok and degraded, 3 for unavailable.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.WithDoor(cmd.Context(), a.health) },
	}
}

func (a *commands) health(ctx context.Context, d *cli.Door) error {
	h, err := d.Health(ctx)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		if err := a.Out.Value(h); err != nil {
			return err
		}
	} else {
		a.Out.Print("%s  %s", h.Status, h.BackendName)
		if h.BackendVersion != "" {
			a.Out.Print(" %s", h.BackendVersion)
		}
		a.Out.Print(", %.1f ms, %s\n", h.LatencyMS, d.Where())
		a.Out.Print("consistency %s, isolation %s, observability %s\n", h.ConsistencyModel,
			h.Isolation, h.PetObservability)
		for _, l := range []struct {
			name  string
			words []string
		}{{"memory types", h.NativeMemoryTypes}, {"ingest modes", h.NativeIngestModes},
			{"query modes", h.NativeQueryModes}} {
			if len(l.words) > 0 {
				a.Out.Print("%s: %s\n", l.name, strings.Join(l.words, ", "))
			}
		}
		for _, w := range h.Warnings {
			a.Out.Note("  warning: %s", w)
		}
	}
	if h.Status == abi.HealthUnavailable {
		return cli.Done(cli.ExitRetry)
	}
	return nil
}
