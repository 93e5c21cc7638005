package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/state/move"
	"github.com/memhost/memhost/internal/state/postgres"
)

const clusterHelp = `State, ledger and mode can be kept in a PostgreSQL database instead of a file in the data folder:

  store:
    postgres:
      url: postgres://memhost@db.example.com:5432/memhost?sslmode=verify-full
      password: {secret: pg}

  memhost cluster migrate    make the tables, or bring them to this version
  memhost run

Any number of hosts serves the slot, each with a data folder of its own, and any of them takes any call. When one is
killed, the others take over the scopes that it was writing after 15 seconds.`

func (a *commands) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Prepare and look at the database of a slot that is kept in PostgreSQL",
		Long: clusterHelp, Args: cli.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.clusterMigrate(), a.clusterStatus(), a.clusterAcceptLoss(), a.clusterImport(), a.clusterExport())
	return cmd
}

func (a *commands) clusterMigrate() *cobra.Command {
	return &cobra.Command{Use: "migrate", Short: "Make the tables, or bring them to this version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			_, o, err := a.clusterOptions()
			if err != nil {
				return err
			}
			ran, err := postgres.Migrate(ctx, o)
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(map[string][]string{"migrations": append([]string{}, ran...)})
			}
			if len(ran) == 0 {
				a.Out.Print("the tables are up to date\n")
			}
			for _, name := range ran {
				a.Out.Print("migrated: %s\n", name)
			}
			return nil
		}}
}

// clusterOptions returns the configuration, and the options of its database.
func (a *commands) clusterOptions() (c *config.Config, o postgres.Options, err error) {
	c, err = a.Config()
	if err != nil {
		return nil, o, err
	}
	if c.Store.Postgres.URL == "" {
		return nil, o, cli.UsageError("no database is configured", "set store.postgres.url")
	}
	o, err = a.PostgresOptions(c)
	return c, o, err
}

func (a *commands) clusterStatus() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Tell which hosts serve the slot, and what they agree on",
		Long: "It asks the slot that --server names, or else the database, so that it works where no host answers.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			c, err := a.readCluster(ctx)
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Raw(abi.Marshal(c))
			}
			a.printCluster(c)
			return nil
		}}
}

func (a *commands) readCluster(ctx context.Context) (_ *report.Cluster, err error) {
	if server := a.ServerNamed(); server != "" {
		slot, err := client.New(server, a.Getenv("MEMHOST_TOKEN"))
		if err != nil {
			return nil, err
		}
		defer slot.Close()
		return slot.Cluster(ctx)
	}
	_, o, err := a.clusterOptions()
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := move.Check(ctx, store); err != nil {
		return nil, err
	}
	return host.ReadCluster(ctx, store, store)
}

func (a *commands) printCluster(c *report.Cluster) {
	if c.Provider != "" {
		a.Out.Print("serves %s, module %.12s, load %d, since %s\n", c.Provider, c.Module, c.Generation,
			c.ServingSince)
	}
	if c.Identity != "" {
		a.Out.Print("cluster %s, incarnation %d, %d commits\n", c.Identity, c.Incarnation, c.Commits)
	}
	mode := "write"
	if c.ReadOnly {
		mode = "read-only"
	}
	a.Out.Print("mode %s, %d scopes being written, %d hosts\n", mode, c.Turns, len(c.Hosts))
	for _, h := range c.Hosts {
		a.Out.Print("  %s, memhost %s, since %s", h.Name, h.Version, h.Began)
		if h.LeftMS != nil {
			a.Out.Print(", session ends in %.1f s", float64(*h.LeftMS)/1000)
		}
		if h.Self {
			a.Out.Print(", answered this")
		}
		a.Out.Print("\n")
	}
	for _, w := range c.LateWrites {
		a.Out.Print("late write: %s of %s at %s for %s / %s, events %s\n", w.Route, w.Host, w.At, w.RunID, w.Persona,
			strings.Join(w.EventIDs, " "))
	}
}

const acceptLossHelp = `A host refuses a database that lacks commits which it has seen: it was restored from a backup,
or a failover promoted a server that was behind. This command lets hosts serve from it again, with what it has:

  - The events whose receipts are gone are listed, as far as this data folder knows: run it with the folder of each
    host (--data), the command may be repeated.
  - From then on an event that the ledger does not know is looked up in the backend before it is sent, in every scope.
  - A new incarnation begins. Hosts that run answer nothing more until they are restarted.

Where the database lacks nothing that the folder's host has seen, or the loss was accepted already, it lists only.`

func (a *commands) clusterAcceptLoss() *cobra.Command {
	return &cobra.Command{Use: "accept-loss", Short: "Let hosts serve from a database that has lost commits",
		Long: acceptLossHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			c, o, err := a.clusterOptions()
			if err != nil {
				return err
			}
			store, err := postgres.Open(ctx, o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			lacks, err := store.Lost(ctx, filepath.Join(c.Data.Dir, cli.PastFile))
			if err != nil {
				return err
			}
			lost := []report.LostEvent{}
			err = host.LostReceipts(ctx, store, c.Data.Dir, func(e report.LostEvent) error {
				lost = append(lost, e)
				return nil
			})
			if err != nil {
				return err
			}
			past, err := store.ClusterState(ctx)
			if err != nil {
				return err
			}
			scopes, incarnation := 0, past.Incarnation
			if lacks {
				if scopes, err = host.DoubtScopes(ctx, store); err != nil {
					return err
				}
				if incarnation, err = store.AcceptLoss(ctx); err != nil {
					return err
				}
			}
			if a.Out.JSON {
				return a.Out.Object(map[string]any{"incarnation": incarnation, "scopes": scopes, "events": lost})
			}
			for _, e := range lost {
				a.Out.Print("lost receipt: %s of %s / %s, %s\n", e.EventID, e.RunID,
					e.Persona, e.At)
			}
			if !lacks {
				a.Out.Print("nothing was changed: the database, incarnation %d, lacks no commit that %s has seen, or that "+
					"was accepted; %d receipts known there are gone, by a loss or a reset\n", incarnation, c.Data.Dir,
					len(lost))
				return nil
			}
			a.Out.Print("incarnation %d begins: %d receipts known to %s are gone, %d scopes look events up before they send "+
				"them; restart the hosts\n", incarnation, len(lost), c.Data.Dir, scopes)
			return nil
		}}
}
