package memory

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// TestAnInterruptWhileReadingSaysWhatWasRead: an export may take a minute, and nothing of it is sent before its end.
func TestAnInterruptWhileReadingSaysWhatWasRead(t *testing.T) {
	log := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(log, []byte(`{"type":"user","sessionId":"s"}`), 0o600))
	var out bytes.Buffer
	a := &commands{cli.New(cli.System{Stdout: &out, Stderr: &out, Notify: func() <-chan os.Signal { return nil }})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := a.checkConversations(ctx, conversations.ClaudeCode, []string{log}, conversations.Options{}, false)
	require.ErrorIs(t, err, cli.ErrInterrupted)
	require.Contains(t, out.String(), "read until then: 0 conversations in 0 files: 0 events, 0 messages; nothing was sent")

	out.Reset()
	_, _, err = a.openInputs(ctx, []string{log}, convert.Options{}, false)
	require.ErrorIs(t, err, cli.ErrInterrupted)
	require.Contains(t, out.String(), "read until then: 0 events in 1 file; nothing was sent")
}
