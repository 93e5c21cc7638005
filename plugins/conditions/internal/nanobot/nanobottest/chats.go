package nanobottest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/chats"
)

// Conversations runs the conversations of package chats through a slot, and returns the files of each scope. With
// CHATS_OUT=DIR the files are written there, for a person to read.
func Conversations(t *testing.T, module string, s *host.Slot) map[abi.MemoryScope]map[string]string {
	t.Helper()
	list, err := chats.Events()
	require.NoError(t, err)
	messages := map[abi.MemoryScope]int{}
	for start := 0; start < len(list); start += 20 {
		batch := &abi.EventBatch{Events: list[start:min(start+20, len(list))]}
		receipts, err := s.RecordEvents(t.Context(), batch)
		require.NoError(t, err)
		for i, r := range receipts.Receipts {
			require.Nil(t, r.Error, "event %s", batch.Events[i].EventID)
			messages[ScopeOf(&batch.Events[i])] += len(batch.Events[i].Messages)
		}
	}
	all := map[abi.MemoryScope]map[string]string{}
	for scope, n := range messages {
		ready, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope,
			TimeoutMS: (2 * time.Minute).Milliseconds()})
		require.NoError(t, err)
		require.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready.Warnings)
		files, _ := Files(t, func(params map[string]abi.Raw) *abi.NativeQueryResult {
			r, err := s.NativeQuery(t.Context(), &abi.NativeQuery{Scope: scope, Name: "files", Params: params})
			require.NoError(t, err)
			return r
		})
		checkFiles(t, files, n)
		all[scope] = files
		if out := os.Getenv("CHATS_OUT"); out != "" {
			write(t, filepath.Join(out, module, scope.RunID+"-"+scope.PersonaID), files)
		}
	}
	return all
}

// checkFiles checks that every message is in a session file once, and that all messages of each session are archived.
func checkFiles(t *testing.T, files map[string]string, messages int) {
	t.Helper()
	if files["HEAD"] != "" {
		return // a ledger keeps no messages; readiness has shown that no turn waits
	}
	stored := 0
	for path, text := range files {
		if !strings.HasPrefix(path, "sessions/") {
			continue
		}
		head, rest, _ := strings.Cut(text, "\n")
		lines := strings.Count(rest, "\n")
		assert.Contains(t, head, fmt.Sprintf(`"last_consolidated":%d`, lines), "%s", path)
		stored += lines
	}
	assert.Equal(t, messages, stored)
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		name := filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// ScopeOf returns the scope of an event.
func ScopeOf(e *abi.MemoryEvent) abi.MemoryScope {
	return abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID, AgentID: e.AgentID}
}
