//go:build unix

package host_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// TestAHostRecallsNothingOfALostCommit: a host reads what another host recorded. Then the database loses that commit, and
// another commit gets its number. The reading host had no acknowledgement of the lost commit (past.go), so it continues
// to serve, and must return the database's present content instead of what it has in memory.
func TestAHostRecallsNothingOfALostCommit(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Many: true, Session: time.Hour, Timeout: 5 * time.Second}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	open := func() *host.Slot {
		opts := opts
		opts.Past = filepath.Join(t.TempDir(), "cluster.json")
		return openInDatabase(t, opts)
	}
	record := func(s *host.Slot, id string) {
		t.Helper()
		_, err := s.RecordEvent(t.Context(), host.Event(id, "This is "+id+"."))
		require.NoError(t, err)
	}
	reader, writer := open(), open()
	record(writer, "the first")
	server.Kill()
	restore := server.Copy()
	server.Run()
	context := func() (text string) {
		require.Eventually(t, func() bool { // a connection may be gone
			r, err := reader.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "?", SessionID: "s", Scope: host.TestScope})
			if err == nil {
				text = r.FormattedContext
			}
			return err == nil
		}, 30*time.Second, 10*time.Millisecond)
		return text
	}
	require.Eventually(t, func() bool {
		_, err := writer.RecordEvent(t.Context(), host.Event("the lost", "This is the lost."))
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	for range 3 { // the second one recalls
		require.Contains(t, context(), "the lost")
	}
	server.Kill()
	restore()
	server.Run()
	record(open(), "the other")
	text := context()
	require.Contains(t, text, "the other")
	require.NotContains(t, text, "the lost")
}
