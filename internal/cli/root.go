package cli

import (
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

  memhost run                        serve; with no configuration at all, full_history on this disk
  memhost record turns.jsonl         put conversations in
  memhost retrieve "what tea?"       see what an agent would get
`

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "memhost", Short: "one memory slot for an agent", Long: rootHelp,
		SilenceUsage: true, SilenceErrors: true,
	}
	version := root.Flags().BoolP("version", "v", false, "version for memhost")
	root.Args = func(cmd *cobra.Command, args []string) error {
		if *version {
			return nil
		}
		return noSuchCommand(cmd, args)
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			a.out.print("%s", a.versionText())
			return nil
		}
		return cmd.Help()
	}
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(wrapUsage)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.BoolVar(&a.flags.json, "json", false, "print results, and errors, as JSON on standard output")
	f.StringVar(&a.flags.server, "server", "", "URL or HOST:PORT of a running slot (MEMHOST_SERVER); its token, "+
		"if it has one, comes from MEMHOST_TOKEN")
	f.StringVar(&a.flags.config, "config", "", "configuration file (MEMHOST_CONFIG; ./memhost.yaml where it exists)")
	f.StringVar(&a.flags.data, "data", "", "data folder; commands look there for a running slot, too")
	f.StringArrayVar(&a.flags.set, "set", nil, "set a key of the configuration, as memory.tokenizer=o200k_base "+
		"(repeatable)")
	f.StringVar(&a.flags.logLevel, "log-level", "", "debug, info, warn or error")
	f.StringVar(&a.flags.logFormat, "log-format", "", "text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.out.json = a.flags.json
		a.flags.more = changedConfigFlags(cmd)
		f := cmd.Flags().Lookup("persona")
		renamed := f != nil && f.Name == "user" && slices.ContainsFunc(a.Args, isPersona)
		if renamed && slices.ContainsFunc(a.Args, isUser) {
			return usageError("--persona and --user are one flag: give one", "")
		}
		if renamed && !a.out.json && a.mcp != mcpStdio {
			a.out.note("  --persona is --user: commands have one name for it")
		}
		return nil
	}
	groups := []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"serve", "Serve:", []*cobra.Command{a.runCommand(), a.demoCommand(), a.initCommand(), a.configCommand(),
			a.clusterCommand()}},
		{"use", "Use a slot (one that runs, or a data folder that nobody owns):", []*cobra.Command{a.recordCommand(),
			a.retrieveCommand(), a.askCommand(), a.healthCommand(), a.setupCommand(), a.resetCommand(),
			a.forgetCommand(), a.modeCommand(), a.swapCommand(), a.backfillCommand(), a.shadowCommand(),
			a.readinessCommand(), a.inventoryCommand(), a.provenanceCommand(), a.queryCommand(), a.mutateCommand(),
			a.ledgerCommand(), a.dreamCommand(), a.exportCommand(), a.importCommand(), a.archiveCommand()}},
		{"agents", "Plug into an agent:", []*cobra.Command{a.hookCommand()}},
		{"runs", "Show how a run was:", []*cobra.Command{a.manifestCommand(), a.replayCommand()}},
		{"modules", "Modules:", []*cobra.Command{a.providersCommand(), a.inspectCommand(), a.newCommand(),
			a.buildCommand(), a.conformanceCommand(), a.backendCommand(),
			a.packCommand(), a.pushCommand(), a.pullCommand(), a.signCommand()}},
		{"measure", "Compare:", []*cobra.Command{a.evalCommand()}},
		{"", "", []*cobra.Command{a.versionCommand(), a.manCommand(), a.exitCodesTopic()}},
	}
	for _, g := range groups {
		if g.id != "" {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			cmd.Flags().SortFlags = false
			wrapArgs(cmd)
			root.AddCommand(cmd)
		}
	}
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion"}); err == nil && cmd != root {
		cmd.Args = noSuchCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return root
}

func isPersona(arg string) bool { return arg == "--persona" || strings.HasPrefix(arg, "--persona=") }

// isUser reports whether an argument is --user.
func isUser(arg string) bool { return arg == "--user" || strings.HasPrefix(arg, "--user=") }

// wrapArgs makes the errors of a command's own check of its arguments usage errors, and those of its subcommands.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return wrapUsage(cmd, err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// noSuchCommand refuses an unknown command, and names similar ones.
func noSuchCommand(cmd *cobra.Command, args []string) error {
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
	return usageError("no command is called "+quote(args[0]), hint)
}

func (a *app) exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitHelp}
}

// configFlagNote marks a flag that sets a key of the configuration.
const configFlagNote = "memhost-config"

// addConfigFlags gives a command the flags that set keys of the configuration, except those that every command has.
func addConfigFlags(f *pflag.FlagSet) {
	personaIsUser(f)
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

// changedConfigFlags are the flags of addConfigFlags that were given.
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

// configOptions are how the configuration is read for this command line.
func (a *app) configOptions() (config.Options, error) {
	o := config.Options{File: a.flags.config, NamedFileOnly: a.mcp == mcpStdio || a.namedFileOnly,
		Environ: a.Environ, Flags: map[string]any{}, Known: a.knownProviders(), Module: a.providersOf,
		Check: a.checkBlock}
	maps.Copy(o.Flags, a.flags.more)
	common := map[string]string{"data": a.flags.data, "log-level": a.flags.logLevel, "log-format": a.flags.logFormat}
	for name, v := range common {
		if v != "" {
			o.Flags[name] = v
		}
	}
	for _, pair := range a.flags.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return o, usageError("--set: found "+quote(pair)+", want KEY=VALUE", "for example --set memory.tokenizer=o200k_base")
		}
		o.Flags[key] = value
	}
	return o, nil
}

// config reads the configuration, once.
func (a *app) config() (*config.Config, error) {
	if a.loaded != nil {
		return a.loaded, nil
	}
	o, err := a.configOptions()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(o)
	if err != nil {
		return nil, err
	}
	a.loaded = c
	return c, nil
}

// logger writes to standard error. quiet is the level when neither configuration nor flags set one.
func (a *app) logger(quiet hclog.Level) hclog.Logger {
	if a.log != nil {
		return a.log
	}
	level, format := a.flags.logLevel, a.flags.logFormat
	if c := a.loaded; c != nil {
		format = c.Log.Format
		kind := c.Source("log.level").Kind
		if kind != config.KindDefault && (!a.ownLogLevel || kind != config.KindFile) {
			level = c.Log.Level
		}
	}
	at := hclog.LevelFromString(level)
	if at == hclog.NoLevel {
		at = quiet
	}
	a.log = hclog.New(&hclog.LoggerOptions{Name: "memhost", Level: at, Output: a.Stderr, JSONFormat: format == "json",
		TimeFn: a.Now})
	return a.log
}
