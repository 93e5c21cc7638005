package serving

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/state"
)

const upgradeHelp = `Brings the data folder of a stopped slot to the format of this version. memhost run does the same when it starts; other commands refuse a
folder of an older format and change nothing.

A copy of the old state.db stays beside it (state.db.schema2 for schema 2) until a slot on the folder first stops cleanly. To go back until then, stop the slot, put
the copy in the place of state.db, and use the older memhost: what was recorded since is lost.

A slot in a database is upgraded by memhost cluster migrate.`

func (a *commands) upgradeCommand() *cobra.Command {
	return &cobra.Command{Use: "upgrade", Short: "Bring the data folder to this version's format", Long: upgradeHelp,
		Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if c.Store.Postgres.URL != "" {
				return cli.UsageError("the slot is kept in a database", "run: memhost cluster migrate")
			}
			if err := cli.NeedSlot(c.Data.Dir); err != nil {
				return err
			}
			upgraded := false
			store, err := state.Open(c.Data.Dir, state.Options{Durability: state.Durability(c.Data.Durability),
				Upgrade: state.UpgradeAndKeep, OnUpgrade: func(from int, kept string) {
					upgraded = true
					a.Out.Print("%s: upgraded from schema %d to %d; the old state is kept as %s until a slot first stops cleanly\n",
						c.Data.Dir, from, state.Schema, kept)
				}})
			if err != nil {
				return err
			}
			if !upgraded {
				a.Out.Print("%s is up to date (schema %d)\n", c.Data.Dir, state.Schema)
			}
			return store.Close()
		}}
}
