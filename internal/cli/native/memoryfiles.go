package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/memoryfiles"
	"github.com/memhost/memhost/internal/text/convert"
)

const exportHelp = `Writes a scope's memory as files that a person can read, by the provider's native query "files". FOLDER must be empty or not there.
With --git FOLDER becomes a repository. Its commits are the versions that the files have, of all branches if there are any (events and commits then stand in folders by
the first two digits of their ids, so that a commit need not write the names of all); of a memory without versions it has one commit.`

func (a *commands) exportCommand() *cobra.Command {
	var f cli.ScopeFlags
	var withGit bool
	cmd := &cobra.Command{Use: "export FOLDER", Short: "Write a scope's memory as files", Long: exportHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *cli.Door) error {
				files, err := filesOf(ctx, d, f.Scope())
				if err != nil {
					return err
				}
				a.TellNearScopes(ctx, d, f.Scope())
				if withGit {
					files = memoryfiles.FanOut(files)
				}
				if err := exportFolder(args[0], files, withGit); err != nil {
					return err
				}
				a.Out.Print("%s\n", cli.Count(len(files), "file"))
				return nil
			})
		}}
	f.Add(cmd.Flags())
	cmd.Flags().BoolVar(&withGit, "git", false, "make a repository whose commits are the versions")
	return cmd
}

const importHelp = `Reads FOLDER and hands its files to the provider's native mutation "import_files": what export wrote, or files of another program that the provider takes.
The scope should be empty; a ledger also adds to one. Files that the provider does not take are named, .git among them.`

func (a *commands) importCommand() *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{Use: "import FOLDER", Short: "Take a folder of memory files into a scope",
		Args: cobra.ExactArgs(1),
		Long: importHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, left, err := readFolder(args[0])
			if err != nil {
				return err
			}
			for _, path := range left {
				a.Out.Note("not taken in: %s", path)
			}
			a.Begins = true
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *cli.Door) error {
				err := a.importFiles(ctx, d, f.Scope(), files)
				if abi.CodeOf(err) == abi.CodeConflict && memoryfiles.IsLive(args[0]) {
					return abi.AsError(err).WithHint(args[0] + " is the copy of a memory, which only follows it, and your edits in it " +
						"stay. To change the memory, use what `memhost mutate --help` lists; to replace it by these files, move the " +
						"folder out of the data folder, run `memhost reset`, and import the folder")
				}
				return err
			})
		}}
	f.Add(cmd.Flags())
	return cmd
}

// withScope completes the scope and runs a function with the door to the slot.
func (a *commands) withScope(ctx context.Context, f *cli.ScopeFlags, verb func(ctx context.Context, d *cli.Door) error) error {
	if err := f.Complete(a.App); err != nil {
		return err
	}
	return a.WithDoor(ctx, verb)
}

// filesOf returns a scope's files.
func filesOf(ctx context.Context, d *cli.Door, scope abi.MemoryScope) (map[string]string, error) {
	files, err := memoryfiles.Of(ctx, d, scope)
	if abi.CodeOf(err) == abi.CodeUnsupported {
		return nil, abi.AsError(err).WithHint("it keeps no files that could be written out; `memhost inspect` says " +
			"whether a module has the native query files")
	}
	return files, err
}

// exportFolder writes a folder completely or not at all: what a killed command leaves has another name, and is not
// mistaken for a memory. An empty existing folder is written into directly, because it may be on another file system.
func exportFolder(dir string, files map[string]string, withGit bool) error {
	write := func(to string) error {
		if err := memoryfiles.Write(to, files); err != nil {
			return cli.UsageError(err.Error(), "")
		}
		if !withGit {
			return nil
		}
		return memoryfiles.WriteGit(to, files)
	}
	found, err := os.ReadDir(dir)
	switch {
	case err == nil && len(found) > 0:
		return cli.UsageError(dir+" is not empty", "name a folder that is not there")
	case err == nil:
		return write(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return cli.FileError(dir, err)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return cli.FileError(dir, err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".*.part")
	if err != nil {
		return cli.FileError(dir, err)
	}
	if err = write(part); err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		_ = os.RemoveAll(part)
	}
	return err
}

// readFolder reads the files of a folder. left lists what cannot be read: a repository, and everything that is not a
// regular file.
func readFolder(dir string) (files map[string]string, left []string, err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if err != nil {
			return nil, nil, cli.FileError(dir, err)
		}
		return nil, nil, cli.UsageError(dir+": is a file, want a folder of memory files",
			"`memhost record FILE` takes conversations")
	}
	files = map[string]string{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && e.Name() == ".git":
			left = append(left, filepath.ToSlash(name))
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			left = append(left, filepath.ToSlash(name))
			return nil
		}
		text, err := readText(path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		return nil, nil, cli.UsageError(err.Error(), "")
	}
	if len(files) == 0 {
		return nil, nil, cli.UsageError(dir+": has no files to take in", "`memhost export` writes such a folder")
	}
	return files, left, nil
}

// readText reads a text file, which may be UTF-16, start with a byte order mark, or have CRLF line ends.
func readText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(convert.UTF8(f))
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), err
}

// importBatch is the approximate size of the files in one call, in bytes.
const importBatch = 2 << 20

// importer passes files to import_files, in as many calls as needed.
type importer struct {
	send      func(params map[string]abi.Raw) (*abi.MutationReceipt, error)
	batch     map[string]string
	bytes     int
	continues bool // the batch's first file continues the last one of the previous call
	skipped   []string
}

func (a *commands) importFiles(ctx context.Context, d *cli.Door, scope abi.MemoryScope, files map[string]string) error {
	i := &importer{batch: map[string]string{}, send: func(params map[string]abi.Raw) (*abi.MutationReceipt, error) {
		return d.NativeMutation(ctx, &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "import",
			Params: params})
	}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text := files[path]
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
			a.Out.Note("not UTF-8, what cannot be read became U+FFFD: %s", path)
		}
		if err := i.add(path, text); err != nil {
			return err
		}
	}
	if err := i.flush(true); err != nil {
		return err
	}
	for _, path := range i.skipped {
		a.Out.Note("not taken in: %s", path)
	}
	a.Out.Print("%s: %s\n", cli.Count(len(files)-len(i.skipped), "file"), d.Owner(ctx))
	return nil
}

// add adds a file to the batch, and sends the batch when it is full. A file larger than a batch is sent in parts, cut
// between characters.
func (i *importer) add(path, text string) error {
	if i.bytes > 0 && i.bytes+len(text) > importBatch {
		if err := i.flush(false); err != nil {
			return err
		}
	}
	for continues := false; ; continues = true {
		end := min(len(text), importBatch)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		i.batch[path], i.bytes, i.continues = text[:end], i.bytes+end, i.continues || continues
		if text = text[end:]; text == "" {
			return nil
		}
		if err := i.flush(false); err != nil {
			return err
		}
	}
}

func (i *importer) flush(done bool) error {
	text, err := json.Marshal(i.batch)
	if err != nil {
		return err
	}
	params := map[string]abi.Raw{"files": text, "done": abi.Raw(strconv.FormatBool(done))}
	if i.continues {
		params["continues"] = abi.Raw("true")
	}
	r, err := i.send(params)
	if err != nil {
		return err
	}
	if r.Status == "skipped_read_only" {
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only: nothing was taken in")
	}
	if r.Trace != nil && len(r.Trace.Details["skipped"]) > 0 {
		var skipped []string
		if err := json.Unmarshal(r.Trace.Details["skipped"], &skipped); err != nil {
			return abi.NewError(abi.CodeBackend, "import_files: "+err.Error())
		}
		for _, path := range skipped {
			if !slices.Contains(i.skipped, path) {
				i.skipped = append(i.skipped, path)
			}
		}
	}
	i.batch, i.bytes, i.continues = map[string]string{}, 0, false
	return nil
}
