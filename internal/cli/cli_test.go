package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// panicWriter is a standard output that panics.
type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("out of paper\nsecond line") }

func TestAPanicIsAnErrorWithoutATrace(t *testing.T) {
	for _, level := range []string{"info", "debug"} {
		var stderr bytes.Buffer
		code := Run(context.Background(), System{Args: []string{"version", "--log-level", level},
			Stdin: strings.NewReader(""), Stdout: panicWriter{}, Stderr: &stderr,
			Now: time.Now})
		require.Equal(t, ExitFailed, code)
		require.Contains(t, stderr.String(), "memhost: this is a defect of memhost: out of paper\n")
		require.Equal(t, level == "debug", strings.Contains(stderr.String(), "goroutine"))
	}
}

func TestProgressIsABarOrALineAMinute(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := NewOutput(System{Stdout: &stdout, Stderr: &stderr})
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	p := o.Progress(500, "recording ")
	for range 300 { // five minutes
		now = now.Add(time.Second)
		p.Add(1)
	}
	p.Clear()
	p.Finish()
	require.Equal(t, "recording: 60 of 500\nrecording: 120 of 500\nrecording: 180 of 500\nrecording: 240 of 500\n"+
		"recording: 300 of 500\n", stderr.String())
	o.ErrTTY = true
	require.Nil(t, o.Progress(0, "recording"))
	for _, total := range []int{3, -1} {
		stderr.Reset()
		p := o.Progress(total, "recording")
		p.Add(1)
		p.Clear()
		p.Add(2)
		p.Finish()
		require.Contains(t, stderr.String(), "recording")
	}
	require.Empty(t, stdout.String())
}

func TestASignalEndsWhatWaits(t *testing.T) {
	signals := make(chan os.Signal, 2)
	a := &App{System: System{Notify: func() <-chan os.Signal { return signals }}}
	soft, hard, stop := a.InTwoStages(context.Background())
	signals <- os.Interrupt
	<-soft.Done()
	require.NoError(t, hard.Err(), "what is under way goes on")
	signals <- os.Interrupt
	<-hard.Done()
	stop()
	require.True(t, a.Interrupted)
	require.ErrorIs(t, context.Cause(soft), ErrInterrupted)

	a = &App{System: System{Notify: func() <-chan os.Signal { return signals }}}
	ctx, stop := a.UntilInterrupted(context.Background())
	signals <- os.Interrupt
	<-ctx.Done()
	stop()
	require.True(t, a.Interrupted)
}
