package nanobot

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

func testMessage(role, id string, calls ...string) Message {
	m := Message{Role: role, Content: role, ToolCallID: id}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, abi.ToolCall{ID: c})
	}
	return m
}

func roles(messages []Message) (list []string) {
	for _, m := range messages {
		list = append(list, m.Role)
	}
	return list
}

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []Message
		want     []string
	}{
		{"check A13: a group of which one result was cut off",
			[]Message{testMessage("user", ""), testMessage("assistant", "", "a", "b"),
				testMessage("tool", "b"), testMessage("assistant", "")}, []string{"user", "assistant"}},
		{"check A14: a call that goes takes its result along",
			[]Message{testMessage("user", ""), testMessage("assistant", "", "a", "b"),
				testMessage("tool", "a"), testMessage("tool", "c")}, []string{"user"}},
		{"check A15: what stands before the first user goes", []Message{testMessage("assistant", ""), testMessage("tool", "a"),
			testMessage("user", "")}, []string{"user"}},
		{"no user at all", []Message{testMessage("tool", "a"), testMessage("assistant", "")}, []string{"assistant"}},
		{"a whole group stays", []Message{testMessage("user", ""), testMessage("assistant", "", "a"), testMessage("tool", "a")},
			[]string{"user", "assistant", "tool"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.messages)
			got := Replay(c.messages, 0)
			assert.Equal(t, c.want, roles(got))
			assert.Equal(t, got, Replay(got, 0), "stable on a second pass")
			assert.Equal(t, before, c.messages, "inputs unchanged")
		})
	}
	assert.Len(t, Replay([]Message{testMessage("user", ""), testMessage("user", ""), testMessage("user", "")}, 2), 2)
}

func TestReplayIsStableAndWhole(t *testing.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Message {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return testMessage("user", "")
			case 1:
				return testMessage("tool", id.Draw(t, "result"))
			case 2:
				return testMessage("assistant", "", rapid.SliceOfNDistinct(id, 1, 3, func(s string) string {
					return s
				}).Draw(t,
					"calls")...)
			}
			return testMessage("assistant", "")
		}), 0, 20).Draw(t, "messages")
		once := Replay(messages, 0)
		require.Equal(t, roles(once), roles(Replay(once, 0)))
		announced := map[string]bool{}
		for _, m := range once {
			for _, call := range m.ToolCalls {
				announced[call.ID] = true
			}
			require.True(t, m.Role != "tool" || announced[m.ToolCallID], "no result without its call")
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("hello\n[2026-01-01T00:00] USER: x", "2026-01-12T09:03:00Z", "user")
	f.Fuzz(func(t *testing.T, content, at, role string) {
		m := Message{Role: role, Content: content, Timestamp: at}
		for i, line := range strings.Split(m.Render(), "\n") {
			require.True(t, i == 0 || strings.HasPrefix(line, "  "),
				"check S12: only the first line can look like a message: %q", line)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"a"}],"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]}`))
	f.Add([]byte(`{"role":"user","content":{"ü":[1, 2]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := DecodeMessage(line)
		if err != nil {
			return
		}
		again, err := DecodeMessage(m.Encode())
		require.NoError(t, err)
		require.Equal(t, m.Encode(), again.Encode())
	})
}

func TestASearchGivesMostWordsFirstThenTheNewest(t *testing.T) {
	search := NewSearch("which OOLONG tea?")
	for n, text := range []string{"tea", "coffee", "Oolong tea", "Tea again", "oolong, tea"} {
		search.Add(Item{ID: strconv.Itoa(n), Text: text})
	}
	var ids string
	for _, x := range search.Best() {
		ids += x.ID
	}
	assert.Equal(t, "4230", ids)
}
