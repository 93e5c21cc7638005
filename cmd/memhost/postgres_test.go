//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/testkit/pgserver"
)

// TestASlotInADatabaseIsKeptThere: two machines, each with a data folder of its own, share one database.
func TestASlotInADatabaseIsKeptThere(t *testing.T) {
	server := pgserver.Start(t)
	cache := cacheHome(t)
	machine := func() memhost {
		m := memhost{t, t.TempDir(), cache, ""}
		yaml := "memory: {condition: full_history, smoke: never}\nstore: {postgres: {url: \"" + server.URL + "\"}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
		events := `{"event_id":"e1","run_id":"r","user_id":"u","session_id":"s","turn_id":"t",` +
			`"timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"I like oolong."}]}`
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "turns.jsonl"), []byte(events+"\n"), 0o600))
		return m
	}
	first, second := machine(), machine()
	failure := func(m memhost, args ...string) string {
		out, code := m.run(append(args, "--json")...)
		require.NotZero(t, code)
		var answer struct {
			Error struct{ Message, Hint string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
		return answer.Error.Message + "; " + answer.Error.Hint
	}
	record := []string{"record", "turns.jsonl"}
	require.Contains(t, failure(first, record...), "has no tables of memhost; run: memhost cluster migrate")
	out, code := first.run("cluster", "migrate")
	require.Zero(t, code)
	require.Equal(t, "migrated: 00001_tables.sql\n", out)
	out, code = second.run("cluster", "migrate")
	require.Zero(t, code)
	require.Equal(t, "the tables are up to date\n", out)

	_, code = first.run(record...)
	require.Zero(t, code)
	require.Contains(t, second.everything().FormattedContext, "oolong", "the other machine has it from the database")
	require.NoFileExists(t, filepath.Join(first.dir, "data", "state.db"))

	slot := first.serve()
	require.Contains(t, second.everything().FormattedContext, "oolong", "beside the slot that runs")
	require.Contains(t, first.everything().FormattedContext, "oolong", "through the slot that runs")
	require.Contains(t, failure(first, "run", "--listen", "127.0.0.1:0"), "give this host a folder of its own")
	other := second.serve()
	out, code = second.run("cluster", "status")
	require.Zero(t, code)
	require.Contains(t, out, "serves full_history, module ")
	require.Contains(t, out, "mode write, 0 scopes being written, 2 hosts\n")
	out, code = second.run("cluster", "status", "--server", other.url)
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, ", answered this\n"), out)
	require.Contains(t, out, "2 hosts\n")
	out, code = second.run("mode", "read-only", "--reason", "test")
	require.Zero(t, code, out)
	out, _ = first.run(append(record, "--json")...)
	require.Contains(t, out, "skipped_read_only")
	out, code = first.run("mode", "write", "--reason", "test")
	require.Zero(t, code, out)
	other.stop()
	slot.stop()
	require.Contains(t, second.everything().FormattedContext, "oolong", "nobody serves any more")
}
