package hookcmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const agentHookHelp = `Runs as a command hook of %[1]s, once for each event: the event comes in on standard input, and the answer goes to
standard output. "memhost hook install %[2]s" writes it into the agent's settings.

At UserPromptSubmit and SessionStart the model gets the memory context. At Stop the turn is put on disk, and a process of its own
delivers it to the slot: the agent does not wait for that. Nothing is recorded of sub-agents, of /loop and other scheduled
prompts, and of results of background tasks.

Whose memory it is: --run and --user, in which {project} stands for the repository that the agent works in, and {person} for the
name of the user on this computer.

With MEMHOST_HOOK=read in its environment an agent's session gets context and is not recorded, with MEMHOST_HOOK=off neither.

It never stops the agent: it ends within --timeout and with exit code 0, whatever happens.`

// hookAgents lists the agents with command hooks, by their names in memhost.
var hookAgents = []struct{ name, title string }{{"claude-code", "Claude Code"}, {"codex", "Codex"}}

type agentHookFlags struct {
	cli.ScopeFlags
	maxTokens, maxItems int64
	timeout, linger     time.Duration
	outbox              string
	deliver             bool
}

func (a *commands) agentHookCommand(name, title string) *cobra.Command {
	var f agentHookFlags
	cmd := &cobra.Command{Use: name, Short: title + "'s command hook", Long: fmt.Sprintf(agentHookHelp, title, name),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.hookGivesUp(fmt.Errorf("no argument is wanted, found %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.agentHook(cmd.Context(), name, &f)
			return nil
		}}
	// An agent takes exit code 2 for "block this", and usage errors end with 2.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return a.hookGivesUp(err) })
	fs := cmd.Flags()
	fs.SortFlags = false
	f.Add(fs)
	f.Run, f.User = agenthook.PlaceProject, agenthook.PlacePerson
	fs.Lookup("run").DefValue, fs.Lookup("user").DefValue = f.Run, f.User
	fs.Lookup("run").Usage, fs.Lookup("user").Usage = "run id",
		"whose memory: user_id in events, persona_id in scopes; --persona means the same"
	fs.Int64Var(&f.maxTokens, "max-tokens", agenthook.DefaultMaxTokens,
		"the most tokens of context; the agent shows its model no more than 10,000 characters whole")
	fs.Int64Var(&f.maxItems, "max-items", 0, "the most items of the backend; 0 means no limit")
	fs.DurationVar(&f.timeout, "timeout", 4*time.Second, "how long the agent waits for its context")
	fs.DurationVar(&f.linger, "linger", 0, "deliver turns in this process, for at most this long; 0 means in a "+
		"process of its own that the agent does not wait for")
	fs.StringVar(&f.outbox, "outbox", "", "folder for turns that wait for the slot (default: outbox in the data "+
		"folder, apart for each --server)")
	fs.BoolVar(&f.deliver, "deliver", false, "be the process that delivers")
	_ = fs.MarkHidden("deliver")
	return cmd
}

// hookGivesUp ends a hook whose command line is wrong, without stopping the agent.
func (a *commands) hookGivesUp(err error) error {
	a.Out.Note("memhost: no memory: %s", err)
	return cli.Done(cli.ExitOK)
}

// The modes that MEMHOST_HOOK sets for an agent's session.
const (
	hookReads = "read"
	hookOff   = "off"
)

// hookCloses is how long a hook waits while it closes what it opened. Nothing is lost if that is cut off.
const hookCloses = time.Second

// deliversWithin bounds the delivering process, of which only one runs at a time. Events that it cannot deliver wait
// for the next one.
const deliversWithin = 10 * time.Minute

// agentHook serves one event.
func (a *commands) agentHook(ctx context.Context, agent string, f *agentHookFlags) {
	if a.Getenv("MEMHOST_HOOK") == hookOff {
		return
	}
	a.Door = wire.DoorHook
	ctx = traceparent.Accept(ctx, a.Getenv(traceparent.Variable)) // from an agent that makes spans itself
	a.NamedFileOnly = true                                        // the folder's memhost.yaml may belong to someone else
	line := cli.NewSlotLine(ctx, a.reachForHook(), nil)
	o, err := a.agentHookOptions(agent, f, line)
	o.Problem = err
	if err == nil && f.deliver {
		within, cancel := context.WithTimeout(ctx, deliversWithin)
		defer cancel()
		o.Box.DeliverAlone(within, o.Slot)
	} else {
		agenthook.Run(ctx, o, a.Stdin, a.Stdout)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		line.Close()
	}()
	select {
	case <-closed:
	case <-time.After(hookCloses):
	}
}

func (a *commands) agentHookOptions(agent string, f *agentHookFlags, line *cli.SlotLine) (o agenthook.Options, err error) {
	log, mode := a.Logger(hclog.Warn), a.Getenv("MEMHOST_HOOK")
	slot := agentSlot{hookSlot{line}}
	o = agenthook.Options{Agent: agent, Slot: slot, Timeout: f.timeout, NoRecord: mode == hookReads, Now: a.Now,
		Logger: log,
		Person: cli.Person(), Dir: a.Getenv("CLAUDE_PROJECT_DIR"), Scope: f.Scope()}
	if f.maxTokens > 0 {
		o.Budget.MaxTokens = &f.maxTokens
	}
	if f.maxItems > 0 {
		o.Budget.MaxItems = &f.maxItems
	}
	if err := agenthook.CheckPlaces(o.Scope); err != nil {
		return o, err
	}
	if mode != "" && mode != hookReads { // perhaps "OFF", so record nothing
		return o, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("MEMHOST_HOOK: found %q, want %s or %s", mode,
			hookReads, hookOff))
	}
	dir, err := a.outboxDir(f.outbox)
	if err != nil {
		return o, err
	}
	o.Folder = filepath.Join(dir, "prompts", agent)
	o.Box, err = outbox.Open(dir, outbox.Options{Logger: log, Now: a.Now})
	if err != nil {
		return o, err
	}
	o.Deliver = func() { a.deliverBeside(f.linger, o.Box, slot, log) }
	return o, nil
}

// deliverBeside starts a process that delivers the events in the box, or delivers them in this process for at most
// linger.
func (a *commands) deliverBeside(linger time.Duration, box *outbox.Box, slot agenthook.Slot, log hclog.Logger) {
	if linger > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), linger)
		defer cancel()
		box.Deliver(ctx, slot)
		return
	}
	program, err := os.Executable()
	if err != nil {
		log.Warn("turns wait on disk: no process to deliver them could be started", "error", err)
		return
	}
	cmd := exec.Command(program, append(a.Args[:len(a.Args):len(a.Args)], "--deliver")...)
	cmd.Env = a.Environ
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		log.Warn("turns wait on disk: no process to deliver them could be started", "error", err)
		return
	}
	_ = cmd.Process.Release()
}

// agentSlot is a hookSlot with FormatContext.
type agentSlot struct{ hookSlot }

var _ agenthook.Slot = agentSlot{}

// Capabilities implements agenthook.Slot.
func (s agentSlot) Capabilities(ctx context.Context) (answer *report.Capabilities, err error) {
	err = s.line.Use(ctx, func(ctx context.Context, c host.Contract) (err error) {
		answer, err = c.Capabilities(ctx)
		return err
	})
	return answer, err
}

// FormatContext implements agenthook.Slot.
func (s agentSlot) FormatContext(ctx context.Context, request *abi.FormatRequest) (answer *abi.FormatResult,
	err error) {
	err = s.line.Use(ctx, func(ctx context.Context, c host.Contract) (err error) {
		answer, err = c.FormatContext(ctx, request)
		return err
	})
	return answer, err
}
