package host_test

import (
	"net/http/httptest"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALookThatFailsForNowIsRepeated: MemOS's list answers 500 'id' if it meets a node that its scheduler is deleting.
func TestALookThatFailsForNowIsRepeated(t *testing.T) {
	fake := memos.New(memos.Options{})
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	s := builtinSlot(t, "memos", `{"url":"`+server.URL+`","graph_store":"neo4j","add_mode":"async"}`)
	look := func(ms int64) (*abi.BackendReadiness, error) {
		return s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "p"},
			TimeoutMS: ms})
	}
	_, err := s.RecordEvent(t.Context(), eventAt("e", "2026-01-02T00:00:00Z", "My cat is called Zorvex."))
	require.NoError(t, err)

	fake.Break(memos.Faults{ListRaces: 1 << 30})
	_, err = look(0)
	host.RequireCode(t, err, abi.CodeBackend, "'id'")
	ready, err := look(200)
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, ready.Status)
	assert.Equal(t, []string{"e"}, ready.EventIDs.Pending)
	require.Len(t, ready.Warnings, 1)
	assert.Contains(t, ready.Warnings[0], "readiness_failing: backend: ")
	assert.Contains(t, ready.Warnings[0], "'id'")

	fake.Break(memos.Faults{DatabaseDown: true})
	ready, err = look(200)
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, ready.Status)
	assert.Contains(t, ready.Warnings[0], "readiness_failing: unavailable: ")

	fake.Break(memos.Faults{ListRaces: 4})
	ready, err = look(10_000)
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready.Warnings)
	assert.Empty(t, ready.Warnings)
}
