package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// panicking is a standard output that a command cannot survive.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("out of paper\nsecond line") }

func TestAPanicIsAnErrorWithoutATrace(t *testing.T) {
	for _, level := range []string{"info", "debug"} {
		var stderr bytes.Buffer
		code := Run(context.Background(), System{Args: []string{"version", "--log-level", level},
			Stdin: strings.NewReader(""), Stdout: panicking{}, Stderr: &stderr,
			Now: time.Now})
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr.String(), "memhost: this is a defect of memhost: out of paper\n")
		require.Equal(t, level == "debug", strings.Contains(stderr.String(), "goroutine"))
	}
}

func TestProgressIsForPeopleOnly(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := newOutput(System{Stdout: &stdout, Stderr: &stderr})
	require.Nil(t, o.progress(3, "recording"), "not on a pipe")
	o.errTTY = true
	require.Nil(t, o.progress(0, "recording"))
	for _, total := range []int{3, -1} {
		stderr.Reset()
		p := o.progress(total, "recording")
		p.add(1)
		p.clear()
		p.add(2)
		p.finish()
		require.Contains(t, stderr.String(), "recording")
	}
	require.Empty(t, stdout.String())
}

func TestASignalEndsWhatWaits(t *testing.T) {
	signals := make(chan os.Signal, 2)
	a := &app{System: System{Notify: func() <-chan os.Signal { return signals }}}
	soft, hard, stop := a.inTwoStages(context.Background())
	signals <- os.Interrupt
	<-soft.Done()
	require.NoError(t, hard.Err(), "what is under way goes on")
	signals <- os.Interrupt
	<-hard.Done()
	stop()
	require.True(t, a.interrupted)
	require.ErrorIs(t, context.Cause(soft), errInterrupted)

	a = &app{System: System{Notify: func() <-chan os.Signal { return signals }}}
	ctx, stop := a.untilInterrupted(context.Background())
	signals <- os.Interrupt
	<-ctx.Done()
	stop()
	require.True(t, a.interrupted)
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	var stdout bytes.Buffer
	a := &app{System: System{Stdout: &stdout, Stderr: io.Discard},
		out: newOutput(System{Stdout: &stdout, Stderr: io.Discard})}
	names := map[string]bool{}
	for _, cmd := range a.root().Commands() {
		names[cmd.Name()] = true
		require.NotEmpty(t, cmd.Short, cmd.Name())
		require.NotRegexp(t, `\.$`, cmd.Short, cmd.Name())
		require.True(t, cmd.Runnable() || !cmd.HasSubCommands(), "%s shows its help for a wrong command", cmd.Name())
	}
	for _, name := range []string{"init", "run", "record", "retrieve", "health", "setup", "reset", "mode", "providers",
		"inspect", "pack", "config", "version", "demo", "forget"} {
		require.True(t, names[name], name)
	}
}
