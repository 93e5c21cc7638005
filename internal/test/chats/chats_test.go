package chats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// folder holds short chats of this form.
const folder = "../../text/convert/testdata/chats"

func TestAnAnswerBelongsToTheTurnBeforeIt(t *testing.T) {
	list, err := Read(folder)
	require.NoError(t, err)
	require.Len(t, list, 4, "solo and team, in English and Chinese")
	solo := list[0]
	require.Equal(t, "solo_chat_en", solo.Name)
	events := solo.Events()
	require.NotEmpty(t, events)
	said := 0
	for _, e := range events {
		assert.Equal(t, abi.RoleUser, e.Messages[0].Role)
		assert.Empty(t, e.Messages[0].Name, "the only user needs no name")
		for _, m := range e.Messages[1:] {
			assert.Equal(t, abi.RoleAssistant, m.Role)
		}
		said += len(e.Messages)
	}
	assert.Equal(t, len(solo.Messages), said, "every message is there once")
	assert.Equal(t, "solo_chat_en-2026-03-02", events[0].SessionID, "a day is a session")
	assert.Equal(t, "Lena", list[2].Events()[0].Messages[0].Name, "where there are several, each has a name")
}

func TestEventsAreOfTheFolderOrOfTheDemo(t *testing.T) {
	t.Setenv(Variable, "")
	demo, err := Events()
	require.NoError(t, err)
	assert.Equal(t, "demo", demo[0].RunID)
	t.Setenv(Variable, folder)
	events, err := Events()
	require.NoError(t, err)
	assert.Equal(t, "solo_chat_en", events[0].RunID)
	ids := map[string]bool{}
	for _, e := range events {
		assert.False(t, ids[e.EventID], "event ids differ, whatever the messages' do: %s", e.EventID)
		ids[e.EventID] = true
	}
	t.Setenv(Variable, t.TempDir())
	_, err = Events()
	assert.ErrorContains(t, err, "no *.json")
}
