// Package cli is what all commands of memhost share: the root command with its flags, the configuration, output, exit
// codes, modules, and the connection to a slot. Its only commands are those about the program itself.
//
// The other commands are in packages of their own, one per feature. Such a package has a function Commands, a Feature,
// which cmd/memhost lists. Its methods are on a type "commands" that embeds *App. Each command returns an error, which
// exit.go turns into a message and an exit code. A command that needs a slot calls WithDoor, which finds the running
// slot or opens the data folder (connect.go).
//
// Main runs the command line with the arguments, environment and streams of the process, and Run with those that a test
// passes.
//
// Reading order: cli.go, root.go (the root command and what commands share), exit.go, output.go, connect.go,
// modules.go, then any feature.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/configuration/config"
)

// System is what the command line takes from its surroundings.
type System struct {
	// Args are the arguments without the program's name; Environ holds NAME=VALUE pairs.
	Args, Environ []string
	Stdin         io.Reader
	// Stdout gets results, Stderr messages.
	Stdout, Stderr io.Writer
	// Notify returns a channel of interruptions: the first asks a command to end, the second forces it. It is called
	// only by commands that shut down in their own way; an interruption kills the others as usual. Nil: no
	// interruptions.
	Notify func() <-chan os.Signal
	// Now is the clock. Sleep waits, and returns early when ctx ends.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
	// Modules returns the built-in modules. They take a few megabytes, and most commands don't need them.
	Modules func() []BuiltinModule
}

// Feature makes the commands of a feature for one run of the command line. Each has the GroupID of the group that
// `memhost --help` lists it in.
type Feature func(a *App) []*cobra.Command

// Main runs the command line of this process, with the commands of these features, and returns its exit code.
func Main(features ...Feature) int {
	return Run(context.Background(), System{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin,
		Stdout: os.Stdout, Stderr: os.Stderr, Notify: notify,
		Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) },
		Modules: BuiltinModules}, features...)
}

func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// New makes a run of the command line. It has not read anything yet.
func New(s System) *App { return &App{System: s, Out: NewOutput(s)} }

// Run runs one command and returns its exit code.
func Run(ctx context.Context, s System, features ...Feature) (code int) {
	a := New(s)
	out := a.Out
	defer func() {
		if p := recover(); p != nil {
			e := abi.NewError(abi.CodeInternal, "this is a defect of memhost: "+FirstLine(panicText(p))).WithHint(
				"please report it; --log-level debug shows where it happened")
			out.Fail(e)
			if a.Flags.LogLevel == "debug" {
				out.Note("%s", debug.Stack())
			}
			code = ExitFailed
		}
	}()
	root := a.Root(features...)
	a.addLate(ctx, root)
	root.SetArgs(s.Args)
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	// A mistake on the command line may be found before its flags are read.
	out.JSON = out.JSON || a.Flags.json || slices.Contains(s.Args, "--json")
	var done *DoneError
	if errors.As(err, &done) {
		return done.code
	}
	if a.Interrupted || errors.Is(err, ErrInterrupted) {
		out.Note("interrupted")
		return ExitInterrupted
	}
	out.Fail(AsAdapterError(err))
	return ExitCode(err)
}

func panicText(p any) string {
	if err, ok := p.(error); ok {
		return err.Error()
	}
	if text, ok := p.(string); ok {
		return text
	}
	return "panic"
}

// FirstLine is the first line of a text.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// The values of --mcp.
const (
	MCPStdio = "stdio"
	MCPHTTP  = "http"
)

// App is one run of the command line. Features embed it.
type App struct {
	System
	Out         *Output
	Flags       flags
	Loaded      *config.Config
	log         hclog.Logger
	inspectOnce sync.Once // a swap may ask at any time
	inspected   []*Module
	caught      <-chan os.Signal
	Interrupted bool
	Cassette    string // of run
	MCP         string // of run: "", MCPStdio or MCPHTTP
	// pinned maps the names of modules to the same names with a digest, as *registry.Reference, so that a tag means the
	// same module throughout a process.
	pinned sync.Map
	// NamedFileOnly: ./memhost.yaml is not read, since the user did not choose the folder.
	NamedFileOnly bool
	// Begins allows the command to start a new data folder, because it records something there.
	Begins bool
	// OwnLogLevel limits log.level of the configuration file to the slot, because an agent shows each line of its hook
	// as a warning.
	OwnLogLevel bool
	// Door is the kind of door that this process is, wire.DoorHook or wire.DoorMCP; "" for a command.
	Door string
	// late holds functions that add commands after the flags of every command are read.
	late []Late
	// Spans belong to a process that sends spans before it has a slot; nil for none.
	Spans *Spans
}

// Signals is the channel of interruptions. A command that calls it must shut down by itself.
func (a *App) Signals() <-chan os.Signal {
	if a.caught == nil && a.Notify != nil {
		a.caught = a.Notify()
	}
	return a.caught
}

// Flags are those that every command has.
type flags struct {
	Server, Config, Data, LogLevel, LogFormat string
	Set                                       []string
	json                                      bool
	// more holds the flags of single commands that set keys of the configuration, by name.
	more map[string]any
}

// Getenv reads the environment of System. As in a process, the last of several equal names wins.
func (a *App) Getenv(name string) string {
	value := ""
	for _, pair := range a.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// UntilInterrupted returns a context that the first signal cancels. The caller must call stop.
func (a *App) UntilInterrupted(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended, signals := make(chan struct{}), a.Signals()
	go func() {
		defer close(ended)
		select {
		case <-signals:
			a.Interrupted = true
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// InTwoStages returns a context that the first signal cancels, and one that only the second signal cancels. The caller
// must call stop.
func (a *App) InTwoStages(ctx context.Context) (soft, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(ctx)
	soft, cancelSoft := context.WithCancelCause(hard)
	ended, signals := make(chan struct{}), a.Signals()
	go func() {
		defer close(ended)
		for _, cancel := range []context.CancelCauseFunc{cancelSoft, cancelHard} {
			select {
			case <-signals:
				a.Interrupted = true
				cancel(ErrInterrupted)
			case <-hard.Done():
				return
			}
		}
	}()
	return soft, hard, func() { cancelHard(nil); <-ended }
}
