//go:build unix

package conversations_test

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// longConversations generates a conversation with a number of turns, in which some answers were replaced.
var longConversations = map[conversations.Source]func(turns int) string{
	conversations.ChatGPT: func(turns int) string {
		var nodes []string
		parent := ""
		for i := range turns {
			node := func(id, parent, role string) {
				nodes = append(nodes, fmt.Sprintf(`%q:{"parent":%q,"message":{"author":{"role":%q},"create_time":%d,`+
					`"content":{"content_type":"text","parts":["text %s"]}}}`, id, parent, role, 1775000000+i, id))
			}
			question, answer := fmt.Sprint("q", i), fmt.Sprint("a", i)
			node(question, parent, "user")
			node("replaced-"+answer, question, "assistant")
			node(answer, question, "assistant")
			parent = answer
		}
		return fmt.Sprintf(`[{"id":"x","create_time":1775000000,"current_node":%q,"mapping":{%s}}]`, parent,
			strings.Join(nodes, ","))
	},
	conversations.Claude: func(turns int) string {
		var list []string
		parent := "0000"
		for i := range turns {
			message := func(id, parent, sender string) {
				list = append(list, fmt.Sprintf(`{"uuid":%q,"parent_message_uuid":%q,"sender":%q,"text":"text %s",`+
					`"created_at":"2026-01-05T10:00:00Z"}`, id, parent, sender, id))
			}
			question, answer := fmt.Sprint("q", i), fmt.Sprint("a", i)
			message(question, parent, "human")
			message("replaced-"+answer, question, "assistant")
			message(answer, question, "assistant")
			parent = answer
		}
		return `[{"uuid":"k","created_at":"2026-01-05T10:00:00Z","chat_messages":[` + strings.Join(list, ",") + `]}]`
	},
	conversations.ClaudeCode: func(turns int) string {
		var b strings.Builder
		parent := "null"
		for i := range turns {
			entry := func(id, parent, role string) {
				fmt.Fprintf(&b, `{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","timestamp":"2026-01-07T09:00:00Z",`+
					`"message":{"role":%[1]q,"content":[{"type":"text","text":"text %[2]s"}]}}`+"\n", role, id, parent)
			}
			question, answer := fmt.Sprint("q", i), fmt.Sprint("a", i)
			entry(question, parent, "user")
			entry("replaced-"+answer, `"`+question+`"`, "assistant")
			entry(answer, `"`+question+`"`, "assistant")
			parent = `"` + answer + `"`
		}
		return b.String()
	},
	conversations.Codex: func(turns int) string {
		var b strings.Builder
		b.WriteString(`{"timestamp":"2026-01-08T09:00:00Z","type":"session_meta","payload":{"id":"cx"}}` + "\n")
		for i := range turns {
			for _, of := range [][2]string{{"user", "input_text"}, {"assistant", "output_text"}} {
				fmt.Fprintf(&b, `{"timestamp":"2026-01-08T09:00:00Z","type":"response_item","payload":{"type":"message",`+
					`"role":%q,"content":[{"type":%q,"text":"text %d"}]}}`+"\n", of[0], of[1], i)
			}
		}
		return b.String()
	},
	conversations.OpenAIJSONL: func(turns int) string {
		var list []string
		for i := range turns {
			list = append(list, fmt.Sprintf(`{"role":"user","content":"question %d"},{"role":"assistant","content":"text %[1]d"}`, i))
		}
		return `{"id":"a","created":1775000000,"messages":[` + strings.Join(list, ",") + `]}`
	},
	conversations.Gemini: func(turns int) string {
		var list []string
		for i := range turns {
			list = append(list, fmt.Sprintf(`{"role":"user","text":"question %d"},{"role":"model","text":"text %[1]d"}`, i))
		}
		return `{"runSettings":{"temperature":1},"chunkedPrompt":{"chunks":[` + strings.Join(list, ",") + `]}}`
	},
}

func TestALongConversationIsReadInLinearTime(t *testing.T) {
	brief.Skip(t)
	const turns = 67_000 // 201,000 messages in ChatGPT's export, including replaced ones
	for _, source := range conversations.Sources() {
		t.Run(string(source), func(t *testing.T) {
			requireLinear(t, turns, func(turns int) string { return write(t, "x.json", longConversations[source](turns)) },
				func(path string) int { return turnsOf(t, source, path) })
		})
	}
}

func TestAnArchiveOfManyFilesIsReadInLinearTime(t *testing.T) {
	brief.Skip(t)
	const files = 10_000
	requireLinear(t, files, func(files int) string {
		all := map[string]string{}
		for i := range files {
			all[fmt.Sprintf("conversations-%d.json", i)] = strings.ReplaceAll(longConversations[conversations.ChatGPT](1), `"x"`, fmt.Sprintf(`"x%d"`, i))
		}
		return archive(t, all)
	}, func(path string) int { return turnsOf(t, conversations.ChatGPT, path) })
}

// requireLinear requires that reading n turns takes at most three times the processor time, per turn, of reading an
// eighth of them. Quadratic reading would take eight times as much.
func requireLinear(t *testing.T, n int, make func(n int) (path string), read func(path string) int) {
	t.Helper()
	few, many := make(n/8), make(n)
	spent := func(path string, want, readings int) time.Duration {
		least := time.Hour
		for range readings { // use the minimum, because a short measurement is easily disturbed
			before := processorTime(t)
			require.Equal(t, want, read(path))
			least = min(least, processorTime(t)-before)
		}
		return least
	}
	one, all := spent(few, n/8, 3), spent(many, n, 1)
	t.Logf("%d: %s, %d: %s", n/8, one, n, all)
	require.Less(t, all, 3*8*one)
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func turnsOf(t *testing.T, source conversations.Source, path string) (n int) {
	t.Helper()
	r, err := conversations.Open(source, []string{path}, conversations.Options{Options: convert.Options{RunID: "r", UserID: "u",
		Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}})
	require.NoError(t, err)
	for ; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			return n
		}
		require.NoError(t, err)
	}
}
