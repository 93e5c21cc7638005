package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// genConversations draws lines of conversations with few ids and texts, so that similar ones are common.
func genConversations(t *rapid.T) (lines []string) {
	word := rapid.SampledFrom([]string{"a", "b", "ab", "a/b", "", "你好", "a\u0000b", `"`, "a\nb"})
	id := rapid.SampledFrom([]string{"a", "ab", "b", "a/b", "*", "..", "🫖"})
	for range rapid.IntRange(1, 6).Draw(t, "lines") {
		var messages []map[string]any
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			messages = append(messages, map[string]any{"role": rapid.SampledFrom([]string{"user", "assistant",
				"system"}).Draw(t, "role"),
				"content": word.Draw(t, "content")})
		}
		line, err := json.Marshal(map[string]any{"messages": messages, "run_id": id.Draw(t, "run"),
			"user_id": id.Draw(t, "user"), "session_id": id.Draw(t, "session")})
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	return lines
}

// Whatever the input: every message is in exactly one event, in order; no two events have the same id; and reading
// again has the same result.
func TestEveryMessageOnceAndIdsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := genConversations(t)
		read := func() []Item {
			r, err := NewReader(strings.NewReader(strings.Join(lines, "\n")), given())
			require.NoError(t, err)
			var items []Item
			for {
				item, err := r.Next()
				if err == io.EOF {
					return items
				}
				require.NoError(t, err)
				items = append(items, item)
			}
		}
		items := read()
		ids := map[string]bool{}
		said := map[int][]string{}
		for _, item := range items {
			require.False(t, ids[item.Event.EventID], "two events have the id %s", item.Event.EventID)
			ids[item.Event.EventID] = true
			users := 0
			for _, m := range item.Event.Messages {
				said[item.Line] = append(said[item.Line], string(m.Role)+":"+*m.Content)
				if m.Role == "user" {
					users++
				}
			}
			require.LessOrEqual(t, users, 1)
		}
		for i, line := range lines {
			var c struct {
				Messages []struct{ Role, Content string }
			}
			require.NoError(t, json.Unmarshal([]byte(line), &c))
			var want []string
			for _, m := range c.Messages {
				want = append(want, m.Role+":"+m.Content)
			}
			require.Equal(t, want, said[i+1])
		}
		require.Equal(t, items, read())
	})
}

// FuzzReader: no input makes the reader panic, loop forever, or return something invalid; every line is an event, an
// error or empty.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "[]", "{}", "null", `[{"role":"user","content":"a"}]`,
		"\xEF\xBB\xBF[{\"role\":\"user\",\"content\":\"a\"}]\r\n\r\n[",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"start":1e9}`,
		`[{"role":"user","content":"\ud800"}]`,
		`{"event_id":"e","run_id":"r","user_id":"u","session_id":"s","turn_id":"t","timestamp":"2026-01-01T00:00:00Z","messages":[{"role":"user","content":"x"}]}`,
		strings.Repeat("[", 3000), strings.Repeat("x", 5000) + "\n[]", "\xff\n[]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		o := given()
		o.MaxLine = 4096
		r, err := NewReader(bytes.NewReader(in), o)
		require.NoError(t, err)
		last, results := 0, 0
		for {
			item, err := r.Next()
			if err == io.EOF {
				break
			}
			var line *LineError
			if errors.As(err, &line) {
				require.Greater(t, line.Line, last)
				last = line.Line
			} else {
				require.NoError(t, err)
				require.NoError(t, item.Event.Validate())
				require.GreaterOrEqual(t, item.Line, last)
				last = item.Line
			}
			results++
			require.LessOrEqual(t, results, len(in)+1)
		}
	})
}
