package host

import (
	"slices"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Background work starts while a reset holds the scope's write lock and has added a generation to its list. The work,
// which read the store before, must not remove it from the list.
func TestWorkLeavesTheScopesRecordToTheWriteLock(t *testing.T) {
	server, _ := Backend(t)
	s := newShared(t).join().slot(t, server.URL, Options{NoReadinessPolls: true})
	RunCommands(t, s, "e1", "append turns one")
	p := s.current.Load().provider
	sc, err := p.scopeOf(TestScope)
	require.NoError(t, err)
	lock, err := s.lockScope(t.Context(), p, sc, abi.OpResetScope, writelock.AtOnce)
	require.NoError(t, err)
	defer lock.Unlock(t.Context())
	sc.record.Erasing = append(slices.Clone(sc.record.Erasing), 1)

	work, err := s.lockWork(t.Context(), p, sc, abi.OpWaitUntilReady)
	require.NoError(t, err)
	work.Unlock(t.Context())
	assert.Equal(t, []int64{1}, sc.record.Erasing)
}
