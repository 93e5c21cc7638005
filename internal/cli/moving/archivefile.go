package moving

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/text/convert"
)

const archiveExportHelp = `Writes archived events, one on each line: what memhost record and memhost archive import read. Each event is written once, also when it was recorded
with several providers. Without a file it writes to standard output.

With --recipient the file is encrypted for the holder of an age key (age1...; several may be given), see https://age-encryption.org.`

func (a *commands) archiveExport() *cobra.Command {
	var of cli.ScopeFlags
	var recipients []string
	cmd := &cobra.Command{Use: "export [FILE|-]", Short: "Write archived events to a file",
		Args: cobra.MaximumNArgs(1), Long: archiveExportHelp,
		Example: "  memhost archive export all.jsonl\n  memhost archive export ann.age --user ann --recipient age1...",
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := ageRecipients(recipients)
			if err != nil {
				return err
			}
			if err := of.Expand(); err != nil {
				return err
			}
			wanted := func(e *abi.MemoryEvent) bool {
				return (of.Run == "" || e.RunID == of.Run) && (of.User == "" || e.UserID == of.User)
			}
			return a.withArchive(cmd.Context(), func(ctx context.Context, archive host.Archive, find eventFinder) error {
				stats, err := archive.ArchiveStats(ctx)
				if err != nil {
					return err
				}
				if stats.Events == 0 {
					if err := noneArchived(ctx, find, stats.On, of.Run, of.User); err != nil {
						return err
					}
				}
				var n int
				if len(args) == 0 || args[0] == "-" {
					if n, err = exportArchive(ctx, archive, a.Out.Stdout, keys, wanted); err != nil {
						return err
					}
					a.Out.Note("%s", cli.Count(n, "event"))
				} else {
					if n, err = exportArchiveTo(ctx, archive, args[0], keys, wanted); err != nil {
						return err
					}
					if a.Out.JSON {
						return a.Out.Object(map[string]any{"events": n, "archived_since": stats.Oldest})
					}
					a.Out.Print("%s written to %s\n", cli.Count(n, "event"), args[0])
				}
				if stats.Events > 0 {
					a.Out.Note("  the archive has events since %s; what was recorded before is not in it", stats.Oldest)
				} else if !stats.On {
					a.Out.Note("  %s", cli.FirstLine(archiveText(stats)))
				}
				return nil
			})
		}}
	cmd.Flags().Var((*cli.IDFlag)(&of.Run), "run", "only events of this run")
	cmd.Flags().Var((*cli.IDFlag)(&of.User), "user", "only events of this user")
	cli.PersonaIsUser(cmd.Flags())
	cmd.Flags().StringArrayVar(&recipients, "recipient", nil, "encrypt for this age key (age1...)")
	return cmd
}

// noneArchived is the error of an export from an empty archive although events were recorded.
func noneArchived(ctx context.Context, find eventFinder, on bool, run, user string) error {
	there, err := find(ctx, run, user)
	if err != nil || !there {
		return err
	}
	hint := "memory.archive: true keeps what is recorded from then on; the memory itself keeps serving"
	if on {
		hint = "the archive keeps what is recorded from now on; `memhost export` writes what a provider can write out itself"
	}
	e := abi.NewError(abi.CodeUnsupported, "events were recorded, and the archive has none of them: nothing can be exported").
		WithReason("archive_empty").WithHint(hint)
	return e
}

func ageRecipients(texts []string) ([]age.Recipient, error) {
	var keys []age.Recipient
	for _, text := range texts {
		key, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, cli.UsageError(fmt.Sprintf("--recipient: %q is not the public key of an age identity", text),
				"want age1..., as age-keygen prints it")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// exportArchiveTo writes a file atomically: an earlier export of that name stays until everything is written. Only its
// owner can read it.
func exportArchiveTo(ctx context.Context, archive host.Archive, path string, keys []age.Recipient,
	wanted func(*abi.MemoryEvent) bool) (n int, err error) {
	if err := cli.Replaceable(path, "export of the archive", isExport); err != nil {
		return 0, err
	}
	var failed error
	err = wholefile.Stream(path, 0o600, func(w io.Writer) error {
		n, failed = exportArchive(ctx, archive, w, keys, wanted)
		return failed
	})
	if err != nil && failed == nil {
		err = writeError(path, err)
	}
	return n, err
}

// isExport reports whether a file may be an export: encrypted, or with an event in its first line.
func isExport(start []byte) bool {
	return bytes.HasPrefix(start, []byte(ageMark)) || bytes.HasPrefix(start, []byte(`{"event_id":`))
}

func writeError(path string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("writing %s: %s", path, err), err).WithReason("write")
}

// exportArchive writes events as JSON lines, each event once.
func exportArchive(ctx context.Context, archive host.Archive, w io.Writer, keys []age.Recipient,
	wanted func(*abi.MemoryEvent) bool) (n int, err error) {
	sealed := io.WriteCloser(nopCloser{w})
	if len(keys) > 0 {
		if sealed, err = age.Encrypt(w, keys...); err != nil {
			return 0, err
		}
	}
	out := bufio.NewWriterSize(sealed, 1<<16)
	written := map[string]bool{}
	for request := new(report.ArchiveRequest); ; {
		page, err := archive.ArchivePage(ctx, request)
		if err != nil {
			return n, err
		}
		for i := range page.Events {
			e := &page.Events[i]
			id := outbox.Digest(e.RunID, e.UserID, e.AgentID, e.EventID)
			if !wanted(e) || written[id] {
				continue
			}
			written[id] = true
			n++
			if _, err := out.Write(append(abi.Marshal(e), '\n')); err != nil {
				return n, writeError("the export", err)
			}
		}
		if !page.More {
			break
		}
		request.After = page.Last
	}
	if err := errors.Join(out.Flush(), sealed.Close()); err != nil {
		return n, writeError("the export", err)
	}
	return n, nil
}

type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }

const archiveImportHelp = `Adds the events of an export to the archive, those that it does not have. Memory is not touched: memhost record does that.

The file is read through before anything is added. One that was encrypted needs --identity with the file of the age key. With - it is read from standard input.`

func (a *commands) archiveImport() *cobra.Command {
	var identity string
	cmd := &cobra.Command{Use: "import FILE|-", Short: "Add the events of an export to the archive",
		Args: cobra.ExactArgs(1), Long: archiveImportHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Begins = true
			identities, err := ageIdentities(identity)
			if err != nil {
				return err
			}
			path, done, err := a.spooled(args[0])
			if err != nil {
				return err
			}
			defer done()
			events := 0
			err = readExport(path, identities, func(*abi.MemoryEvent) error { events++; return nil })
			if err != nil {
				return err
			}
			if events == 0 {
				return abi.NewError(abi.CodeInvalidArgument, args[0]+": has no events").
					WithHint("want what `memhost archive export` writes; nothing was added")
			}
			return a.withArchive(cmd.Context(), func(ctx context.Context, archive host.Archive, _ eventFinder) error {
				sum := new(report.ArchiveReceipt)
				if err := addEvents(ctx, archive.ArchiveAdd, path, identities, sum); err != nil {
					return err
				}
				if a.Out.JSON {
					return a.Out.Value(sum)
				}
				a.Out.Print("%s added, %d already there\n", cli.Count(int(sum.Added), "event"), sum.Present)
				return nil
			})
		}}
	cmd.Flags().StringVar(&identity, "identity", "", "the file of the age key for which the export was encrypted")
	return cmd
}

// spooled returns a file that can be read twice: the named one, or a copy of standard input.
func (a *commands) spooled(name string) (path string, done func(), err error) {
	if name != "-" {
		return name, func() {}, nil
	}
	f, err := os.CreateTemp("", "memhost-import.*.tmp")
	if err != nil {
		return "", nil, writeError("a temporary file", err)
	}
	done = func() { _ = os.Remove(f.Name()) }
	_, err = io.Copy(f, a.Stdin)
	if err = errors.Join(err, f.Close()); err != nil {
		done()
		return "", nil, writeError("a temporary file", err)
	}
	return f.Name(), done, nil
}

func ageIdentities(path string) ([]age.Identity, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.UsageError("--identity: "+err.Error(), "")
	}
	defer func() { _ = f.Close() }()
	identities, err := age.ParseIdentities(f)
	if err != nil {
		return nil, cli.UsageError("--identity: "+path+" is not the file of an age key", "age-keygen writes one")
	}
	return identities, nil
}

// importBytes and importEvents bound one call.
const importBytes, importEvents = 4 << 20, 500

// addEvents passes the events of an export to add, in calls of a moderate size.
func addEvents(ctx context.Context, add func(context.Context, *abi.EventBatch) (*report.ArchiveReceipt, error),
	path string, identities []age.Identity, sum *report.ArchiveReceipt) error {
	batch, size := new(abi.EventBatch), 0
	flush := func() error {
		if len(batch.Events) == 0 {
			return nil
		}
		receipt, err := add(ctx, batch)
		if err != nil {
			return err
		}
		sum.Added += receipt.Added
		sum.Present += receipt.Present
		batch, size = new(abi.EventBatch), 0
		return nil
	}
	err := readExport(path, identities, func(e *abi.MemoryEvent) error {
		n := len(abi.Marshal(e))
		if len(batch.Events) == importEvents || size+n > importBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch.Events, size = append(batch.Events, *e), size+n
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// ageMark is the beginning of an encrypted file.
const ageMark = "age-encryption.org/"

// readExport visits the events of an export.
//
// Errors: invalid_argument for a file that is encrypted for another key, was cut off or edited, or has a line that is
// not an event.
func readExport(path string, identities []age.Identity, visit func(*abi.MemoryEvent) error) error {
	f, err := os.Open(path)
	if err != nil {
		return cli.UsageError(err.Error(), "")
	}
	defer func() { _ = f.Close() }()
	var in io.Reader = bufio.NewReader(f)
	mark, _ := in.(*bufio.Reader).Peek(len(ageMark))
	switch encrypted := string(mark) == ageMark; {
	case encrypted && len(identities) == 0:
		return cli.UsageError(path+" is encrypted", "name the file of its key: --identity key.txt; nothing was added")
	case encrypted:
		if in, err = age.Decrypt(in, identities...); err != nil {
			return cli.UsageError(path+" cannot be decrypted with this identity: "+cli.FirstLine(err.Error()),
				"nothing was added")
		}
	}
	lines := convert.NewLineReader(convert.UTF8(in), convert.DefaultMaxLine)
	for {
		line, number, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return cli.UsageError(fmt.Sprintf("%s: line %d: the file was cut off or edited: %s", path, number, err),
				"nothing of this call was added")
		case len(line) == 0:
			continue
		}
		event := new(abi.MemoryEvent)
		if err = abi.UnmarshalStrict(line, event); err == nil {
			err = event.Validate()
		}
		if err != nil {
			return cli.UsageError(fmt.Sprintf("%s: line %d: %s", path, number, abi.AsError(err).Message),
				"want events as memhost archive export writes them; conversations in other forms go to "+
					"memhost record")
		}
		if err := visit(event); err != nil {
			return err
		}
	}
}
