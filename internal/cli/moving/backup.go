package moving

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/state/backup"
)

const backupHelp = `Writes the data folder as it is at one moment to FILE, while the slot serves: memory, receipts, mode, the archive. What is in a backend (Honcho, mem0, ...)
is not in the data folder, and has backups of its own; a slot in a database is backed up by the database's own way.

What is written is checked before it takes FILE's name, and a FILE that is there is replaced then. So FILE is always a whole backup; a command that was
interrupted is simply run again.
The file is not encrypted, and has what people said in clear text.

To restore, unpack it into an empty folder and use that:

  mkdir restored && tar -xzf FILE -C restored
  memhost run --data restored

backup.json in it lists the files with their digests. --check reads a backup again.`

func (a *commands) backupCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{Use: "backup FILE", Short: "Back up the data folder while the slot serves", Long: backupHelp,
		Example: "  memhost backup memory-2026-11-28.tar.gz\n  memhost backup --check memory-2026-11-28.tar.gz",
		Args:    cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			file := args[0]
			if check {
				return a.checkBackup(file)
			}
			ctx, stop := a.UntilInterrupted(cmd.Context())
			defer stop()
			if err := a.needSlot(); err != nil {
				return err
			}
			if err := cli.Replaceable(file, "backup", isBackup); err != nil {
				return err
			}
			var contents *backup.Contents
			err := wholefile.StreamDurable(file, 0o600, func(w io.Writer) (err error) {
				contents, err = a.writeBackup(ctx, w)
				return err
			})
			if err != nil {
				return err
			}
			return a.tellBackup(file, contents)
		}}
	cmd.Flags().BoolVar(&check, "check", false, "read FILE, which is a backup, and tell whether it is whole")
	return cmd
}

// isBackup reports whether a file may be a backup, which is compressed by gzip.
func isBackup(start []byte) bool { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }

// needSlot rejects a data folder that holds no slot, so that a mistyped name does not create one.
func (a *commands) needSlot() error {
	if a.ServerNamed() != "" {
		return nil
	}
	c, err := a.Config()
	if err != nil || c.Store.Postgres.URL != "" {
		return err
	}
	return cli.NeedSlot(c.Data.Dir)
}

// writeBackup writes a backup of the running slot, or of a data folder that is not in use, and checks what it wrote.
func (a *commands) writeBackup(ctx context.Context, w io.Writer) (*backup.Contents, error) {
	toCheck, written := io.Pipe()
	var contents *backup.Contents
	checked := make(chan error, 1)
	go func() {
		var err error
		contents, err = backup.Check(toCheck)
		_ = toCheck.CloseWithError(err) // a writer must not wait for a reader that has given up
		checked <- err
	}()
	both := io.MultiWriter(w, written)
	err := a.withFolder(ctx, func(h *host.Host) error { return h.Backup(ctx, both, config.DefaultsFile) },
		func(d *cli.Door) error {
			slot, ok := d.Contract.(interface {
				Backup(ctx context.Context, w io.Writer) error
			})
			if !ok {
				return abi.NewError(abi.CodeUnsupported, "this slot makes no backups")
			}
			return slot.Backup(ctx, both)
		})
	_ = written.CloseWithError(err)
	if checkErr := <-checked; err == nil && checkErr != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "what was written is not a whole backup: "+checkErr.Error(),
			checkErr).WithReason("backup").WithHint("run the command again")
	}
	return contents, err
}

func (a *commands) checkBackup(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return cli.FileError(file, err)
	}
	defer func() { _ = f.Close() }()
	contents, err := backup.Check(f)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, fmt.Sprintf("%s is not a whole backup: %s", file, err), err).
			WithReason("backup").WithHint("memhost backup FILE makes one")
	}
	return a.tellBackup(file, contents)
}

func (a *commands) tellBackup(file string, c *backup.Contents) error {
	if a.Out.JSON {
		return a.Out.Object(c)
	}
	a.Out.Print("%s is whole: %s of %s, %s bytes unpacked\n", file, cli.Count(len(c.Files), "file"), c.At,
		cli.Grouped(c.Bytes()))
	return nil
}
