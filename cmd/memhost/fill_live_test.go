//go:build live && unix

package main

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/test/testenv"
)

// TestLive_fill_mem0 is TestAFillThatIsKilledArrivesOnce with the real mem0, which is killed as often as the slot. Its
// facts are counted in its database. add_timeout_s says that an add which is not found after 15 s will never arrive:
// the stub of a language model answers at once.
func TestLive_fill_mem0(t *testing.T) {
	backend := testenv.Mem0Server(t)
	t.Setenv("MEM0_KEY", backend.Key)
	program, err := builtProgram()
	require.NoError(t, err)
	r := &fillRun{t: t, size: fillSizeOf(t), m: memhost{t, t.TempDir(), cacheHome(t), program},
		fillCase: fillCase{memory: "mem0", serving: "full_history"}, request: wire.BackfillRequest{Backend: "mem0"}}
	r.yaml = fmt.Sprintf("  backends:\n    mem0: {url: %s, api_key: {secret: mem0}, add_timeout_s: 15}\nsecrets:\n"+
		"  mem0: {env: MEM0_KEY, origin: %s}\n", backend.URL, backend.URL)
	r.killOther = func() { require.NoError(t, backend.Restart(t.Context())) }
	r.config(r.serving)
	r.run()

	db, err := pgx.Connect(t.Context(), backend.Database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(t.Context())) }()
	rows, err := db.Query(t.Context(), "SELECT payload->>'data' FROM memories")
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	found := map[string]int{}
	for _, text := range texts {
		for _, mark := range marks.FindAllString(text, -1) {
			found[mark]++
		}
	}
	r.judge(found)
}
