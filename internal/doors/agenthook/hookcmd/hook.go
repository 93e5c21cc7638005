package hookcmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/picoclaw"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const picoclawHelp = `Runs as PicoClaw's process hook, on standard input and output: the memory context is at the end of the user's message
whenever the model is called, and each turn is recorded when it ends. PicoClaw starts it itself:

  {"hooks": {"enabled": true, "defaults": {"interceptor_timeout_ms": 8000},
    "processes": {"memhost": {"enabled": true, "priority": 50, "transport": "stdio",
      "command": ["memhost", "hook", "picoclaw", "--server", "127.0.0.1:7077", "--run", "home", "--user", "ann"],
      "observe": ["agent.turn.end"], "intercept": ["before_llm"]}}}}

The memory is that of the flags or of the configuration; nothing that is said in a conversation leads to another. In
--run, --user and --agent, {channel}, {sender_id}, {agent} and {session} stand for what PicoClaw says of who speaks:
--user '{channel}-{sender_id}' is a memory for each person. A memory is for the first person who speaks: all others
have none, unless --shared says that they share it.

Without --server and without a slot that runs, the hook opens the data folder itself, and nobody else can have it
meanwhile.

Nothing here can stop the agent: when the slot is down or slow a turn has no context, which standard error says, and
what is to be recorded waits on disk. The hook works in a child process, which is started again when it dies.`

type picoclawFlags struct {
	cli.ScopeFlags
	maxTokens, maxItems int64
	timeout, linger     time.Duration
	outbox, session     string
	shared, worker      bool
}

func (a *commands) hookCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hook", Short: "Be the memory of an agent, as its child process", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.noSuchAgent(cmd, args)
			}
			return cmd.Help()
		}}
	cmd.FParseErrWhitelist.UnknownFlags = true // report a misspelt agent, not the flags that it would have
	cmd.AddCommand(a.picoclawCommand())
	for _, agent := range hookAgents {
		cmd.AddCommand(a.agentHookCommand(agent.name, agent.title))
	}
	cmd.AddCommand(a.hookInstallCommand())
	return cmd
}

// noSuchAgent rejects a misspelt command. An agent takes exit code 2 of its hook for "block this prompt", so a word
// that may be an agent's name in its settings ends with 0 and a message. Only a misspelt install is a usage error.
func (a *commands) noSuchAgent(cmd *cobra.Command, args []string) error {
	var agents []string
	for _, c := range cmd.Commands() {
		agents = append(agents, c.Name())
	}
	if abi.Nearest(args[0], agents) == "install" {
		return cli.NoSuchCommand(cmd, args)
	}
	agents = slices.DeleteFunc(agents, func(name string) bool { return name == "install" })
	return a.hookGivesUp(fmt.Errorf("no agent is called %q%s", args[0], abi.Suggest(args[0], agents)))
}

func (a *commands) picoclawCommand() *cobra.Command {
	var f picoclawFlags
	cmd := &cobra.Command{Use: "picoclaw", Short: "PicoClaw's process hook", Long: picoclawHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.picoclaw(cmd, &f) }}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Int64Var(&f.maxTokens, "max-tokens", 8000, "the most tokens of context; 0 means no limit, but PicoClaw takes "+
		"no request beyond 1 MiB")
	fs.Int64Var(&f.maxItems, "max-items", 0, "the most items of the backend; 0 means no limit")
	fs.DurationVar(&f.timeout, "timeout", 4*time.Second,
		"how long a turn waits for its context; less than PicoClaw's interceptor_timeout_ms, which is 5 s by default")
	fs.DurationVar(&f.linger, "linger", 1500*time.Millisecond,
		"how long to go on delivering after PicoClaw has ended; it kills a hook after 2 s")
	fs.StringVar(&f.outbox, "outbox", "", "folder for turns that wait for the slot (default: outbox in the data "+
		"folder, apart for each --server)")
	fs.StringVar(&f.session, "session", "", "the session_id of everything (default: PicoClaw's session key), for a token of "+
		"one session")
	fs.BoolVar(&f.shared, "shared", false, "several people may speak to the agent and share one memory")
	fs.BoolVar(&f.worker, "worker", false, "be the process that does the work")
	_ = fs.MarkHidden("worker")
	return cmd
}

// picoclawParent keeps a worker running. PicoClaw shows each line of standard error as a warning, so only warnings are
// written there.
func (a *commands) picoclawParent(ctx context.Context) error {
	_, hard, stop := a.InTwoStages(ctx)
	defer stop()
	p := &picoclaw.Parent{Start: a.startWorker, Logger: a.Logger(hclog.Warn)}
	return p.Serve(hard, a.Stdin, a.Stdout)
}

// startWorker starts this command again as the worker.
func (a *commands) startWorker() (*picoclaw.Worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append(a.Args[:len(a.Args):len(a.Args)], "--worker")...)
	cmd.Args[0], cmd.Env, cmd.Stderr = os.Args[0], a.Environ, a.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a.Logger(hclog.Warn).Info("the hook's worker runs", "pid", cmd.Process.Pid)
	return &picoclaw.Worker{In: in, Out: out, Wait: cmd.Wait, Kill: func() { _ = cmd.Process.Kill() }}, nil
}

// picoclaw serves the hook. An unusable configuration does not end it, because an agent whose hook does not answer does
// not start.
func (a *commands) picoclaw(cmd *cobra.Command, f *picoclawFlags) error {
	a.OwnLogLevel, a.Door = true, wire.DoorHook
	if !f.worker {
		return a.picoclawParent(cmd.Context())
	}
	// The first signal is ignored: Ctrl-C reaches agent and hook together, and the hook waits for the agent's last
	// turn.
	_, hard, stop := a.InTwoStages(cmd.Context())
	defer stop()
	line := cli.NewSlotLine(cmd.Context(), a.reachForHook(), nil)
	defer line.Close()
	o, err := a.picoclawOptions(f, line)
	if o.Problem = err; err == nil {
		// In parallel with the handshake. A slot that runs now is the one to use, even if it is down when the first
		// turn arrives.
		go func() { _, _ = line.Get(hard) }()
	}
	o.Logger = a.Logger(hclog.Warn)
	return picoclaw.New(o).Serve(hard, a.Stdin, a.Stdout)
}

func (a *commands) picoclawOptions(f *picoclawFlags, line *cli.SlotLine) (o picoclaw.Options, err error) {
	o = picoclaw.Options{Slot: hookSlot{line}, Timeout: f.timeout, Linger: f.linger, Shared: f.shared, Session: f.session}
	for _, b := range []struct {
		value int64
		to    **int64
	}{{f.maxTokens, &o.Budget.MaxTokens}, {f.maxItems, &o.Budget.MaxItems}} {
		if b.value > 0 {
			*b.to = &b.value
		}
	}
	if err := f.CompleteRaw(a.App); err != nil {
		return o, err
	}
	o.Scope = f.Scope()
	if err := o.Scope.Validate(); err != nil {
		return o, err
	}
	if err := picoclaw.CheckPlaces(o.Scope); err != nil {
		return o, err
	}
	dir, err := a.outboxDir(f.outbox)
	if err != nil {
		return o, err
	}
	o.Box, err = outbox.Open(dir, outbox.Options{Logger: a.Logger(hclog.Warn), Now: a.Now})
	return o, err
}

// outboxDir is the folder of turns that wait for one slot. Turns for a named slot must never be delivered to another.
func (a *commands) outboxDir(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	c, err := a.Settings()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.Data.Dir, "outbox")
	server := a.ServerNamed()
	if server == "" {
		return filepath.Join(dir, "here"), nil
	}
	named, err := client.New(server, "")
	if err != nil {
		return "", err
	}
	plain := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, named.Base())
	return filepath.Join(dir, plain), nil
}

// hookReachWithin is how long a hook may search for the slot, including loading a module for the first time.
const hookReachWithin = time.Minute

// reachForHook connects like Connect, except that once a slot was found the hook never opens the data folder itself. It
// would lock out that slot while it restarts.
//
// Any failure to reach the slot, even a mistake in the configuration, counts as unavailable, because it can be fixed:
// turns stay queued until then. With any other code the outbox would believe that the slot rejected the turn, and set
// it aside.
func (a *commands) reachForHook() func(ctx context.Context) (*cli.Door, error) {
	served := false // whether a running slot was ever found
	reach := func(ctx context.Context) (*cli.Door, error) {
		ctx, cancel := context.WithTimeout(ctx, hookReachWithin)
		defer cancel()
		if !served || a.ServerNamed() != "" {
			d, err := a.Connect(ctx)
			served = served || err == nil && d.Address != ""
			return d, err
		}
		c, err := a.Config()
		if err != nil {
			return nil, err
		}
		d, err := a.Running(ctx, c)
		if d == nil && err == nil {
			err = abi.NewError(abi.CodeUnavailable, "the slot that served the data folder does not run").
				WithReason(client.ReasonNoSlot).WithHint("start it again: memhost run")
		}
		return d, err
	}
	return func(ctx context.Context) (*cli.Door, error) {
		d, err := reach(ctx)
		if err != nil {
			e := *abi.AsError(err)
			e.Code, e.Retryable = abi.CodeUnavailable, true
			return nil, &e
		}
		return d, nil
	}
}

// hookSlot is the slot as the hook calls it, through a line.
type hookSlot struct{ line *cli.SlotLine }

var _ picoclaw.Slot = hookSlot{}

// Retrieve implements picoclaw.Slot.
func (s hookSlot) Retrieve(ctx context.Context, request *abi.RetrieveRequest) (answer *abi.RetrieveResult, err error) {
	err = s.line.Use(ctx, func(ctx context.Context, c host.Contract) (err error) {
		answer, err = c.Retrieve(ctx, request)
		return err
	})
	return answer, err
}

// RecordEvent implements picoclaw.Slot.
func (s hookSlot) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (receipt *abi.WriteReceipt, err error) {
	err = s.line.Use(ctx, func(ctx context.Context, c host.Contract) (err error) {
		receipt, err = c.RecordEvent(ctx, event)
		return err
	})
	return receipt, err
}

// Mode implements picoclaw.Slot.
func (s hookSlot) Mode(ctx context.Context) (mode *abi.ModeReceipt, err error) {
	err = s.line.Use(ctx, func(ctx context.Context, c host.Contract) (err error) {
		mode, err = c.Mode(ctx)
		return err
	})
	return mode, err
}
