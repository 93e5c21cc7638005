//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/testkit/pgserver"
)

// TestASlotInADatabaseIsKeptThere: two machines, each with a data folder of its own, share one database one after the
// other.
func TestASlotInADatabaseIsKeptThere(t *testing.T) {
	server := pgserver.Start(t)
	cache := cacheHome(t)
	machine := func() memhost {
		m := memhost{t, t.TempDir(), cache}
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
	require.Contains(t, failure(second, "retrieve", "tea"), "belongs to another host: pid ")
	require.Contains(t, first.everything().FormattedContext, "oolong", "through the slot that runs")
	slot.stop()
	require.Contains(t, second.everything().FormattedContext, "oolong", "nobody serves any more")
}
