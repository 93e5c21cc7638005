package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
)

const runHelp = `Serves the slot over HTTP on loopback (server.listen, 127.0.0.1:7077) until SIGTERM or Ctrl-C. Calls under way may end then (server.shutdown_ms); a
second signal stops at once.

With no configuration at all the provider that served the data folder last serves again, in a new folder full_history, on this disk. A listener off loopback wants a bearer token in MEMHOST_TOKEN.

Before it serves a provider is tried out: one event under each of two throw-away scopes, which are erased afterwards (--smoke auto, always, never). A
backend that is slow to derive memory makes that pending, and the slot serves with this said. --dry-run walks all of it and ends.

With --mcp the Model Context Protocol is spoken on standard input and output: a client starts memhost as its child. The child speaks for the slot that runs
(--server, or that of the data folder), or opens one that ends with it. --mcp=http serves the slot as always, with MCP at /mcp. Either way a client
has the one scope of the configuration (--run, --user). A child reads no ./memhost.yaml, since the client chooses the folder: name the file with
--config or MEMHOST_CONFIG. docs/mcp.md has the clients' config blocks.

POST /v1/swap exchanges the provider while the slot serves. Its "plugin" is the name of a built-in module, or a wasm file of this computer by its
absolute path; without "config" the block counts that the configuration has for the provider.`

func (a *app) runCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use: "run", SuggestFor: []string{"serve", "start"}, Short: "Serve a slot", Long: runHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.mcp == mcpStdio {
				return a.runMCP(cmd.Context(), dry)
			}
			return a.run(cmd.Context(), dry)
		},
	}
	addConfigFlags(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "walk every step up to serving, then end")
	cmd.Flags().Var((*mcpTransport)(&a.mcp), "mcp", "speak MCP: stdio as a client's child, or http to serve it at /mcp")
	cmd.Flags().Lookup("mcp").NoOptDefVal = mcpStdio
	cmd.Flags().StringVar(&a.cassette, "cassette", "",
		"record everything into a new file, which memhost replay plays again")
	return cmd
}

func (a *app) run(ctx context.Context, dry bool) error {
	o, err := a.configOptions()
	if err != nil {
		return err
	}
	c, err := a.config()
	if err != nil {
		return err
	}
	s := &steps{out: a.out}
	if c.Log.Format == "json" || a.out.json {
		s.log = a.logger(hclog.Info)
	}
	what := c.File
	if what == "" {
		what = "no file: defaults, environment and flags"
	} else if !slices.ContainsFunc(c.Paths(), func(path string) bool {
		return c.Source(path).Kind == config.KindFile
	}) {
		what += ", which sets nothing"
	}
	s.pass("config", what)
	c, o, said, err := a.lastProvider(c, o)
	if err != nil {
		return err
	}
	if said != "" {
		s.notef("%s", said)
	}
	starting, stop := a.untilInterrupted(ctx)
	if dry {
		defer stop()
		return a.dryRun(starting, c, s)
	}
	slot, err := a.start(starting, c, o, a.getenv("MEMHOST_TOKEN"), s)
	stop()
	if err != nil {
		return err
	}
	defer slot.close()
	if s.log == nil {
		a.out.note("\nServing %s at %s (docs at /docs). Ctrl-C ends.", slot.provider(ctx), slot.url)
		a.notePage(slot)
		if a.mcp == mcpHTTP {
			scope := c.Scope()
			a.out.note("MCP for run %s, user %s: %s%s", quote(scope.RunID), quote(scope.PersonaID), slot.url, mcpPath)
		}
	}
	if a.out.json {
		if err := a.out.object(map[string]any{"url": slot.url, "data": c.Data.Dir,
			"provider": slot.provider(ctx)}); err != nil {
			return err
		}
	}
	return slot.serveUntilSignal(a)
}

// notePage tells the address of the page in the browser, if there is one.
func (a *app) notePage(slot *servedSlot) {
	if slot.page != nil {
		a.out.note("The page: %s", slot.page.Link(slot.url))
	}
}

// openPage opens the page in the browser of a person who sits at a display.
func (a *app) openPage(ctx context.Context, slot *servedSlot) {
	program := "xdg-open"
	switch {
	case slot.page == nil:
		return
	case runtime.GOOS == "darwin":
		program = "open"
	case a.getenv("DISPLAY") == "" && a.getenv("WAYLAND_DISPLAY") == "":
		return
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return
	}
	browser := exec.CommandContext(context.WithoutCancel(ctx), path, slot.page.Link(slot.url))
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }() // whether it opened is for the person to see: the address stands there
	}
}

// dryRun runs the swap flow and serves nothing. It takes the data folder and prints its steps as a serving slot does.
func (a *app) dryRun(ctx context.Context, c *config.Config, s *steps) (err error) {
	m, err := a.resolveChecked(c)
	if err != nil {
		s.fail(stepOf(m))
		return err
	}
	a.warnOpenSecrets(c, s)
	warnOfConfig(c, m, s)
	o := a.hostOptions(c, a.logger(hclog.Warn))
	last := "data"
	o.OnStep = func(walked abi.RunStep) {
		last = walked.Name
		s.walked(walked, m)
	}
	h, err := host.New(ctx, o)
	if err != nil {
		s.fail(last)
		return err
	}
	defer func() {
		if closed := h.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
	}()
	s.pass("data", c.Data.Dir)
	manifest, err := h.Try(ctx, servedConfig(c, m))
	if err != nil {
		s.fail(last)
		return err
	}
	if a.out.json {
		return a.out.value(manifest)
	}
	a.out.note("\nThe dry run ends here: %s would serve.", manifest.Provider)
	return nil
}

// steps shows the steps of a slot's start: to people on standard error, or as log lines.
type steps struct {
	out *output
	log hclog.Logger // nil: people
	// quiet keeps the log to warnings after the start, too.
	quiet bool
}

func (s *steps) pass(name, detail string) { s.tell("pass", name, detail) }

// tell shows a step, with its verdict unless it passed.
func (s *steps) tell(verdict, name, detail string) {
	if s.log != nil {
		s.log.Info("step", "step", name, "verdict", verdict, "detail", detail)
		return
	}
	mark := s.out.passed()
	if verdict != "pass" {
		mark, detail = s.out.open(), verdict+": "+detail
	}
	const indent = 19 // mark, name and the blanks after them
	detail = printable(detail)
	if s.out.errTTY {
		detail = strings.Join(wrap(detail, max(s.out.width-indent, 30)), "\n"+strings.Repeat(" ", indent))
	}
	s.out.note("%s %-16s %s", mark, name, detail)
}

func (s *steps) fail(name string) {
	if s.log == nil {
		s.out.note("%s %s", s.out.broken(), name)
	}
}

// started turns on the log, which is quiet while the steps are shown.
func (s *steps) started(log hclog.Logger, c *config.Config) {
	if s.log == nil && !s.quiet && c.Source("log.level").Kind == config.KindDefault {
		log.SetLevel(hclog.Info)
	}
}

func (s *steps) notef(format string, args ...any) {
	if s.log != nil {
		s.log.Warn(fmt.Sprintf(format, args...))
		return
	}
	s.out.note("  "+format, args...)
}
