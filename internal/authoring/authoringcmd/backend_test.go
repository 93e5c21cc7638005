package authoringcmd

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/cli"
)

func TestTheTinyBackendServesUntilItIsInterrupted(t *testing.T) {
	signals := make(chan os.Signal, 1)
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(context.Background(), cli.System{Args: []string{"backend", "tiny", "--listen", "127.0.0.1:0"},
			Stdin: strings.NewReader(""), Stdout: in, Stderr: &stderr,
			Now: time.Now, Sleep: func(ctx context.Context, d time.Duration) { _ = pause.For(ctx, d) },
			Notify: func() <-chan os.Signal { return signals }}, Commands)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url, _, found := strings.Cut(strings.TrimPrefix(line, "the tiny backend: "), ",")
	require.True(t, found, line)
	answer, err := http.Get(url + "/health")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.JSONEq(t, `{"status": "ok", "version": "1"}`, string(text))
	signals <- os.Interrupt
	assert.Equal(t, cli.ExitOK, <-ended)
	assert.Empty(t, stderr.String())
}

func TestEveryHTTPOriginOfABlockIsLedToAnotherBackend(t *testing.T) {
	m := &cli.Module{Name: "mine", Info: &host.Module{Manifest: &abi.ModuleManifest{Origins: []abi.OriginDecl{
		{Name: "api", From: "/api/url", Protocol: abi.ProtocolHTTP},
		{Name: "graph", From: "/bolt", Protocol: abi.ProtocolBolt},
		{Name: "models", From: "/models", Protocol: abi.ProtocolHTTP}}}}}
	for block, want := range map[string]string{
		`{"api":{"url":"http://real","key":{"secret":"k"}},"bolt":"bolt://real","n":9007199254740993}`: `{"api":{"url":"http://tiny","key":{"secret":"k"}},` +
			`"bolt":"bolt://real","models":"http://tiny","n":9007199254740993}`,
		`{}`:   `{"api":{"url":"http://tiny"},"models":"http://tiny"}`,
		`null`: `{"api":{"url":"http://tiny"},"models":"http://tiny"}`,
	} {
		changed, err := leadTo("http://tiny", m, abi.Raw(block))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(changed))
	}
	m.Info.Manifest.Origins = m.Info.Manifest.Origins[1:2]
	_, err := leadTo("http://tiny", m, abi.Raw(`{}`))
	assert.ErrorContains(t, err, "has no HTTP origin")
}
