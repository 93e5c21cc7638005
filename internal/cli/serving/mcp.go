package serving

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// mcpPath is the path of MCP at the HTTP door.
const mcpPath = "/mcp"

// mcpTransport is the value of --mcp.
type mcpTransport string

// String implements pflag.Value.
func (t *mcpTransport) String() string { return string(*t) }

// Type implements pflag.Value.
func (t *mcpTransport) Type() string { return "transport" }

// Set implements pflag.Value.
func (t *mcpTransport) Set(s string) error {
	if s != cli.MCPStdio && s != cli.MCPHTTP {
		return errors.New("want stdio or http")
	}
	*t = mcpTransport(s)
	return nil
}

// mcpDoor makes the MCP door of the configured scope.
func (a *commands) mcpDoor(c *config.Config, slot mcpdoor.Slot, tracer host.Tracer, log hclog.Logger) (*mcpdoor.Door,
	error) {
	scope := c.Scope()
	if a.MCP == cli.MCPStdio {
		if err := agenthook.CheckPlaces(scope); err != nil {
			return nil, err
		}
		scope = a.scopeOfFolder(scope)
	}
	return mcpdoor.New(mcpdoor.Options{Slot: slot, Scope: scope, AgentID: scope.AgentID, Session: c.MCP.Session,
		MaxTokens: c.MCP.MaxTokens, Query: c.MCP.Query, Allow: c.MCP.Allow, NativeTools: c.MCP.NativeTools,
		OneClient: a.MCP == cli.MCPStdio, Tracer: tracer, Now: a.Now, Version: a.Version().Version, Logger: log})
}

// scopeOfFolder fills the placeholders of a scope with the project and the person, as the hooks of agents do.
func (a *commands) scopeOfFolder(scope abi.MemoryScope) abi.MemoryScope {
	dir := a.Getenv("CLAUDE_PROJECT_DIR")
	if dir == "" {
		dir = "." // where the client has started its child
	}
	return agenthook.Expand(scope, agenthook.Project(dir), cli.Person())
}

// runMCP serves one client on standard input and output, until the input ends or a signal comes.
func (a *commands) runMCP(ctx context.Context, dry bool) error {
	out := a.Stdout
	a.Out.Stdout, a.Out.JSON = a.Out.Stderr, false // standard output belongs to the protocol
	if dry || a.Cassette != "" {
		return cli.UsageError("--mcp: speaks for a slot that may run already, and goes with neither --dry-run nor --cassette",
			"--mcp=http serves a slot of its own")
	}
	o, err := a.ConfigOptions()
	if err != nil {
		return err
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	log := a.Logger(hclog.Warn)
	// When the client has gone, the next write fails. The process must survive that to close its slot properly.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	a.Door = wire.DoorMCP
	var traced host.Options // only the tracer matters: the host comes later, if at all
	if a.Spans, err = a.SpansInto(&traced, c, log); err != nil {
		return err
	}
	defer a.Spans.Close()
	child := &mcpChild{app: a, config: c, options: o}
	line := cli.NewSlotLine(ctx, child.reach, child.explainGone)
	defer line.Close()
	door, err := a.mcpDoor(c, line.Use, traced.Tracer, log)
	if err != nil {
		return err
	}
	go func() { // prepares the first call without making the client wait
		if err := door.ReadMode(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the slot cannot be asked yet; each call tries again", "error", err)
		}
	}()
	return door.ServeStdio(ctx, a.Stdin, out, callsWithin(time.Duration(c.Server.ShutdownMS)*time.Millisecond))
}

// mcpChild is how the child of an MCP client reaches its slot.
type mcpChild struct {
	app     *commands
	config  *config.Config
	options config.Options
	// follow is set if the slot that was found last was started by the operator. While it is down the child waits for
	// it and does not replace it, so that the data folder is free when the operator starts the slot again.
	follow bool
}

// explainGone adds what to do to the error of a slot that does not answer.
func (m *mcpChild) explainGone(err error) error {
	e := *abi.AsError(err)
	e.Retryable = true
	e.Hint = "start the slot again (memhost run --data " + m.config.Data.Dir +
		"); the next call finds it, this process need not be restarted"
	if named := m.app.ServerNamed(); named != "" {
		e.Hint = "start the slot at " + named + " again; the next call finds it, this process need not be restarted"
	}
	return &e
}

// reach finds the slot, or opens one.
func (m *mcpChild) reach(ctx context.Context) (_ *cli.Door, err error) {
	a := m.app
	defer func() {
		if err != nil {
			a.Logger(hclog.Warn).Debug("no way to the slot", "error", err)
		}
	}()
	if named := a.ServerNamed(); named != "" {
		return a.DialNamed(ctx, named)
	}
	var d *cli.Door
	// Another process may be opening the folder, perhaps another child.
	err = a.OnceFree(ctx, 10*cli.FolderTries, func() (err error) {
		d, err = a.Running(ctx, m.config)
		switch {
		case err != nil:
		case d != nil:
			m.follow = !d.Child
		case m.follow:
			err = m.explainGone(abi.NewError(abi.CodeUnavailable,
				"the slot of "+m.config.Data.Dir+" does not run any more").WithReason(client.ReasonNoSlot))
		default:
			d, err = m.open(ctx)
		}
		return err
	})
	return d, err
}

// open serves a slot in this process, also for other programs on this computer. Unless the configuration names an
// address it listens on a free port, because the usual one is for long-running slots.
func (m *mcpChild) open(ctx context.Context) (*cli.Door, error) {
	again, options, _, err := m.app.LastProvider(m.config, m.options)
	if err != nil {
		return nil, err
	}
	c := *again
	if c.Source("server.listen").Kind == config.KindDefault {
		c.Server.Listen = "127.0.0.1:0"
	}
	v, err := Start(ctx, m.app.App, &c, options, m.app.Getenv("MEMHOST_TOKEN"), &cli.Steps{Out: m.app.Out,
		Log: m.app.Logger(hclog.Warn), Quiet: true})
	if err != nil {
		return nil, err
	}
	return &cli.Door{Contract: v.slot, Close: func() { // after ServeStdio, so calls under way have had their time
		v.endBy = time.Now().Add(v.within - callsWithin(v.within))
		v.Close()
	}}, nil
}
