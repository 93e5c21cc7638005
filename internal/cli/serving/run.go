package serving

import (
	"cmp"
	"context"
	"os/exec"
	"runtime"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/places"
)

const runHelp = `Serves the slot over HTTP on loopback (server.listen, 127.0.0.1:7077) until SIGTERM or Ctrl-C. Calls under way may end then (server.shutdown_ms); a
second signal stops at once.

With no configuration at all the provider that served the data folder last serves again, in a new folder recall, the built-in memory, on this disk. A listener off loopback wants a bearer token in MEMHOST_TOKEN.

Before it serves a provider is tried out: one event under each of two throw-away scopes, which are erased afterwards (--smoke auto, always, never). A
backend that is slow to derive memory makes that pending, and the slot serves with this said. --dry-run walks all of it and ends.

With --mcp the Model Context Protocol is spoken on standard input and output: a client starts memhost as its child. The child speaks for the slot that runs
(--server, or that of the data folder), or opens one that ends with it. --mcp=http serves the slot as always, with MCP at /mcp. Either way a client
has the one scope of the configuration (--run, --user). A child reads no ./memhost.yaml, since the client chooses the folder: name the file with
--config or MEMHOST_CONFIG. docs/mcp.md has the clients' config blocks.

POST /v1/swap exchanges the provider while the slot serves. Its "plugin" is the name of a built-in module, or a wasm file of this computer by its
absolute path; without "config" the block counts that the configuration has for the provider.`

func (a *commands) runCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use: "run", SuggestFor: []string{"serve", "start"}, Short: "Serve a slot", Long: runHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.MCP == cli.MCPStdio {
				return a.runMCP(cmd.Context(), dry)
			}
			return a.run(cmd.Context(), dry)
		},
	}
	cli.AddConfigFlags(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "walk every step up to serving, then end")
	cmd.Flags().Var((*mcpTransport)(&a.MCP), "mcp", "speak MCP: stdio as a client's child, or http to serve it at /mcp")
	cmd.Flags().Lookup("mcp").NoOptDefVal = cli.MCPStdio
	cmd.Flags().StringVar(&a.Cassette, "cassette", "",
		"record everything into a new file, which memhost replay plays again")
	return cmd
}

func (a *commands) run(ctx context.Context, dry bool) error {
	o, err := a.ConfigOptions()
	if err != nil {
		return err
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	if err := places.Check(c.Scope()); err != nil {
		e := *abi.AsError(err)
		e.Hint = "a slot has one scope: name it; commands and hooks fill {project} and {person} for the folder they are in"
		return &e
	}
	s := &cli.Steps{Out: a.Out}
	if c.Log.Format == "json" || a.Out.JSON {
		s.Log = a.Logger(hclog.Info)
	}
	what := c.File
	if what == "" {
		what = "no file: defaults, environment and flags"
	} else if !slices.ContainsFunc(c.Paths(), func(path string) bool {
		return c.Source(path).Kind == config.KindFile
	}) {
		what += ", which sets nothing"
	}
	s.Pass("config", what)
	c, o, said, err := a.LastProvider(c, o)
	if err != nil {
		return err
	}
	if said != "" {
		s.Notef("%s", said)
	}
	starting, stop := a.UntilInterrupted(ctx)
	if dry {
		defer stop()
		return a.dryRun(starting, c, s)
	}
	slot, err := Start(starting, a.App, c, o, a.Getenv("MEMHOST_TOKEN"), s)
	stop()
	if err != nil {
		return err
	}
	defer slot.Close()
	if s.Log == nil {
		a.Out.Note("\nServing %s at %s (docs at /docs). Ctrl-C ends.", slot.provider(ctx), slot.URL)
		slot.NotePage(a.App)
		if a.MCP == cli.MCPHTTP {
			scope := c.Scope()
			a.Out.Note("MCP for run %s, user %s: %s%s", cli.Quote(scope.RunID), cli.Quote(scope.PersonaID), slot.URL, mcpPath)
		}
	}
	if a.Out.JSON {
		if err := a.Out.Object(map[string]any{"url": slot.URL, "data": c.Data.Dir,
			"provider": slot.provider(ctx)}); err != nil {
			return err
		}
	}
	return slot.ServeUntilSignal(a.App)
}

// NotePage prints the address of the page in the browser, if there is one.
func (v *ServedSlot) NotePage(a *cli.App) {
	if v.page != nil {
		a.Out.Note("The page: %s", v.page.Link(cmp.Or(a.Loaded.Server.PublicURL, v.URL)))
	}
}

// OpenPage opens the page in a browser if there is a display.
func (v *ServedSlot) OpenPage(ctx context.Context, a *cli.App) {
	program := "xdg-open"
	switch {
	case v.page == nil:
		return
	case runtime.GOOS == "darwin":
		program = "open"
	case a.Getenv("DISPLAY") == "" && a.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return
	}
	browser := exec.CommandContext(context.WithoutCancel(ctx), path, v.page.Link(v.URL))
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }() // the user sees whether it opened, and the address is printed
	}
}

// dryRun runs the steps of a swap and serves nothing. It locks the data folder and prints its steps as a serving slot
// does.
func (a *commands) dryRun(ctx context.Context, c *config.Config, s *cli.Steps) (err error) {
	m, err := a.ResolveChecked(c)
	if err != nil {
		s.Fail(cli.StepOf(m))
		return err
	}
	a.WarnOpenSecrets(c, s)
	cli.WarnOfConfig(c, m, s)
	o := a.HostOptions(c, a.Logger(hclog.Warn))
	o.KeepFormat = true // a dry run changes nothing permanently
	last := "data"
	o.OnStep = func(walked report.RunStep) {
		last = walked.Name
		s.Walked(walked, m)
	}
	if _, err := cli.BeginFolder(c); err != nil {
		s.Fail(last)
		return err
	}
	h, err := host.New(ctx, o)
	if err != nil {
		s.Fail(last)
		return err
	}
	defer func() {
		if closed := h.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
	}()
	s.Pass("data", c.Data.Dir)
	if c.Memory.Archive {
		s.Pass("archive", cli.ArchiveNote(c))
	}
	manifest, err := h.Try(ctx, cli.ServedConfig(c, m))
	if err != nil {
		s.Fail(last)
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(manifest)
	}
	a.Out.Note("\nThe dry run ends here: %s would serve.", manifest.Provider)
	return nil
}
