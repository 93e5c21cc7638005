package serving

import (
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/state"
)

const compactHelp = `Writes state.db of a stopped slot anew, with full pages and without the room that forgotten and replaced content took: state.db never gets
smaller by itself. After recording one event at a time this saves about a third, after an import about a fifth.

The new file is complete before it replaces the old one, so a compaction can be stopped or killed at any moment. The disk needs room for both. Copies that the
file system or the disk keeps are out of reach, as they are when something is forgotten.

In a database, use its own way: VACUUM.`

func (a *commands) compactCommand() *cobra.Command {
	return &cobra.Command{Use: "compact", Short: "Make the state file of a stopped slot smaller", Long: compactHelp,
		Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if c.Store.Postgres.URL != "" {
				return cli.UsageError("the slot is kept in a database", "run: VACUUM, with the database's own programs")
			}
			if err := cli.NeedSlot(c.Data.Dir); err != nil {
				return err
			}
			before, after, err := state.Compact(c.Data.Dir)
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(map[string]int64{"bytes_before": before, "bytes_after": after})
			}
			a.Out.Print("%s: %s bytes before, %s after\n", state.DataFile, cli.Grouped(before), cli.Grouped(after))
			return nil
		}}
}
