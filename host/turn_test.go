package host

import (
	"slices"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkLeavesTheScopesRecordToTheTurn: work begins while a reset has the scope's turn, and has put a generation on
// its list. What the store had before does not take it off again.
func TestWorkLeavesTheScopesRecordToTheTurn(t *testing.T) {
	server, _ := backend(t)
	s := newShared(t).join().slot(t, server.URL, Options{NoReadinessPolls: true})
	told(t, s, "e1", "append turns one")
	p := s.current.Load().provider
	sc, err := p.scopeOf(testScope)
	require.NoError(t, err)
	turn, err := s.takeTurn(t.Context(), p, sc, abi.OpResetScope, atOnce)
	require.NoError(t, err)
	defer s.endTurn(t.Context(), sc, turn)
	sc.record.Erasing = append(slices.Clone(sc.record.Erasing), 1)

	work, err := s.takeWork(t.Context(), p, sc, abi.OpWaitUntilReady)
	require.NoError(t, err)
	s.endWork(t.Context(), sc, work)
	assert.Equal(t, []int64{1}, sc.record.Erasing)
}
