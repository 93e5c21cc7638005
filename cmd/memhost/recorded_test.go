//go:build unix

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
)

// entries returns a log of Claude Code from the fields in which its entries differ. Each one is the parent of
// the next.
func entries(of ...string) string {
	var log strings.Builder
	parent := "null"
	for i, entry := range of {
		fmt.Fprintf(&log, `{"uuid":"u%d","parentUuid":%s,"sessionId":"s","timestamp":"2026-05-01T10:%02d:00Z",%s}`+"\n", i, parent, i, entry)
		parent = fmt.Sprintf(`"u%d"`, i)
	}
	return log.String()
}

func userMessage(text string) string {
	return fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, text)
}

func assistantMessage(text string) string {
	return fmt.Sprintf(`"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%q}]}`, text)
}

// chat is a request with its answer, as a gateway logs it.
func chat(id, created string, messages ...string) string {
	var list []string
	for i, text := range messages {
		list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text))
	}
	last := len(list) - 1
	return fmt.Sprintf(`{"created":%s,"request":{"messages":[%s]},"response":{"id":%q,"choices":[{"message":%s}]}}`+"\n", created,
		strings.Join(list[:last], ","), id, list[last])
}

// TestWhatPeopleSaidIsRecordedOnce gives the program an input of each kind that a reader once got wrong, and reads back
// from the archive what it took for said.
func TestWhatPeopleSaidIsRecordedOnce(t *testing.T) {
	brief.Leave(t)
	damaged := strings.Replace(entries(userMessage("The shed is red."), assistantMessage("Red."), userMessage("The cat is Mo."), assistantMessage("Mo.")),
		`{"uuid":"u2"`, `{"type":"system","content":"it en`+"\n"+`{"uuid":"u2"`, 1)
	turns := []string{"2026-05-01T10:00:00Z user: The shed is red. | assistant: Red.", "2026-05-01T10:02:00Z user: The cat is Mo. | assistant: Mo."}
	for _, c := range []struct {
		name, source, log string
		args              []string
		code              int
		stdout            []string
		want              []string
	}{
		{name: "a prompt typed while the agent works", source: "claude-code",
			log: entries(userMessage("Count the boats."), `"type":"queue-operation","operation":"enqueue","content":"One is Ida's."`,
				`"type":"attachment","attachment":{"type":"queued_command","prompt":"One is Ida's.","commandMode":"prompt"}`, assistantMessage("Five.")),
			want: []string{"2026-05-01T10:00:00Z user: Count the boats. | user: One is Ida's. | assistant: Five."}},
		{name: "a line cut off", source: "claude-code", log: damaged, code: 2},
		{name: "a line cut off, left out", source: "claude-code", log: damaged, args: []string{"--keep-going"}, code: 7,
			stdout: []string{"recorded 2 events, bad lines left out: 1"}, want: turns},
		{name: "a request cut off", source: "openai-jsonl", args: []string{"--keep-going"}, code: 7,
			log: chat("a", "1770000000", "The shed is red.", "Red.") + `{"id": "b", "mess` + "\n" +
				chat("c", "1770000060", "The cat is Mo.", "Mo."),
			stdout: []string{"recorded 2 events, bad lines left out: 1"},
			want: []string{"2026-02-02T02:40:00Z user: The shed is red. | assistant: Red.",
				"2026-02-02T02:41:00Z user: The cat is Mo. | assistant: Mo."}},
		{name: "a voice note", source: "claude",
			log: `[{"uuid":"c","name":"x","created_at":"2026-05-01T10:00:00Z","chat_messages":[` +
				`{"uuid":"1","sender":"human","created_at":"2026-05-01T10:00:00Z","text":"","content":[{"type":"voice_note","text":"The tram is at six."}]},` +
				`{"uuid":"2","sender":"assistant","created_at":"2026-05-01T10:01:00Z","text":"","content":[{"type":"text","text":"Six."}]}]}]`,
			want: []string{"2026-05-01T10:00:00Z user: The tram is at six. | assistant: Six."}},
		{name: "an editor's context", source: "claude-code",
			log: entries(userMessage("<ide_opened_file>The user opened /x/secret.txt</ide_opened_file>\nThe hen is Bea."), assistantMessage("Bea."),
				userMessage("<ide_selection>line 1: plumage</ide_selection>\nShe lays."), assistantMessage("Eggs.")),
			stdout: []string{"left out: 2 instructions"},
			want: []string{"2026-05-01T10:00:00Z user: The hen is Bea. | assistant: Bea.",
				"2026-05-01T10:02:00Z user: She lays. | assistant: Eggs."}},
		{name: "messages of other sessions", source: "claude-code",
			log: entries(userMessage("Plan the fair."), assistantMessage("I asked."),
				userMessage(`<teammate-message teammate_id="x">The stall is mine.</teammate-message>`), assistantMessage("Fine."),
				userMessage(`<cross-session-message from="y">So is the tent.</cross-session-message>`), assistantMessage("Fine, too.")),
			stdout: []string{"left out: 2 messages of other sessions or agents, 2 answers to them"},
			want:   []string{"2026-05-01T10:00:00Z user: Plan the fair. | assistant: I asked."}},
		{name: "words after a slash command", source: "claude-code",
			log: entries(userMessage("Hello."), assistantMessage("Hi."),
				userMessage("<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>a shed for Ida</command-args>"),
				assistantMessage("Four walls.")),
			want: []string{"2026-05-01T10:00:00Z user: Hello. | assistant: Hi.",
				"2026-05-01T10:02:00Z user: /plan a shed for Ida | assistant: Four walls."}},
		{name: "a log of growing requests", source: "openai-jsonl",
			log: chat("a", "1770000000", "The hen is Bea.", "Bea.") +
				chat("b", "1770000060", "The hen is Bea.", "Bea.", "She lays.", "Eggs.") +
				chat("c", "1770000120", "The hen is Bea.", "Bea.", "She lays.", "Eggs.", "On Fridays.", "Noted."),
			stdout: []string{"1 conversation in 1 file: 3 events, 6 messages", "6 repeated messages"},
			want: []string{"2026-02-02T02:40:00Z user: The hen is Bea. | assistant: Bea.",
				"2026-02-02T02:41:00Z user: She lays. | assistant: Eggs.",
				"2026-02-02T02:42:00Z user: On Fridays. | assistant: Noted."}},
		{name: "times of every form", source: "openai-jsonl", args: []string{"--keep-going", "--start", "2020-01-01T00:00:00Z"}, code: 7,
			log: chat("a", `"1770000000"`, "In digits.", "Yes.") + chat("b", "1770000060000", "In milliseconds.", "Yes.") +
				chat("c", `"2026-02-02 02:42:00"`, "Without a zone.", "Which?"),
			stdout: []string{"bad lines left out: 1"},
			want: []string{"2026-02-02T02:40:00Z user: In digits. | assistant: Yes.",
				"2026-02-02T02:41:00Z user: In milliseconds. | assistant: Yes."}},
		{name: "code is no credential", source: "claude-code",
			log: entries(userMessage(`Use api_key=os.environ["KEY"] and password = getpass.getpass().`),
				assistantMessage(`access_token = session.get("t"), in sk-SK-wordings.`)),
			want: []string{`2026-05-01T10:00:00Z user: Use api_key=os.environ["KEY"] and password = getpass.getpass(). | ` +
				`assistant: access_token = session.get("t"), in sk-SK-wordings.`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
			require.NoError(t, os.WriteFile(filepath.Join(m.dir, "log.jsonl"), []byte(c.log), 0o600))
			out, code := m.run(append([]string{"record", "--from", c.source, "log.jsonl", "--run", "r", "--user", "u"}, c.args...)...)
			require.Equal(t, c.code, code, out)
			for _, text := range c.stdout {
				require.Contains(t, out, text)
			}
			if len(c.want) == 0 {
				require.NoFileExists(t, filepath.Join(m.dir, "data", "state.db"), "nothing was sent")
				return
			}
			require.ElementsMatch(t, c.want, m.archived())
		})
	}
}

// archived are the events of the archive, each as a line.
func (m memhost) archived() (lines []string) {
	out, code := m.run("archive", "export", "-")
	require.Zero(m.t, code)
	for text := range strings.Lines(out) {
		var e abi.MemoryEvent
		if !strings.Contains(text, `"event_id"`) {
			continue // the header, which is no event
		}
		require.NoError(m.t, json.Unmarshal([]byte(text), &e))
		var said []string
		for _, message := range e.Messages {
			said = append(said, string(message.Role)+": "+*message.Content)
		}
		lines = append(lines, e.Timestamp+" "+strings.Join(said, " | "))
	}
	return lines
}

// TestModelsThatTalkAroundTheirAnswer: a memory's model that quotes before its list, and judges and agents that think
// aloud, fence their word or begin with a word of introduction.
func TestModelsThatTalkAroundTheirAnswer(t *testing.T) {
	brief.Leave(t)
	const fact = `[{"event_type":"add","subject":"Ida","predicate":"keeps","object":"a hen called Bea","scope":"permanent","topic":"",` +
		`"confidence":0.9,"sensitivity":"normal","evidence":null,"parent_id":null}]`
	says := map[string]string{
		"list": fact, "list-after-quote": "Line [1] says so:\n```json\n" + fact + "\n```", "list-after-empty": "First I thought [], then:\n" + fact,
		"judge-word": "yes", "judge-thinks": "<think>The names agree.</think>\nyes", "judge-fences": "```\nyes\n```", "judge-introduces": "Answer: yes",
		"agent-thinks": "<think>Bea, I guess, or Mo.</think>\n\nI cannot say.",
	}
	var mu sync.Mutex
	var asked []string // what judges were shown
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model    string
			Messages json.RawMessage
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		if strings.HasPrefix(q.Model, "judge") {
			mu.Lock()
			asked = append(asked, string(q.Messages))
			mu.Unlock()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": q.Model, "choices": []any{map[string]any{"finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": says[q.Model]}}}})
	}))
	defer server.Close()
	folder := func(t *testing.T, files map[string]string) memhost {
		m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600))
		}
		return m
	}
	for _, model := range []string{"list", "list-after-quote", "list-after-empty"} {
		t.Run(model, func(t *testing.T) {
			m := folder(t, map[string]string{
				"memhost.yaml": fmt.Sprintf("memory: {condition: ledger_memory, smoke: never, conditions: {ledger_memory: "+
					"{llm: {base_url: %q, model: %s}}}}\n", server.URL+"/v1", model),
				"said.json": `[{"role":"user","content":"I keep a hen called Bea."}]`,
			})
			_, code := m.run("record", "said.json", "--run", "r", "--user", "u", "--session", "s", "--start", "2026-03-01T09:00:00Z")
			require.Zero(t, code)
			out, code := m.run("readiness", "--run", "r", "--user", "u", "--timeout", "60s")
			require.Zero(t, code)
			require.NotContains(t, out, "empty:")
			require.Contains(t, m.everything().FormattedContext, "Ida keeps a hen called Bea")
		})
	}
	for _, judge := range []string{"judge-word", "judge-thinks", "judge-fences", "judge-introduces"} {
		t.Run(judge, func(t *testing.T) {
			m := folder(t, map[string]string{
				"chat.jsonl":   `{"session_id":"s1","start":"2026-03-01T09:00:00Z","messages":[{"role":"user","content":"My hen is called Bea."},{"role":"assistant","content":"Bea!"}]}` + "\n",
				"probes.jsonl": `{"after_session": 1, "label": "name", "query": "What is the hen called?", "gold": {"answerable": true, "answers": [["Bea"]]}}` + "\n",
				"lab.yaml": fmt.Sprintf("lab: 1\npack: p.pack\nbudgets: [200]\nfreshness: 0\nproviders: [bm25]\nagent: {url: %q, model: agent-thinks}\n"+
					"judge: {url: %q, model: %s}\n", server.URL+"/v1", server.URL+"/v1", judge),
			})
			mu.Lock()
			asked = nil
			mu.Unlock()
			_, code := m.run("eval", "pack", "build", "chats", "chat.jsonl", "probes.jsonl", "-o", "p.pack")
			require.Zero(t, code)
			_, code = m.run("eval", "run", "lab.yaml", "--out", "run", "--yes", "--no-references")
			require.Zero(t, code)
			out, code := m.run("eval", "judge", "run")
			require.Zero(t, code, out)
			require.Contains(t, out, "judged 1.000")
			mu.Lock()
			defer mu.Unlock()
			shown := strings.Join(asked, "\n")
			require.Contains(t, shown, "I cannot say.")
			require.NotContains(t, shown, "Bea, I guess", "what the agent thinks is not judged")
		})
	}
}

// TestFilesOfWindowsAreTakenIn: with a byte order mark and CRLF, and as UTF-16, into the archive, a ledger and a memory
// of files.
func TestFilesOfWindowsAreTakenIn(t *testing.T) {
	brief.Leave(t)
	utf16Of := func(order binary.AppendByteOrder) func(string) string {
		return func(text string) string {
			var out []byte
			for _, unit := range utf16.Encode([]rune("\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"))) {
				out = order.AppendUint16(out, unit)
			}
			return string(out)
		}
	}
	const settings = "memory: {smoke: never, archive: true, condition: %s, conditions: {layered_memory: " +
		`{llm: {base_url: "http://127.0.0.1:1/v1", model: none}}}}` + "\n"
	folder := func(t *testing.T, condition string) memhost {
		m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), fmt.Appendf(nil, settings, condition), 0o600))
		return m
	}
	must := func(m memhost, args ...string) string {
		out, code := m.run(args...)
		require.Zero(m.t, code, out)
		return out
	}
	from := folder(t, "ledger_memory")
	turn := `{"event_id":"e1","run_id":"r","user_id":"u","session_id":"s","turn_id":"t1","timestamp":"2026-01-01T09:00:00Z",` +
		`"messages":[{"role":"user","content":"Zoë likes tea."}]}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(from.dir, "turns.jsonl"), []byte(turn), 0o600))
	must(from, "record", "turns.jsonl")
	archive, ledger := must(from, "archive", "export", "-"), must(from, "ledger", "export", "--history", "--run", "r", "--user", "u")
	for name, encode := range map[string]func(string) string{
		"a mark and CRLF":    func(text string) string { return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") },
		"UTF-16":             utf16Of(binary.LittleEndian),
		"UTF-16, big-endian": utf16Of(binary.BigEndian),
	} {
		t.Run(name, func(t *testing.T) {
			put := func(m memhost, path, text string) {
				path = filepath.Join(m.dir, path)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(encode(text)), 0o600))
			}
			m := folder(t, "full_history")
			put(m, "archive.jsonl", archive)
			must(m, "archive", "import", "archive.jsonl")
			require.Equal(t, []string{"2026-01-01T09:00:00Z user: Zoë likes tea."}, m.archived())

			m = folder(t, "ledger_memory")
			put(m, "ledger.json", ledger)
			must(m, "ledger", "import", "ledger.json", "--run", "r", "--user", "u")
			require.Contains(t, must(m, "ledger", "view", "--run", "r", "--user", "u"), "Zoë likes tea")

			m = folder(t, "layered_memory")
			put(m, "workspace/USER.md", "- Zoë likes tea.\n")
			put(m, "workspace/memory/history.jsonl", `{"cursor": 1, "timestamp": "2026-11-21 13:27", "content": "Zoë went to Graz."}`+"\n")
			must(m, "import", "workspace", "--run", "r", "--user", "u")
			context := m.everything().FormattedContext
			require.Contains(t, context, "Zoë likes tea.")
			require.Contains(t, context, "Zoë went to Graz.")
			require.NotContains(t, context, "\r")
		})
	}
}
