package moving

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

const archiveHelp = `The archive keeps every recorded event word for word in the data folder (memory.archive; a new data folder begins with it on). No provider reads it and no retrieval comes from it. It is for moving to
another memory, and for a copy of what was said. Test sessions, and what met the read-only wall, are not in it.

Another memory is filled from it while the present one serves:

  memhost swap graphiti --backfill`

func (a *commands) archiveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "archive", Short: "Export, import and check the archive of recorded events",
		Long: archiveHelp, Args: cli.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.archiveStats(), a.archiveExport(), a.archiveImport(), a.archiveVerify())
	return cmd
}

// eventFinder reports whether events of a run and a user were recorded; "" matches any.
type eventFinder func(ctx context.Context, run, user string) (bool, error)

type archiveVerb func(ctx context.Context, archive host.Archive, of eventFinder) error

// withArchive runs a function on the archive of the slot, or of a data folder that is not in use. The provider is not
// needed. A function that only reads does not create a folder.
func (a *commands) withArchive(ctx context.Context, verb archiveVerb) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	return a.withFolder(ctx, func(h *host.Host) error { return verb(ctx, h.Archive(), h.HasEvents) },
		func(d *cli.Door) error { return onArchive(ctx, d, verb) })
}

// withFolder calls there with the door of the slot that serves the data folder or that --server names, and otherwise
// here with a host on the folder, without a provider.
func (a *commands) withFolder(ctx context.Context, here func(*host.Host) error, there func(*cli.Door) error) error {
	if server := a.ServerNamed(); server != "" {
		d, err := a.Dial(server)
		if err != nil {
			return err
		}
		defer d.Close()
		return there(d)
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	var d *cli.Door
	var h *host.Host
	err = a.OnceFree(ctx, cli.FolderTries, func() (err error) {
		if d, err = a.Running(ctx, c); d == nil && err == nil {
			if err := a.checkFolder(c); err != nil {
				return err
			}
			o := a.HostOptions(c, a.Logger(hclog.Error))
			o.KeepFormat = true
			h, err = host.New(ctx, o)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case d != nil:
		defer d.Close()
		return there(d)
	}
	err = here(h)
	if closed := h.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	return err
}

// onArchive runs a function on the archive of a running slot.
func onArchive(ctx context.Context, d *cli.Door, verb archiveVerb) error {
	archive, ok := d.Contract.(host.Archive)
	if !ok {
		return abi.NewError(abi.CodeUnsupported, "this slot has no archive")
	}
	lister, _ := d.Contract.(report.Listing)
	return verb(ctx, archive, func(ctx context.Context, run, user string) (found bool, err error) {
		if lister == nil {
			return false, nil
		}
		err = cli.EachScope(ctx, lister, func(s *report.ListedScope) error {
			if found || run != "" && s.Scope.RunID != run || user != "" && s.Scope.PersonaID != user {
				return nil
			}
			page, err := lister.ListEvents(ctx, report.EventQuery{Scope: s.Scope, Limit: 1})
			found = err == nil && len(page.Events) > 0
			return err
		})
		return found, err
	})
}

// checkFolder creates a new data folder for a command that records, and rejects a missing one for others.
func (a *commands) checkFolder(c *config.Config) error {
	if a.Begins {
		_, err := cli.BeginFolder(c)
		return err
	}
	return a.CheckBegun(c)
}

func (a *commands) archiveStats() *cobra.Command {
	return &cobra.Command{Use: "stats", Short: "Tell what the archive holds", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withArchive(cmd.Context(), func(ctx context.Context, archive host.Archive, _ eventFinder) error {
				stats, err := archive.ArchiveStats(ctx)
				if err != nil {
					return err
				}
				if a.Out.JSON {
					return a.Out.Value(stats)
				}
				a.Out.Print("%s\n", archiveText(stats))
				return nil
			})
		}}
}

func archiveText(s *report.ArchiveStats) string {
	word := "on"
	if !s.On {
		word = "off: nothing is added (memory.archive: true turns it on)"
	}
	text := "archive: " + word
	if s.Events == 0 {
		return text + "\nit is empty"
	}
	text += fmt.Sprintf("\n%s, archived from %s to %s\n%s sealed in %s (%s bytes compressed, %s as text), %s bytes open",
		cli.Grouped(s.Events)+" events", s.Oldest, s.Newest, cli.Grouped(s.Events-s.OpenEvents)+" events",
		cli.Count(int(s.Segments), "segment"), cli.Grouped(s.SegmentBytes), cli.Grouped(s.TextBytes), cli.Grouped(s.OpenBytes))
	return text
}

func (a *commands) archiveVerify() *cobra.Command {
	return &cobra.Command{Use: "verify", Short: "Check the archive", Args: cobra.NoArgs,
		Long: "Reads all of the archive and compares every sealed file with its digest. Exit code 1 when something " +
			"is damaged.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withArchive(cmd.Context(), func(ctx context.Context, archive host.Archive, _ eventFinder) error {
				check, err := archive.ArchiveCheck(ctx)
				if err != nil {
					return err
				}
				if len(check.Problems) > 0 {
					damaged := abi.NewError(abi.CodeUnavailable, strings.Join(check.Problems, "\n")).WithReason("archive").
						WithHint("memory itself is not touched; a backup of the data folder has the archive whole")
					damaged.Retryable = false
					return damaged
				}
				if a.Out.JSON {
					return a.Out.Value(check)
				}
				a.Out.Print("the archive is sound: %s, %s\n", cli.Count(int(check.Events), "event"),
					cli.Count(int(check.Segments), "segment"))
				return nil
			})
		}}
}
