package cli

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/state/postgres"
)

const clusterHelp = `State, ledger and mode can be kept in a PostgreSQL database instead of a file in the data folder:

  store:
    postgres:
      url: postgres://memhost@db.example.com:5432/memhost?sslmode=verify-full
      password: {secret: pg}

  memhost cluster migrate    make the tables, or bring them to this version
  memhost run

One host serves at a time. Another one that is started is refused while the first serves, and takes over when that one has
ended: at once, or 15 seconds after it was killed.`

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Prepare the database of a slot that is kept in PostgreSQL",
		Long: clusterHelp, Args: noSuchCommand}
	cmd.AddCommand(a.clusterMigrate())
	return cmd
}

func (a *app) clusterMigrate() *cobra.Command {
	return &cobra.Command{Use: "migrate", Short: "Make the tables, or bring them to this version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := a.untilInterrupted(cmd.Context())
			defer stop()
			c, err := a.config()
			if err != nil {
				return err
			}
			if c.Store.Postgres.URL == "" {
				return usageError("no database is configured", "set store.postgres.url")
			}
			o, err := a.postgresOptions(c)
			if err != nil {
				return err
			}
			ran, err := postgres.Migrate(ctx, o)
			if err != nil {
				return err
			}
			if a.out.json {
				return a.out.object(map[string][]string{"migrations": append([]string{}, ran...)})
			}
			if len(ran) == 0 {
				a.out.print("the tables are up to date\n")
			}
			for _, name := range ran {
				a.out.print("migrated: %s\n", name)
			}
			return nil
		}}
}
