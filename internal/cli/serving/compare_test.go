package serving

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// TestOtherMemoriesAreAskedTheSameQuestion: they know what the archive has of the scope and of no other, nothing of
// them stays, and a memory that needs a server or a model is refused.
func TestOtherMemoriesAreAskedTheSameQuestion(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	b, _ := startOf(t, t.TempDir(), "127.0.0.1:0", "")
	for _, step := range b.steps() {
		require.NoError(t, step.do(t.Context()), step.name)
	}
	defer b.undo()
	record := func(user, id, text string, at time.Time) {
		_, err := b.slot.slot.RecordEvent(t.Context(), &abi.MemoryEvent{EventID: id, RunID: "r", UserID: user, SessionID: "s",
			TurnID: id, Timestamp: at.Format(time.RFC3339), Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
		require.NoError(t, err)
	}
	first := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	record("ann", "e2", "I drink green tea.", first.Add(time.Hour))
	record("ann", "e1", "I drank coffee until today.", first)
	record("ben", "e1", "I drink wine.", first)
	c := &comparer{commands: b.commands, config: b.config, slot: b.slot.slot, archive: b.slot.host.Archive(), maxEvents: 20}
	q := &wire.CompareRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"}, Query: "What does she drink?",
		Providers: []string{"full_history", "bm25", "recall", "no_memory", "mem0", "layered_memory", "simple_rag", "other"},
		MaxTokens: 1500}
	answer, err := c.Compare(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, int64(2), answer.Events)
	assert.Zero(t, answer.LeftOut)
	got := map[string]wire.ComparedAnswer{}
	for _, a := range answer.Answers {
		got[a.Provider] = a
	}
	require.Len(t, got, len(q.Providers))
	assert.Regexp(t, `(?s)coffee until today\..*green tea`, got["full_history"].FormattedContext, "in the order of time")
	for _, name := range []string{"full_history", "bm25", "recall", "no_memory"} {
		require.Nil(t, got[name].Error, "%s: %v", name, got[name].Error)
		assert.NotContains(t, got[name].FormattedContext, "wine", name)
		assert.Equal(t, name == "no_memory", got[name].Tokens == 0, name)
	}
	for _, name := range []string{"mem0", "layered_memory", "simple_rag"} {
		require.NotNil(t, got[name].Error, name)
		assert.Equal(t, abi.CodeUnsupported, got[name].Error.Code, name)
	}
	assert.Equal(t, abi.CodeNotFound, got["other"].Error.Code)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing stays")

	c.busy.Lock()
	_, err = c.Compare(t.Context(), q)
	require.Equal(t, abi.CodeRateLimited, abi.CodeOf(err))
}

// TestAComparisonTakesTheNewestEvents: the others are counted.
func TestAComparisonTakesTheNewestEvents(t *testing.T) {
	b, _ := startOf(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "")
	for _, step := range b.steps() {
		require.NoError(t, step.do(t.Context()), step.name)
	}
	defer b.undo()
	text := "a turn"
	for i := range 27 {
		id := fmt.Sprintf("e%02d", 99-i) // the order of ids is not that of time
		_, err := b.slot.slot.RecordEvent(t.Context(), &abi.MemoryEvent{EventID: id, RunID: "r", UserID: "ann", SessionID: "s",
			TurnID: id, Timestamp: time.Unix(int64(i), 0).UTC().Format(time.RFC3339),
			Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
		require.NoError(t, err)
	}
	c := &comparer{commands: b.commands, config: b.config, slot: b.slot.slot, archive: b.slot.host.Archive(), maxEvents: 20}
	events, leftOut, err := c.events(t.Context(), abi.MemoryScope{RunID: "r", PersonaID: "ann"})
	require.NoError(t, err)
	require.Len(t, events, 20)
	assert.Equal(t, 7, leftOut)
	assert.Equal(t, "e73", events[19].EventID, "the newest is the last")
}
