package conversations_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// read formats a reader's output: a line for each event, each of its messages, and each error.
func read(t *testing.T, source conversations.Source, paths ...string) (string, conversations.Counts) {
	r, err := conversations.Open(source, paths, conversations.Options{Options: convert.Options{RunID: "r", UserID: "ann"}})
	require.NoError(t, err)
	var b strings.Builder
	for {
		item, err := r.Next()
		if err == io.EOF {
			return b.String(), r.Counts()
		}
		var one *convert.LineError
		if errors.As(err, &one) {
			fmt.Fprintf(&b, "error: %s\n", one.Err.Message)
			continue
		}
		require.NoError(t, err)
		e := item.Event
		fmt.Fprintf(&b, "%s %s %s\n", e.SessionID, e.TurnID, e.Timestamp)
		for _, m := range e.Messages {
			fmt.Fprintf(&b, "  %s: %q\n", m.Role, *m.Content)
		}
	}
}

func TestChatGPT(t *testing.T) {
	text, counts := read(t, conversations.ChatGPT, "testdata/chatgpt")
	require.Equal(t, `chatgpt-c-moving turn-0001 2026-01-01T09:00:00.123456Z
  user: "Is this flat in Lyon any good?\n[attachment: flat.png]"
  assistant: "Yes, it is light."
`, text)
	require.Equal(t, 1, counts.Conversations)
	require.Equal(t, 1, counts.Attachments)
	require.Equal(t, 1, counts.ToolCalls)
	require.Equal(t, 1, counts.ToolOutputs)
	require.Equal(t, 1, counts.Replaced, "the answer that was made anew")
	require.Equal(t, 1, counts.Unfinished, "a question without an answer")
	require.Equal(t, 1, counts.Empty)
}

func TestClaude(t *testing.T) {
	text, counts := read(t, conversations.Claude, "testdata/claude")
	require.Equal(t, `claude-k-1 turn-0001 2026-01-05T10:00:00Z
  user: "How long does sourdough rest?\n[attachment: recipe.txt]\n[attachment: dough.jpg]"
  assistant: "Twelve hours."
`, text)
	require.Equal(t, []string{filepath.Join("testdata", "claude", "memories.json")}, counts.Derived)
	require.Equal(t, 1, counts.Thoughts)
	require.Equal(t, 1, counts.Empty)
}

func TestClaudeShowsTheLastBranch(t *testing.T) {
	name := write(t, "c.json", `[{"uuid":"k","created_at":"2026-01-05T10:00:00Z","chat_messages":[
		{"uuid":"1","parent_message_uuid":"0000","sender":"human","text":"one"},
		{"uuid":"2","parent_message_uuid":"1","sender":"assistant","text":"replaced"},
		{"uuid":"3","parent_message_uuid":"1","sender":"assistant","text":"shown"}]}]`)
	text, counts := read(t, conversations.Claude, name)
	require.Contains(t, text, "shown")
	require.NotContains(t, text, "replaced")
	require.Equal(t, 1, counts.Replaced)
}

func TestClaudeCode(t *testing.T) {
	text, counts := read(t, conversations.ClaudeCode, "testdata/claude-code")
	require.Equal(t, `claude-code-cc-1 turn-0001 2026-01-07T09:00:01Z
  user: "Deploy with OPENAI_API_KEY=[credential left out] please"
  assistant: "I look at the script."
  assistant: "Deployed."
claude-code-cc-1 turn-0002 2026-01-07T09:02:00Z
  user: "Now the tests."
  assistant: "They pass."
`, text)
	require.Equal(t, 1, counts.Credentials)
	require.Equal(t, 2, counts.ToolCalls)
	require.Equal(t, 1, counts.ToolOutputs)
	require.Equal(t, 2, counts.Replaced, "a prompt that was taken back, and its answer")
	require.Equal(t, 1, counts.SideConversations)
	require.Equal(t, 2, counts.Instructions)
	require.Equal(t, 1, counts.Unfinished, "the agent still works on the last prompt")
}

func TestAResumedSessionRepeatsNothing(t *testing.T) {
	one, err := os.ReadFile("testdata/claude-code/session.jsonl")
	require.NoError(t, err)
	whole := string(one[:bytes.LastIndexByte(one, '\n')+1]) // without the line that is cut off
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.jsonl"), []byte(whole), 0o600))
	answer := `{"type":"assistant","uuid":"14","parentUuid":"12","sessionId":"cc-2","timestamp":"2026-01-09T09:00:00Z",` +
		`"message":{"content":[{"type":"text","text":"They are right."}]}}` + "\n"
	resumed := strings.ReplaceAll(whole, "cc-1", "cc-2") + answer
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.jsonl"), []byte(resumed), 0o600)) // a name that sorts before the first

	text, counts := read(t, conversations.ClaudeCode, folder)
	first, _ := read(t, conversations.ClaudeCode, "testdata/claude-code")
	require.Equal(t, first+`claude-code-cc-2 turn-0001 2026-01-07T09:03:00Z
  user: "And the docs?"
  assistant: "I read them."
  assistant: "They are right."
`, text, "the turn that the first session left open is the second's")
	require.Equal(t, 1, counts.Unfinished)
	require.Positive(t, counts.Repeated)
}

func TestCodex(t *testing.T) {
	text, counts := read(t, conversations.Codex, "testdata/codex")
	require.Equal(t, `codex-cx-0 turn-0001 2025-05-01T09:00:00Z
  user: "Hello"
  assistant: "Hi"
codex-cx-1 turn-0001 2026-01-08T09:00:01Z
  user: "What does main do?"
  assistant: "It serves."
`, text)
	require.Equal(t, 2, counts.Replaced, "a turn that was taken back")
	require.Equal(t, 2, counts.Instructions)
	require.Equal(t, 1, counts.Thoughts)
}

func TestAForkOfACodexSessionRepeatsNothing(t *testing.T) {
	meta := func(id string) string {
		return `{"timestamp":"2026-01-08T09:00:00Z","type":"session_meta","payload":{"id":"` + id + `"}}` + "\n"
	}
	turn := func(asked, answered string) (lines string) {
		for _, m := range [][2]string{{"user", asked}, {"assistant", answered}} {
			lines += `{"timestamp":"2026-01-08T09:00:01Z","type":"response_item","payload":{"type":"message","role":"` + m[0] +
				`","content":[{"type":"output_text","text":"` + m[1] + `"}]}}` + "\n"
		}
		return lines
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"rollout-1.jsonl": meta("one") + turn("a", "b") + turn("c", "d"),
		"rollout-2.jsonl": meta("fork") + meta("one") + turn("a", "b") + turn("e", "f"),
		"rollout-3.jsonl": meta("own") + turn("a", "b")} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	text, counts := read(t, conversations.Codex, folder)
	require.Equal(t, 2, strings.Count(text, `user: "a"`), "said in two sessions, and repeated by the fork: "+text)
	require.Contains(t, text, "codex-fork turn-0002")
	require.Equal(t, 2, counts.Repeated)
	require.Equal(t, 4, counts.Events)

	for _, name := range []string{"rollout-1.jsonl", "rollout-2.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(turn("a", "b")), 0o600))
	}
	text, _ = read(t, conversations.Codex, folder)
	require.Equal(t, 1, strings.Count(text, `user: "a"`), "a log that says of no session is nobody's origin: "+text)
}

func TestWhatTwoFilesHaveCountsOnce(t *testing.T) {
	name := archive(t, map[string]string{"conversations.json": "[]"})
	plain, err := os.ReadFile("testdata/chatgpt/conversations.json")
	require.NoError(t, err)
	older := write(t, "older.json", string(plain))
	once, first := read(t, conversations.ChatGPT, older)
	text, counts := read(t, conversations.ChatGPT, older, name, older)
	require.Equal(t, once, text)
	require.Equal(t, first.Events, counts.Events)
	require.Equal(t, first.Conversations, counts.Conversations)
	require.Equal(t, 2, counts.Repeated)
}

func TestOneConversationThatCannotBeReadHidesNoOther(t *testing.T) {
	plain, err := os.ReadFile("testdata/chatgpt/conversations.json")
	require.NoError(t, err)
	want, _ := read(t, conversations.ChatGPT, "testdata/chatgpt")
	text, _ := read(t, conversations.ChatGPT, write(t, "x.json",
		`[{"id":"x","mapping":null},null,`+string(plain[bytes.IndexByte(plain, '[')+1:])))
	require.Equal(t, 2, strings.Count(text, "error: "), text)
	require.Contains(t, text, want)
}

func TestAnArchiveWithANameTwiceAndAFolderThatIsALink(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, id := range []string{"one", "two"} {
		w, err := z.Create("x.jsonl")
		require.NoError(t, err)
		_, err = fmt.Fprintf(w, `{"id":%q,"created":1767776400,"messages":[{"role":"user","content":"a"},`+
			`{"role":"assistant","content":"b"}]}`, id)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	text, _ := read(t, conversations.OpenAIJSONL, write(t, "twice.zip", b.String()))
	require.Contains(t, text, "openai-jsonl-one")
	require.Contains(t, text, "openai-jsonl-two")

	link := filepath.Join(t.TempDir(), "link")
	folder, err := filepath.Abs("testdata/codex")
	require.NoError(t, err)
	if os.Symlink(folder, link) != nil {
		return // a system without links
	}
	_, counts := read(t, conversations.Codex, link)
	require.Equal(t, 2, counts.Events)
}

func TestOpenAIJSONL(t *testing.T) {
	text, counts := read(t, conversations.OpenAIJSONL, "testdata/openai.jsonl")
	require.Equal(t, `openai-jsonl-r1 turn-0001 2026-01-07T09:00:00Z
  user: "Two and two?"
  assistant: "Four."
openai-jsonl-r2 turn-0001 2026-01-07T11:00:00Z
  user: "What is it?\n[attachment: image]"
  assistant: "A cat."
openai-jsonl-r3 turn-0001 2026-01-07T10:00:00Z
  user: "And three?"
  assistant: "Six."
`, text)
	require.Equal(t, 1, counts.ToolCalls)
}

func TestAConversationThatHasGrownKeepsItsIDs(t *testing.T) {
	ids := func(text string) []string {
		r, err := conversations.Open(conversations.OpenAIJSONL, []string{write(t, "x.jsonl", text)},
			conversations.Options{Options: convert.Options{RunID: "r", UserID: "u"}})
		require.NoError(t, err)
		var ids []string
		for {
			item, err := r.Next()
			if err == io.EOF {
				return ids
			}
			require.NoError(t, err)
			ids = append(ids, item.Event.EventID)
		}
	}
	const begin = `{"id":"r","created":1767776400,"messages":[{"role":"user","content":"a"},` +
		`{"role":"assistant","content":"b"}`
	short, long := ids(begin+`]}`), ids(begin+`,{"role":"user","content":"c"},{"role":"assistant","content":"d"}]}`)
	open := ids(begin + `,{"role":"user","content":"c"}]}`)
	require.Len(t, long, 2)
	require.Equal(t, short, long[:1])
	require.Equal(t, short, open, "a turn without an answer waits")
}

func TestArchive(t *testing.T) {
	plain, err := os.ReadFile("testdata/chatgpt/conversations.json")
	require.NoError(t, err)
	name := archive(t, map[string]string{"export/conversations.json": string(plain), "export/user.json": "{}",
		"export/memories.json": "[]"})
	text, counts := read(t, conversations.ChatGPT, name)
	want, _ := read(t, conversations.ChatGPT, "testdata/chatgpt")
	require.Equal(t, want, text)
	require.Equal(t, []string{name + "/export/memories.json"}, counts.Derived)
}

func TestArchivesThatAreRefused(t *testing.T) {
	whole, err := os.ReadFile(archive(t, map[string]string{"conversations.json": "[]"}))
	require.NoError(t, err)
	locked := bytes.Clone(whole)
	at := bytes.Index(locked, []byte("PK\x01\x02"))
	locked[at+8] |= 1
	for what, c := range map[string]struct{ name, want string }{
		"path out":   {archive(t, map[string]string{"../conversations.json": "[]"}), "leads out of it"},
		"root":       {archive(t, map[string]string{"/etc/conversations.json": "[]"}), "leads out of it"},
		"backslash":  {archive(t, map[string]string{`..\conversations.json`: "[]"}), "leads out of it"},
		"nothing":    {archive(t, map[string]string{"chat.html": "x"}), "has no conversations of chatgpt"},
		"cut off":    {write(t, "cut.zip", string(whole[:len(whole)/2])), "not a valid zip"},
		"encrypted":  {write(t, "locked.zip", string(locked)), "is encrypted"},
		"is missing": {filepath.Join(t.TempDir(), "no.zip"), "does not exist"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := conversations.Open(conversations.ChatGPT, []string{c.name}, conversations.Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestAnArchiveThatUnpacksToFarTooMuchIsStopped(t *testing.T) {
	brief.Leave(t)
	line := strings.Repeat(" ", 1<<20) + "\n"
	text, counts := read(t, conversations.Codex, archive(t, map[string]string{"a.jsonl": strings.Repeat(line, 128)}))
	require.Contains(t, text, "200 times as large")
	require.Zero(t, counts.Events)
	text, _ = read(t, conversations.ChatGPT, archive(t, map[string]string{"conversations.json": "[" + line + line}))
	require.Contains(t, text, "1 MiB of blanks")
	text, _ = read(t, conversations.ChatGPT, archive(t, map[string]string{"conversations.json": "[\"" +
		strings.Repeat("x", 65<<20)}))
	require.Contains(t, text, "a conversation of more than 64 MiB")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for what, c := range map[string]struct {
		source     conversations.Source
		text, want string
	}{
		"cut off":         {conversations.ChatGPT, `[{"mapping": {}, "id": "x"}, {"mapp`, "the list of conversations is cut off"},
		"an object":       {conversations.ChatGPT, `{"a": 1}`, "mapping: want the messages of a conversation"},
		"claude's":        {conversations.ChatGPT, `[{"uuid": "x", "chat_messages": []}]`, "--from claude"},
		"chatgpt's":       {conversations.Claude, `[{"id": "x", "mapping": {}}]`, "--from chatgpt"},
		"another version": {conversations.Claude, `[{"uuid": "x", "turns": []}]`, "another version"},
		"a circle": {conversations.ChatGPT,
			`[{"id":"x","current_node":"a","mapping":{"a":{"parent":"b"},"b":{"parent":"a"}}}]`, "circle"},
		"codex's":           {conversations.ClaudeCode, `{"type":"session_meta","payload":{"id":"a"}}`, "--from codex"},
		"claude code's":     {conversations.Codex, `{"type":"user","sessionId":"a","message":{}}`, "--from claude-code"},
		"no codex":          {conversations.Codex, `{"a":1}`, "another version"},
		"no claude code":    {conversations.ClaudeCode, `{"a":1}`, "another version"},
		"a line is no JSON": {conversations.Codex, "{}\nxx\n{}\n", "line 2: is not a JSON object"},
		"no messages":       {conversations.OpenAIJSONL, "{\"a\":1}\n", "line 1: has no messages"},
		"no time": {conversations.OpenAIJSONL,
			`{"id":"a","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`,
			"line 1: messages[0].timestamp: missing"},
	} {
		t.Run(what, func(t *testing.T) {
			text, _ := read(t, c.source, write(t, "x.json", c.text))
			require.Contains(t, text, "error: ")
			require.Contains(t, text, c.want)
		})
	}
}

func TestWhatLooksLikeACredential(t *testing.T) {
	for said, want := range map[string]string{
		"my key is sk-ant-EXAMPLEEXAMPLEEX ok":               "my key is [credential left out] ok",
		"ghp_EXAMPLEEXAMPLEEXAMPLE1":                         "[credential left out]",
		`{"password": "hunter22", "user": "ann"}`:            `{"password": "[credential left out]", "user": "ann"}`,
		"sk_live_EXAMPLEEXAMPLEEX and AKIAEXAMPLEEXAMPLE01":  "[credential left out] and [credential left out]",
		"xoxb-EXAMPLE-EXAMPLE, hf_EXAMPLEEXAMPLEEXAMPLE":     "[credential left out], [credential left out]",
		"eyJEXAMPLEE.eyJEXAMPLEE.sig":                        "[credential left out]",
		"Authorization: Bearer abcdefghij":                   "Authorization: Bearer [credential left out]",
		"postgres://ann:s3cret@db/x":                         "postgres://ann:[credential left out]@db/x",
		"-----BEGIN PRIVATE KEY-----\nx\n":                   "[credential left out]",
		"password: ${PASSWORD}":                              "password: ${PASSWORD}",
		"What is a good password?":                           "What is a good password?",
		"The secret: patience":                               "The secret: patience",
		"API_KEY=abcdefgh":                                   "API_KEY=[credential left out]",
		"see https://example.com:8080/a and risk-management": "see https://example.com:8080/a and risk-management",
	} {
		name := write(t, "x.jsonl", fmt.Sprintf(`{"id":"a","created":1767776400,"messages":[{"role":"user","content":"q"},`+
			`{"role":"assistant","content":%q}]}`, said))
		text, counts := read(t, conversations.OpenAIJSONL, name)
		require.Contains(t, text, fmt.Sprintf("assistant: %q", want))
		require.Equal(t, strings.Count(want, "left out"), counts.Credentials, said)
	}
}

func write(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func archive(t *testing.T, files map[string]string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(w, text)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return write(t, "export.zip", b.String())
}
