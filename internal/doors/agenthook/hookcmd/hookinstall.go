package hookcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/agenthook"
)

const hookInstallHelp = `Writes memhost's hooks into the settings of an agent, claude-code or codex, and shows what changes in the file. The
rest of the file keeps its order and its values. Installing again replaces the hooks; --undo takes them out, and with them
nothing else.

The file is that of the user (~/.claude/settings.json, ~/.codex/hooks.json; CLAUDE_CONFIG_DIR and CODEX_HOME count), with
--project that of the folder (.claude/settings.local.json, .codex/hooks.json), or the one that --file names.

--run, --user, --agent, --server, --data and --config become part of the hooks' command.

Codex runs a new or changed hook only after you have trusted it: /hooks in Codex.`

type hookInstallFlags struct {
	cli.ScopeFlags
	file                  string
	project, undo, dryRun bool
}

func (a *commands) hookInstallCommand() *cobra.Command {
	var f hookInstallFlags
	cmd := &cobra.Command{Use: "install AGENT", Short: "Write the hooks into an agent's settings, or take them out",
		Long: hookInstallHelp,
		Args: cobra.ExactArgs(1), ValidArgs: []string{"claude-code", "codex"},
		RunE: func(cmd *cobra.Command, args []string) error { return a.hookInstall(cmd, args[0], &f) }}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.Add(fs)
	fs.Lookup("run").Usage = "run id; {project} stands for the repository that the agent works in (default: {project})"
	fs.Lookup("user").Usage = "whose memory; {person} stands for the user of this computer (default: {person}); " +
		"--persona means the same"
	fs.BoolVar(&f.project, "project", false, "the settings of this folder, instead of the user's")
	fs.StringVar(&f.file, "file", "", "another settings file")
	fs.BoolVar(&f.undo, "undo", false, "take the hooks out")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show the change, and write nothing")
	return cmd
}

func (a *commands) hookInstall(cmd *cobra.Command, agent string, f *hookInstallFlags) error {
	title := ""
	for _, known := range hookAgents {
		if known.name == agent {
			title = known.title
		}
	}
	if title == "" {
		return cli.UsageError("no agent is called "+cli.Quote(agent), "claude-code or codex")
	}
	if err := agenthook.CheckPlaces(f.Scope()); err != nil {
		return err
	}
	change, err := a.prepare(cmd.Flags(), agent, f)
	if err != nil {
		return err
	}
	if change.Diff == "" {
		a.Out.Note("%s: nothing to change", change.Path)
		return nil
	}
	if change.removes {
		a.Out.Note("%s has no other hooks, so the file goes.", change.Path)
	} else {
		a.Out.Note("%s:\n%s", change.Path, change.Diff)
	}
	if !f.undo {
		a.NamedFileOnly = true // as in the hook itself
		if c := a.Serving(cmd.Context()); c != nil && report.KeepsNothing(c) {
			a.Out.Note("warning: %s", cli.NothingKept(c.Provider))
		}
	}
	if f.dryRun {
		a.Out.Note("Nothing was written (--dry-run).")
		return nil
	}
	if err := change.Write(); err != nil {
		return err
	}
	switch {
	case change.removes:
	case f.undo:
		a.Out.Note("Written. %s has no hooks of memhost any more.", title)
	case agent == "codex":
		a.Out.Note("Written. Trust the hooks in Codex (/hooks): until then it does not run them. `memhost hook " +
			"install codex --undo` takes them out.")
	default:
		a.Out.Note("Written. It counts from %s's next session on. `memhost hook install %s --undo` takes it out.",
			title, agent)
	}
	return nil
}

// Change is a change of an agent's settings that is not written yet.
type Change struct {
	// Path is the settings file. Diff shows the changed lines, "" if nothing changes.
	Path, Diff string
	after      []byte
	removes    bool // the file would be empty, so it is removed
}

// Write makes the change.
//
// Errors: invalid_argument if the file cannot be written.
func (c *Change) Write() error {
	if c.Diff == "" {
		return nil
	}
	if c.removes {
		if err := os.Remove(c.Path); err != nil {
			return cli.FileError(c.Path, err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return cli.FileError(c.Path, err)
	}
	return cli.ReplaceFile(c.Path, c.after)
}

// Prepare makes the change that adds memhost's hooks to the user's settings of an agent, or removes them with undo.
// flags are those of the command; --server, --data, --config, --run, --user and --agent become part of the hooks'
// command if they were given.
//
// Errors: invalid_argument for settings that cannot be read, and for a program that `go run` has built.
func Prepare(k *cli.App, flags *pflag.FlagSet, agent string, undo bool) (*Change, error) {
	return (&commands{k}).prepare(flags, agent, &hookInstallFlags{undo: undo})
}

func (a *commands) prepare(flags *pflag.FlagSet, agent string, f *hookInstallFlags) (*Change, error) {
	path, err := a.settingsFile(agent, f)
	if err != nil {
		return nil, err
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, cli.FileError(path, err)
	}
	command, err := a.hookLine(flags, agent, f.undo)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: path}
	if f.undo && len(before) == 0 {
		return c, nil
	}
	if f.undo {
		c.after, err = agenthook.Uninstall(before, command)
	} else {
		c.after, err = agenthook.Install(before, agent, command)
	}
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	c.Diff = strings.TrimSuffix(agenthook.Diff(before, c.after), "\n")
	c.removes = f.undo && string(c.after) == "{}\n" && agent == "codex" && f.file == ""
	return c, nil
}

// settingsFile returns the file of an agent's settings, with symbolic links resolved.
func (a *commands) settingsFile(agent string, f *hookInstallFlags) (string, error) {
	path := f.file
	if path == "" {
		var err error
		if path, err = agenthook.SettingsFile(agent, f.project, a.Getenv); err != nil {
			return "", cli.UsageError("the home folder is not known: "+err.Error(), "--file names the settings file")
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, nil
}

// hookLine returns the hooks' command, for a shell.
//
// Errors: invalid_argument for a program that `go run` has built, which no longer exists when the agent starts its
// hooks.
func (a *commands) hookLine(flags *pflag.FlagSet, agent string, undo bool) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if !undo && isTemporary(program) {
		return "", abi.NewError(abi.CodeInvalidArgument, "hook install: this program is "+program+", which `go run` has "+
			"built and will remove; nothing was written").
			WithHint("go install ./cmd/memhost, then `memhost hook install " + agent + "`")
	}
	words := []string{program, "hook", agent}
	for _, name := range []string{"server", "data", "config", "run", "user", "agent"} {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if name == "data" || name == "config" { // the agent starts its hooks in any folder
			if value, err = filepath.Abs(value); err != nil {
				return "", err
			}
		}
		words = append(words, "--"+name, value)
	}
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " "), nil
}

// isTemporary reports whether `go run` built a program: it is in a folder go-build* of the temporary files, or in the
// build cache. Programs of `go test` do not count, because tests install hooks.
func isTemporary(program string) bool {
	parts := strings.Split(filepath.ToSlash(program), "/")
	return !strings.HasSuffix(program, ".test") && slices.ContainsFunc(parts[:len(parts)-1], func(folder string) bool {
		rest, found := strings.CutPrefix(folder, "go-build")
		return found && strings.Trim(rest, "0123456789") == ""
	})
}

// shellWord quotes a word for a shell if necessary.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' || r == ':' || r == '=' || r == ',' || r >= '0' &&
			r <= '9' || r >= 'a' && r <= 'z' ||
			r >= 'A' && r <= 'Z'
	}
	if s != "" && !slices.ContainsFunc([]rune(s), func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
