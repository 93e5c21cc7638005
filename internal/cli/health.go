package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask the provider how it is", Args: cobra.NoArgs,
		Long: "Asks the provider for its condition. The exit code is 0 for ok and degraded, 3 for unavailable.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.withDoor(cmd.Context(), a.health) },
	}
}

func (a *app) health(ctx context.Context, d *door) error {
	h, err := d.Health(ctx)
	if err != nil {
		return err
	}
	if a.out.json {
		if err := a.out.value(h); err != nil {
			return err
		}
	} else {
		a.out.print("%s  %s", h.Status, printable(h.BackendName))
		if h.BackendVersion != "" {
			a.out.print(" %s", printable(h.BackendVersion))
		}
		a.out.print(", %.1f ms, %s\n", h.LatencyMS, d.where())
		a.out.print("consistency %s, isolation %s, observability %s\n", printable(h.ConsistencyModel),
			printable(h.Isolation), printable(h.PetObservability))
		for _, l := range []struct {
			name  string
			words []string
		}{{"memory types", h.NativeMemoryTypes}, {"ingest modes", h.NativeIngestModes},
			{"query modes", h.NativeQueryModes}} {
			if len(l.words) > 0 {
				a.out.print("%s: %s\n", l.name, printable(strings.Join(l.words, ", ")))
			}
		}
		for _, w := range h.Warnings {
			a.out.note("  warning: %s", printable(w))
		}
	}
	if h.Status == abi.HealthUnavailable {
		return &doneError{exitRetry}
	}
	return nil
}
