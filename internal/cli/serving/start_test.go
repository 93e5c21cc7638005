package serving

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/test/testcache"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// startOf prepares the start of a slot with full_history in a folder. It returns what the steps print, too.
func startOf(t *testing.T, dir, listen, token string) (*start, *bytes.Buffer) {
	t.Helper()
	var stderr bytes.Buffer
	k := cli.New(cli.System{Environ: []string{"XDG_CACHE_HOME=" + testcache.Home()}, Stdout: &stderr, Stderr: &stderr,
		Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) },
		Modules: cli.BuiltinModules})
	o := config.Options{Dir: dir, Environ: []string{}, Known: k.KnownProviders(),
		Flags: map[string]any{"data": dir, "listen": listen, "condition": "full_history"}}
	c, err := config.Load(o)
	require.NoError(t, err)
	return newStart(k, c, o, token, &cli.Steps{Out: k.Out}), &stderr
}

// TestAStartThatEndsAtAStepReleasesWhatItTook: whichever step fails, the data folder and the address are free again.
func TestAStartThatEndsAtAStepReleasesWhatItTook(t *testing.T) {
	all, _ := startOf(t, t.TempDir(), "127.0.0.1:0", "")
	for last := range all.steps() {
		dir := t.TempDir()
		b, _ := startOf(t, dir, "127.0.0.1:0", "")
		steps := b.steps()
		for _, step := range steps[:last+1] {
			require.NoError(t, step.do(t.Context()), step.name)
		}
		address := ""
		if b.listener != nil {
			address = b.listener.Addr().String()
			_, err := net.Listen("tcp", address)
			require.Error(t, err, "%s has the address", steps[last].name)
		}
		b.undo()
		h, err := host.New(t.Context(), host.Options{DataDir: dir})
		require.NoError(t, err, "%s: the folder is free", steps[last].name)
		require.NoError(t, h.Close(t.Context()))
		if address != "" {
			l, err := net.Listen("tcp", address)
			require.NoError(t, err, "%s: the address is free", steps[last].name)
			require.NoError(t, l.Close())
		}
	}
}

// TestAFailedStartNamesItsStep: the step of the error is shown, and no later step is done.
func TestAFailedStartNamesItsStep(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	owned := t.TempDir()
	owner, err := host.New(t.Context(), host.Options{DataDir: owned})
	require.NoError(t, err)
	defer owner.Close(context.Background())
	for _, c := range []struct {
		step, dir, listen string
		code              abi.Code
	}{
		{"listen", t.TempDir(), "0.0.0.0:0", abi.CodeInvalidArgument}, // it requires a token
		{"listen", t.TempDir(), taken.Addr().String(), abi.CodeUnavailable},
		{"data", owned, "127.0.0.1:0", abi.CodeUnavailable},
	} {
		b, shown := startOf(t, c.dir, c.listen, "")
		_, err := Start(t.Context(), b.App, b.config, b.options, "", b.shown)
		require.Error(t, err)
		require.Equal(t, c.code, abi.CodeOf(err), err.Error())
		lines := bytes.Split(bytes.TrimSpace(shown.Bytes()), []byte("\n"))
		require.Equal(t, "failed "+c.step, string(lines[len(lines)-1]))
	}
	names := []string{}
	b, _ := startOf(t, t.TempDir(), "127.0.0.1:0", "")
	for _, step := range b.steps() {
		names = append(names, step.name)
	}
	require.Less(t, slices.Index(names, "data"), slices.Index(names, "load"), "the folder is taken before a provider is")
}
