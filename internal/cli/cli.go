// Package cli is the command line of memhost.
//
// Main runs it with the arguments, environment and streams of the process; Run with those that a test passes. Each
// command is a file of its own and ends in an error, which exit.go turns into a message and an exit code. Verbs
// (record, retrieve, health, ...) call the contract of a running slot or of a provider that they open themselves:
// connect.go decides which.
//
// Reading order: cli.go, root.go (the tree of commands and what they share), exit.go, output.go, connect.go,
// modules.go, then any command.
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
	// Notify returns a channel of interruptions: the first asks a command to end, the second forces it. Only commands
	// that end in their own way call it; the others end as any process does. Nil: no interruptions.
	Notify func() <-chan os.Signal
	// Now is the clock and Sleep waits, or returns early when ctx ends.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
	// Modules returns the built-in modules, which are a few megabytes: most commands need none.
	Modules func() []BuiltinModule
}

// Main runs the command line of this process and returns its exit code.
func Main() int {
	return Run(context.Background(), System{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin,
		Stdout: os.Stdout, Stderr: os.Stderr, Notify: notify,
		Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) },
		Modules: builtinModules})
}

func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// Run runs one command and returns its exit code.
func Run(ctx context.Context, s System) (code int) {
	a := &app{System: s}
	out := newOutput(s)
	a.out = out
	defer func() {
		if p := recover(); p != nil {
			e := abi.NewError(abi.CodeInternal, "this is a defect of memhost: "+firstLine(panicText(p))).WithHint(
				"please report it; --log-level debug shows where it happened")
			out.fail(e)
			if a.flags.logLevel == "debug" {
				out.note("%s", debug.Stack())
			}
			code = exitFailed
		}
	}()
	root := a.root()
	root.SetArgs(s.Args)
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// A mistake on the command line may be found before its flags are read.
	out.json = out.json || a.flags.json || slices.Contains(s.Args, "--json")
	var done *doneError
	if errors.As(err, &done) {
		return done.code
	}
	if a.interrupted || errors.Is(err, errInterrupted) {
		out.note("interrupted")
		return exitInterrupted
	}
	out.fail(asAdapterError(err))
	return exitCode(err)
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

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// app is one run of the command line.
type app struct {
	System
	out         *output
	flags       flags
	loaded      *config.Config
	log         hclog.Logger
	inspectOnce sync.Once // a swap may ask at any time
	inspected   []*module
	caught      <-chan os.Signal
	interrupted bool
	cassette    string // of run
	mcp         string // of run: "", mcpStdio or mcpHTTP
	// pinned maps references to modules as they were named to the same with a digest, as *registry.Reference: in one
	// process a tag means one module.
	pinned sync.Map
	// namedFileOnly: ./memhost.yaml is not read, since the user did not choose the folder.
	namedFileOnly bool
	// ownLogLevel: log.level of the configuration file applies to the slot only, because an agent shows each line of
	// its hook as a warning.
	ownLogLevel bool
	// door is the door that this process is, wire.DoorHook or wire.DoorMCP; "" for a command.
	door string
	// spans are those of a process that has begun to send them before it has a slot; nil for none.
	spans *spans
}

// signals is the channel of interruptions. Once it is used, the command has to end itself.
func (a *app) signals() <-chan os.Signal {
	if a.caught == nil && a.Notify != nil {
		a.caught = a.Notify()
	}
	return a.caught
}

// flags are those that every command has.
type flags struct {
	server, config, data, logLevel, logFormat string
	set                                       []string
	json                                      bool
	// more holds flags of single commands that set keys of the configuration, by their names.
	more map[string]any
}

// getenv reads the environment of System; the last of equal names counts, as in a process.
func (a *app) getenv(name string) string {
	value := ""
	for _, pair := range a.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// untilInterrupted gives a context that the first signal ends. stop must be called.
func (a *app) untilInterrupted(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended, signals := make(chan struct{}), a.signals()
	go func() {
		defer close(ended)
		select {
		case <-signals:
			a.interrupted = true
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// inTwoStages gives a context that the first signal ends, and one that only the second does. stop must be called.
func (a *app) inTwoStages(ctx context.Context) (soft, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(ctx)
	soft, cancelSoft := context.WithCancelCause(hard)
	ended, signals := make(chan struct{}), a.signals()
	go func() {
		defer close(ended)
		for _, cancel := range []context.CancelCauseFunc{cancelSoft, cancelHard} {
			select {
			case <-signals:
				a.interrupted = true
				cancel(errInterrupted)
			case <-hard.Done():
				return
			}
		}
	}()
	return soft, hard, func() { cancelHard(nil); <-ended }
}
