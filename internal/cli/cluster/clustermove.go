package cluster

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/move"
	"github.com/memhost/memhost/internal/state/postgres"
)

const moveHelp = `State, ledger, scopes and mode are copied, compared with what was read, and the old store is
closed: a host that is started on it says where the content is now. So nothing is sent twice. No host may run. What was
interrupted goes on when the same command is given again. The archive, shadows and backfills belong to the data folder
and stay there.`

func (a *commands) clusterImport() *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: "import", Short: "Move a data folder's content into the database", Args: cobra.NoArgs,
		Long: moveHelp, RunE: func(cmd *cobra.Command, _ []string) error {
			return a.clusterMove(cmd.Context(), from, false)
		}}
	cmd.Flags().StringVar(&from, "from", "", "the data `folder` with state.db; default: data.dir")
	return cmd
}

func (a *commands) clusterExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "export", Short: "Move the database's content into an empty data folder",
		Args: cobra.NoArgs, Long: moveHelp, RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return cli.UsageError("export: --to is required", "name an empty folder")
			}
			return a.clusterMove(cmd.Context(), to, true)
		}}
	cmd.Flags().StringVar(&to, "to", "", "an empty data `folder`")
	return cmd
}

// progressEvery is the number of records, values and entries between two progress lines of a move.
const progressEvery = 50_000

// clusterMove moves from a folder into the database, or the other way.
func (a *commands) clusterMove(ctx context.Context, dir string, toFolder bool) (err error) {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	c, o, err := a.clusterOptions()
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(cmp.Or(dir, c.Data.Dir)) // the other store notes its name
	if err != nil {
		return err
	}
	if !toFolder && !cli.Exists(filepath.Join(dir, state.DataFile)) {
		return cli.UsageError("import: "+dir+" has no "+state.DataFile, "name the data folder: --from FOLDER")
	}
	folder, err := state.Open(dir, state.Options{Durability: state.Durability(c.Data.Durability),
		Upgrade: state.UpgradeAndKeep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	o.One = true // no other host may serve during the move
	database, err := postgres.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	from, to := move.Side{Store: folder, Name: "data folder " + dir}, move.Side{Store: database, Name: database.Where()}
	if toFolder {
		from, to = to, from
	}
	printed := int64(0)
	r, err := move.Move(ctx, from, to, move.Options{Leave: host.StaysBehind, Progress: func(n int64) {
		if !a.Out.JSON && n >= printed+progressEvery {
			a.Out.Print("%d records, values and entries\n", n)
			printed = n
		}
	}})
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"from": from.Name, "to": to.Name, "operations": r.Operations, "bytes": r.Bytes,
			"sha256": r.Digest, "resumed": r.Resumed})
	}
	how := ""
	if r.Resumed {
		how = ", resumed"
	}
	a.Out.Print("moved %d records, values and entries, %d bytes, sha256 %s%s\nfrom %s\nto   %s\n", r.Operations, r.Bytes,
		r.Digest, how, from.Name, to.Name)
	return nil
}
