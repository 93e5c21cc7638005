package convert_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/chats"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/text/convert"
)

// lines writes a chat as OpenAI-style messages, each with its time. People are users with names.
func lines(t *testing.T, c chats.Chat) []byte {
	var messages []map[string]any
	for _, m := range c.Messages {
		message := map[string]any{"role": "user", "name": m.SenderName, "content": m.Content, "timestamp": m.Time}
		if m.Assistant {
			message["role"] = "assistant"
		}
		messages = append(messages, message)
	}
	line, err := json.Marshal(messages)
	require.NoError(t, err)
	return append(line, '\n')
}

func TestMain(m *testing.M) { testcache.Run(m) }

func openFullHistory(t *testing.T) *host.Slot {
	wasm, err := os.ReadFile(filepath.FromSlash("../../../plugins/conditions/full_history/full_history.wasm"))
	require.NoError(t, err)
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(), Durability: "process"})
	require.NoError(t, err)
	slot, err := h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: wasm, Source: "test"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, slot.Close(ctx))
		require.NoError(t, h.Close(ctx))
	})
	return slot
}

// record reads lines and delivers them, and returns the events in order.
func record(t *testing.T, slot host.Contract, lines []byte, o convert.Options) []abi.MemoryEvent {
	r, err := convert.NewReader(bytes.NewReader(lines), o)
	require.NoError(t, err)
	var batch abi.EventBatch
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		batch.Events = append(batch.Events, *item.Event)
	}
	answer, err := slot.RecordEvents(context.Background(), &batch)
	require.NoError(t, err)
	for _, a := range answer.Receipts {
		require.Nil(t, a.Error)
		require.Equal(t, abi.StatusCommitted, a.Receipt.Status)
	}
	return batch.Events
}

func retrieve(t *testing.T, slot host.Contract, run, user string) (*abi.RetrieveResult, []abi.MemoryEvent) {
	result, err := slot.Retrieve(context.Background(),
		&abi.RetrieveRequest{Query: "everything", Scope: abi.MemoryScope{RunID: run, PersonaID: user},
			SessionID: "new"})
	require.NoError(t, err)
	var batch abi.EventBatch
	require.NoError(t, abi.Unmarshal([]byte(`{"events":`+string(result.Raw.Calls[0].Body)+`}`), &batch))
	return result, batch.Events
}

// Conversations are recorded and come back under full_history in order and complete, in English and Chinese. CHATS=DIR
// has longer ones.
func TestChatsComeBackInOrderAndWhole(t *testing.T) {
	slot := openFullHistory(t)
	list, err := chats.Read(cmp.Or(os.Getenv(chats.Variable), filepath.FromSlash("testdata/chats")))
	require.NoError(t, err)
	for _, c := range list {
		name := c.Name
		t.Run(name, func(t *testing.T) {
			events := record(t, slot, lines(t, c), convert.Options{RunID: "chats", UserID: name, SessionID: "s"})
			_, got := retrieve(t, slot, "chats", name)

			// People's messages overlap: full_history orders turns by time, and by arrival if that is equal.
			want := slices.Clone(events)
			slices.SortStableFunc(want, func(a, b abi.MemoryEvent) int {
				return cmp.Compare(unix(t, a.Timestamp), unix(t, b.Timestamp))
			})
			require.Equal(t, len(want), len(got))
			said := 0
			for i := range want {
				require.Equal(t, string(abi.Marshal(&want[i])), string(abi.Marshal(&got[i])))
				said += len(got[i].Messages)
			}
			require.Equal(t, len(c.Messages), said, "every message of the chat is there")

			again := record(t, slot, lines(t, c), convert.Options{RunID: "chats", UserID: name, SessionID: "s"})
			require.Equal(t, events, again)
			_, after := retrieve(t, slot, "chats", name)
			require.Equal(t, len(got), len(after), "recorded twice, kept once")
		})
	}
}

func unix(t *testing.T, s string) int64 {
	at, err := abi.ParseTime(s)
	require.NoError(t, err)
	return at.UnixNano()
}

// Scopes whose ids look alike, in whatever way, share nothing.
func TestLookAlikeScopesShareNothing(t *testing.T) {
	slot := openFullHistory(t)
	scopes := [][2]string{{"a", "b"}, {"a/b", "b"}, {"a", "b/b"}, {"a/", "b"}, {"A", "b"}, {"a ", "b"}, {"b", "a"},
		{"ａ", "b"}, {"*", "b"}, {"..", "b"}, {"a:b", ""}, {"a", ":b"}}
	scopes[10][1] = "a:b"
	o := convert.Options{SessionID: "s", Start: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	for i, s := range scopes {
		o.RunID, o.UserID = s[0], s[1]
		record(t, slot, []byte(`[{"role":"user","content":"My cat is called Zorvex`+string(rune('A'+i))+`"}]`), o)
	}
	for i, s := range scopes {
		result, events := retrieve(t, slot, s[0], s[1])
		require.Len(t, events, 1, "%q", s)
		require.Contains(t, result.FormattedContext, "Zorvex"+string(rune('A'+i)))
	}
}
