package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/internal/configuration/config"
)

const rootHelp = `memhost gives an agent one memory slot. Behind it sits exactly one provider, a memory backend or a control condition,
as a sandboxed WebAssembly module; another one takes its place while the slot serves.

  memhost run                        serve; with no configuration at all, recall, the built-in memory, on this disk
  memhost record turns.jsonl         put conversations in
  memhost retrieve "what tea?"       see what an agent would get
`

// The groups of commands, as `memhost --help` lists them.
const (
	GroupServe   = "serve"
	GroupUse     = "use"
	GroupAgents  = "agents"
	GroupRuns    = "runs"
	GroupModules = "modules"
	GroupMeasure = "measure"
)

// InGroup puts commands into a group of `memhost --help`.
func InGroup(group string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.GroupID = group
	}
	return commands
}

// programCommands are the commands about the program itself. They are in no group.
func programCommands(a *App) []*cobra.Command {
	return []*cobra.Command{a.versionCommand(), a.manCommand(), a.exitCodesTopic()}
}

// Root builds the tree of commands, without running one.
func (a *App) Root(features ...Feature) *cobra.Command {
	root := &cobra.Command{
		Use: "memhost", Short: "one memory slot for an agent", Long: rootHelp,
		SilenceUsage: true, SilenceErrors: true,
	}
	version := root.Flags().BoolP("version", "v", false, "version for memhost")
	root.Args = func(cmd *cobra.Command, args []string) error {
		if *version {
			return nil
		}
		return NoSuchCommand(cmd, args)
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			a.Out.Print("%s", a.versionText())
			return nil
		}
		return cmd.Help()
	}
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(WrapUsage)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.BoolVar(&a.Flags.json, "json", false, "print results, and errors, as JSON on standard output")
	f.StringVar(&a.Flags.Server, "server", "", "URL or HOST:PORT of a running slot (MEMHOST_SERVER); its token, "+
		"if it has one, comes from MEMHOST_TOKEN")
	f.StringVar(&a.Flags.Config, "config", "", "configuration file (MEMHOST_CONFIG; ./memhost.yaml where it exists)")
	f.StringVar(&a.Flags.Data, "data", "", "data folder; commands look there for a running slot, too")
	f.StringArrayVar(&a.Flags.Set, "set", nil, "set a key of the configuration, as memory.tokenizer=o200k_base "+
		"(repeatable)")
	f.StringVar(&a.Flags.LogLevel, "log-level", "", "debug, info, warn or error")
	f.StringVar(&a.Flags.LogFormat, "log-format", "", "text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.Out.JSON = a.Flags.json
		a.Flags.more = changedConfigFlags(cmd)
		f := cmd.Flags().Lookup("persona")
		renamed := f != nil && f.Name == "user" && slices.ContainsFunc(a.Args, isPersona)
		if renamed && slices.ContainsFunc(a.Args, isUser) {
			return UsageError("--persona and --user are one flag: give one", "")
		}
		if renamed && !a.Out.JSON && a.MCP != MCPStdio {
			a.Out.Note("  --persona is --user: commands have one name for it")
		}
		return nil
	}
	for _, g := range []struct{ id, title string }{
		{GroupServe, "Serve:"}, {GroupUse, "Use a slot (one that runs, or a data folder that nobody owns):"},
		{GroupAgents, "Plug into an agent:"}, {GroupRuns, "Show how a run was:"}, {GroupModules, "Modules:"},
		{GroupMeasure, "Compare:"}} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	for _, feature := range append(slices.Clone(features), programCommands) {
		for _, cmd := range feature(a) {
			cmd.Flags().SortFlags = false
			wrapArgs(cmd)
			root.AddCommand(cmd)
		}
	}
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion"}); err == nil && cmd != root {
		cmd.Args = NoSuchCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return root
}

// Late adds commands that depend on the command line, such as those that a module declares. words are the command line
// without flags: the names of commands, then arguments. It must not add a name that is already taken.
type Late func(ctx context.Context, root *cobra.Command, words []string)

// AddLate registers a function that is called when the static commands are complete, before one of them is chosen.
func (a *App) AddLate(add Late) { a.late = append(a.late, add) }

// addLate reads the flags of every command, and calls the registered functions.
func (a *App) addLate(ctx context.Context, root *cobra.Command) {
	args := slices.Clone(a.Args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		args = args[1:max(1, len(args)-1)] // the last word is incomplete
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	f.AddFlagSet(root.PersistentFlags())
	f.BoolP("help", "h", false, "")
	if err := f.Parse(args); err != nil {
		return // the command itself reports it
	}
	words := f.Args()
	if len(words) > 0 && words[0] == "help" {
		words = words[1:]
	}
	for _, add := range a.late {
		add(ctx, root, words)
	}
}

func isPersona(arg string) bool { return arg == "--persona" || strings.HasPrefix(arg, "--persona=") }

// isUser reports whether an argument is --user.
func isUser(arg string) bool { return arg == "--user" || strings.HasPrefix(arg, "--user=") }

// wrapArgs turns the errors of a command's own argument check, and of its subcommands', into usage errors.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return WrapUsage(cmd, err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// NoSuchCommand rejects an unknown command and suggests similar ones.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "`" + cmd.CommandPath() + " --help` lists the commands"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	if args[0] == "mcp" {
		hint = "`memhost run --mcp` is what an MCP client starts"
	}
	return UsageError("no command is called "+Quote(args[0]), hint)
}

func (a *App) exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitHelp}
}

// configFlagNote is the annotation of a flag that sets a key of the configuration.
const configFlagNote = "memhost-config"

// AddConfigFlags gives a command the flags that set keys of the configuration, except those that every command has.
func AddConfigFlags(f *pflag.FlagSet) {
	PersonaIsUser(f)
	common := []string{"data", "log-level", "log-format"}
	for _, key := range config.Keys() {
		if key.Flag == "" || slices.Contains(common, key.Flag) {
			continue
		}
		doc := strings.TrimSuffix(key.Doc, ".")
		about := strings.ToLower(doc[:1]) + doc[1:] + " (" + key.Path + ")"
		if _, list := key.Default.([]string); list {
			f.StringArray(key.Flag, nil, about+"; repeatable")
		} else {
			f.String(key.Flag, "", about)
		}
		_ = f.SetAnnotation(key.Flag, configFlagNote, []string{key.Path})
	}
}

// changedConfigFlags returns the flags of AddConfigFlags that were set.
func changedConfigFlags(cmd *cobra.Command) map[string]any {
	more := map[string]any{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Annotations[configFlagNote] == nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			more[f.Name] = list.GetSlice()
		} else {
			more[f.Name] = f.Value.String()
		}
	})
	return more
}

// ConfigOptions returns how the configuration is read for this command line.
func (a *App) ConfigOptions() (config.Options, error) {
	o := config.Options{File: a.Flags.Config, NamedFileOnly: a.MCP == MCPStdio || a.NamedFileOnly,
		Environ: a.Environ, Flags: map[string]any{}, Known: a.KnownProviders(), Module: a.ProvidersOf,
		Check: a.checkBlock}
	maps.Copy(o.Flags, a.Flags.more)
	common := map[string]string{"data": a.Flags.Data, "log-level": a.Flags.LogLevel, "log-format": a.Flags.LogFormat}
	for name, v := range common {
		if v != "" {
			o.Flags[name] = v
		}
	}
	for _, pair := range a.Flags.Set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return o, UsageError("--set: found "+Quote(pair)+", want KEY=VALUE", "for example --set memory.tokenizer=o200k_base")
		}
		o.Flags[key] = value
	}
	return o, nil
}

// Config reads the configuration, once.
func (a *App) Config() (*config.Config, error) {
	if a.Loaded != nil {
		return a.Loaded, nil
	}
	o, err := a.ConfigOptions()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(o)
	if err != nil {
		return nil, err
	}
	a.Loaded = c
	return c, nil
}

// Logger writes to standard error. quiet is the level if neither configuration nor flags set one.
func (a *App) Logger(quiet hclog.Level) hclog.Logger {
	if a.log != nil {
		return a.log
	}
	level, format := a.Flags.LogLevel, a.Flags.LogFormat
	if c := a.Loaded; c != nil {
		format = c.Log.Format
		kind := c.Source("log.level").Kind
		if kind != config.KindDefault && (!a.OwnLogLevel || kind != config.KindFile) {
			level = c.Log.Level
		}
	}
	at := hclog.LevelFromString(level)
	if at == hclog.NoLevel {
		at = quiet
	}
	a.log = hclog.New(&hclog.LoggerOptions{Name: "memhost", Level: at, Output: a.Out.Stderr, JSONFormat: format == "json",
		TimeFn: a.Now})
	return a.log
}
