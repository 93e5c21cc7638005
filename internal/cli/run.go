package cli

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/config"
)

const runHelp = `Serves the slot over HTTP on loopback (server.listen, 127.0.0.1:7077) until SIGTERM or Ctrl-C. Calls under way may end then (server.shutdown_ms); a
second signal stops at once.

With no configuration at all full_history serves, on this disk. A listener off loopback wants a bearer token in MEMHOST_TOKEN.

POST /v1/swap exchanges the provider while the slot serves. Its "plugin" is the name of a built-in module, or a wasm file of this computer by its
absolute path; without "config" the block counts that the configuration has for the provider.`

func (a *app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "run", Short: "Serve a slot", Long: runHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context()) },
	}
	addConfigFlags(cmd.Flags())
	cmd.Flags().StringVar(&a.cassette, "cassette", "", "record everything into a new file, for `memhost replay`")
	return cmd
}

func (a *app) run(ctx context.Context) error {
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
	}
	s.pass("config", what)
	starting, stop := a.untilInterrupted(ctx)
	slot, err := a.start(starting, c, o, a.getenv("MEMHOST_TOKEN"), s)
	stop()
	if err != nil {
		return err
	}
	defer slot.close()
	if s.log == nil {
		a.out.note("\nServing %s at %s (docs at /docs). Ctrl-C ends.", slot.provider(ctx), slot.url)
	}
	if a.out.json {
		if err := a.out.object(map[string]any{"url": slot.url, "data": c.Data.Dir, "provider": slot.provider(ctx)}); err != nil {
			return err
		}
	}
	return slot.serveUntilSignal(a)
}

// steps shows the start of a slot as it goes: to people on standard error, or as log lines.
type steps struct {
	out *output
	log hclog.Logger // nil: people
	// quiet keeps the log to warnings after the start, too.
	quiet bool
}

func (s *steps) pass(name, detail string) {
	if s.log != nil {
		s.log.Info("step passed", "step", name, "detail", detail)
		return
	}
	s.out.note("%s %-11s %s", s.out.passed(), name, printable(detail))
}

func (s *steps) fail(name string) {
	if s.log == nil {
		s.out.note("%s %s", s.out.broken(), name)
	}
}

// started lets the log speak, which kept quiet while the steps said it all.
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
