package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/client"
	"github.com/memhost/memhost/internal/config"
	"github.com/memhost/memhost/internal/mcpdoor"
)

// What --mcp takes.
const (
	mcpStdio = "stdio"
	mcpHTTP  = "http"
	// mcpPath is where the HTTP door has MCP.
	mcpPath = "/mcp"
)

// mcpTransport is --mcp.
type mcpTransport string

// String implements pflag.Value.
func (t *mcpTransport) String() string { return string(*t) }

// Type implements pflag.Value.
func (t *mcpTransport) Type() string { return "transport" }

// Set implements pflag.Value.
func (t *mcpTransport) Set(s string) error {
	if s != mcpStdio && s != mcpHTTP {
		return errors.New("want stdio or http")
	}
	*t = mcpTransport(s)
	return nil
}

// mcpDoor makes the MCP door of the configured scope.
func (a *app) mcpDoor(c *config.Config, slot mcpdoor.Slot, log hclog.Logger) (*mcpdoor.Door, error) {
	scope := c.Scope()
	return mcpdoor.New(mcpdoor.Options{Slot: slot, Scope: scope, AgentID: scope.AgentID, Session: c.MCP.Session, MaxTokens: c.MCP.MaxTokens, Query: c.MCP.Query, Allow: c.MCP.Allow,
		OneClient: a.mcp == mcpStdio, Now: a.Now, Version: a.version().Version, Logger: log})
}

// runMCP serves one client on standard input and output, until the input ends or a signal comes.
func (a *app) runMCP(ctx context.Context, dry bool) error {
	out := a.Stdout
	a.out.stdout, a.out.json = a.Stderr, false // standard output is the protocol's
	if dry || a.cassette != "" {
		return usageError("--mcp: speaks for a slot that may run already, and goes with neither --dry-run nor --cassette", "--mcp=http serves a slot of its own")
	}
	o, err := a.configOptions()
	if err != nil {
		return err
	}
	c, err := a.config()
	if err != nil {
		return err
	}
	log := a.logger(hclog.Warn)
	// A client that has gone is an error of the next write, not the end of the process: a slot of our own is closed in order.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	ctx, stop := a.untilInterrupted(ctx)
	defer stop()
	line := newChildLine(context.WithoutCancel(ctx), a, c, o)
	defer line.close()
	door, err := a.mcpDoor(c, line.use, log)
	if err != nil {
		return err
	}
	go func() { // the client need not wait for what its first call needs
		if err := door.Look(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the slot cannot be asked yet; each call tries again", "error", err)
		}
	}()
	return door.ServeStdio(ctx, a.Stdin, out, time.Duration(c.Server.ShutdownMS)*time.Millisecond)
}

// childLine is the connection of an MCP child to its slot: made when it is first needed, and again after it broke.
type childLine struct {
	app     *app
	config  *config.Config
	options config.Options
	life    context.Context // of the child
	end     context.CancelFunc

	mu      sync.Mutex
	door    *door         // nil: none
	attempt *childAttempt // to connect, under way
	// follow: the slot that was found is the operator's own. While it is gone it is waited for, not replaced: whoever starts it again would else find
	// the data folder taken.
	follow bool
	ended  bool
}

// childAttempt is one try to connect, for all who wait for it.
type childAttempt struct {
	done chan struct{}
	door *door
	err  error
}

func newChildLine(ctx context.Context, a *app, c *config.Config, o config.Options) *childLine {
	l := &childLine{app: a, config: c, options: o}
	l.life, l.end = context.WithCancel(ctx)
	return l
}

// reasonOpening is the reason of the error that the slot was not reached within the caller's time.
const reasonOpening = "opening"

// use is a mcpdoor.Slot.
func (l *childLine) use(ctx context.Context, do func(ctx context.Context, c host.Contract) error) error {
	for again := false; ; again = true {
		d, err := l.get(ctx)
		if err != nil {
			return err
		}
		err = do(ctx, d)
		if !isLost(err) || d.address == "" {
			return err
		}
		l.drop(d)
		if again || ctx.Err() != nil {
			return l.gone(err)
		}
	}
}

// isLost tells whether an error is of the way to the slot.
func isLost(err error) bool {
	if abi.CodeOf(err) != abi.CodeUnavailable {
		return false
	}
	reason := abi.AsError(err).Reason
	return reason == client.ReasonNoSlot || reason == client.ReasonConnection || reason == client.ReasonNotASlot
}

// gone says what to do about a slot that does not answer.
func (l *childLine) gone(err error) error {
	e := *abi.AsError(err)
	e.Retryable = true
	e.Hint = "start the slot again (memhost run --data " + l.config.Data.Dir + "); the next call finds it, this process need not be restarted"
	if named := l.app.serverNamed(); named != "" {
		e.Hint = "start the slot at " + named + " again; the next call finds it, this process need not be restarted"
	}
	return &e
}

// get gives the door to the slot. An attempt to connect goes on when its caller's time is over: the next one finds what came of it.
func (l *childLine) get(ctx context.Context) (*door, error) {
	l.mu.Lock()
	if l.door != nil || l.ended {
		defer l.mu.Unlock()
		if l.ended {
			return nil, abi.NewError(abi.CodeUnavailable, "this process is ending").WithReason("stopping")
		}
		return l.door, nil
	}
	t := l.attempt
	if t == nil {
		t = &childAttempt{done: make(chan struct{})}
		l.attempt = t
		go l.connect(t)
	}
	l.mu.Unlock()
	select {
	case <-t.done:
		return t.door, t.err
	case <-ctx.Done():
		return nil, abi.WrapError(abi.CodeUnavailable, "the slot is still being opened", ctx.Err()).WithReason(reasonOpening).WithHint("call again in a moment")
	}
}

func (l *childLine) connect(t *childAttempt) {
	t.door, t.err = l.reach()
	if t.err != nil {
		l.app.logger(hclog.Warn).Debug("no way to the slot", "error", t.err)
	}
	l.mu.Lock()
	l.door, l.attempt = t.door, nil
	l.mu.Unlock()
	close(t.done)
}

// reach finds the slot, or opens one.
func (l *childLine) reach() (*door, error) {
	a, ctx := l.app, l.life
	if named := a.serverNamed(); named != "" {
		return a.dial(named)
	}
	for try := 0; ; try++ {
		d, err := a.running(ctx, l.config)
		if err != nil {
			return nil, err
		}
		if d != nil {
			l.follow = !d.child
			return d, nil
		}
		if l.follow {
			return nil, l.gone(abi.NewError(abi.CodeUnavailable, "the slot of "+l.config.Data.Dir+" does not run any more").WithReason(client.ReasonNoSlot))
		}
		d, err = l.open(ctx)
		if abi.CodeOf(err) != abi.CodeUnavailable || abi.AsError(err).Reason != reasonOwned {
			return d, err
		}
		// Somebody opens the folder at this moment, perhaps another child.
		if try == 10*folderTries || ctx.Err() != nil {
			owned := *abi.AsError(err)
			owned.Retryable = true
			return nil, &owned
		}
		a.Sleep(ctx, folderPause)
	}
}

// open serves a slot in this process, for others on this computer as well. Unless the configuration says where, it listens on a free port: the
// usual one is for slots that stay.
func (l *childLine) open(ctx context.Context) (*door, error) {
	c := *l.config
	if c.Source("server.listen").Kind == config.KindDefault {
		c.Server.Listen = "127.0.0.1:0"
	}
	v, err := l.app.start(ctx, &c, l.options, l.app.getenv("MEMHOST_TOKEN"), &steps{out: l.app.out, log: l.app.logger(hclog.Warn), quiet: true})
	if err != nil {
		return nil, err
	}
	return &door{Contract: v.slot, close: v.close}, nil
}

// drop forgets a door behind which no slot answers.
func (l *childLine) drop(d *door) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.door == d {
		l.door = nil
		d.close()
	}
}

// close ends the line, and the slot if it is our own.
func (l *childLine) close() {
	l.mu.Lock()
	l.ended = true
	t := l.attempt
	l.mu.Unlock()
	l.end()
	if t != nil {
		<-t.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.door != nil {
		l.door.close()
	}
}
