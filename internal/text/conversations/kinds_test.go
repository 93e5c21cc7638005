package conversations_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// words returns a reader's output, without the lines about events.
func words(t *testing.T, source conversations.Source, text string) (string, conversations.Counts) {
	all, counts := read(t, source, write(t, "x.json", text))
	var said []string
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "error") {
			said = append(said, strings.TrimSpace(line))
		} else {
			said = append(said, "--")
		}
	}
	return strings.Join(said, "\n"), counts
}

// code is a Claude Code log: entries without the members that all have. U and A are a user's and an assistant's text.
func code(entries ...string) string {
	var b strings.Builder
	parent := "null"
	for i, e := range entries {
		kind, text, _ := strings.Cut(e, ":")
		content, _ := json.Marshal(text)
		common := fmt.Sprintf(`"uuid":"e%d","parentUuid":%s,"sessionId":"s","timestamp":"2026-05-01T10:%02d:00Z"`, i, parent, i)
		parent = fmt.Sprintf(`"e%d"`, i)
		switch kind {
		case "U":
			fmt.Fprintf(&b, `{"type":"user",%s,"message":{"role":"user","content":%s}}`, common, content)
		case "A":
			fmt.Fprintf(&b, `{"type":"assistant",%s,"message":{"content":[{"type":"text","text":%s}]}}`, common, content)
		case "T":
			fmt.Fprintf(&b, `{"type":"assistant",%s,"message":{"content":[{"type":"tool_use","name":"x"}]}}`, common)
		case "R":
			fmt.Fprintf(&b, `{"type":"user",%s,"message":{"content":[{"type":"tool_result","content":"7"}]}}`, common)
		case "Q":
			fmt.Fprintf(&b, `{"type":"attachment",%s,"attachment":{"type":"queued_command","prompt":%s}}`, common, content)
		case "E": // enqueued
			fmt.Fprintf(&b, `{"type":"queue-operation","operation":"enqueue","sessionId":"s","timestamp":"2026-05-01T10:00:00Z","content":%s}`, content)
		default:
			b.WriteString(strings.ReplaceAll(e, "COMMON", common))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestWhatAPersonSaidInClaudeCode(t *testing.T) {
	for name, c := range map[string]struct {
		log, want string
		check     func(c conversations.Counts) (got, want int)
	}{
		"a prompt typed while the agent works": {code("U:Count the kites.", "T:", "E:One is Orla's.", "R:", "Q:One is Orla's.", "A:Seven."),
			"--\nuser: \"Count the kites.\"\nuser: \"One is Orla's.\"\nassistant: \"Seven.\"",
			func(c conversations.Counts) (int, int) { return c.TakenBack, 0 }},
		"one that was taken back": {code("U:Count the kites.", "T:", "E:One is Orla's.", "R:", "A:Seven."),
			"--\nuser: \"Count the kites.\"\nassistant: \"Seven.\"",
			func(c conversations.Counts) (int, int) { return c.TakenBack, 1 }},
		"one that waited for the agent": {code("U:Count.", "E:Next.", "A:Seven.", "U:Next.", "A:Done."),
			"--\nuser: \"Count.\"\nassistant: \"Seven.\"\n--\nuser: \"Next.\"\nassistant: \"Done.\"",
			func(c conversations.Counts) (int, int) { return c.TakenBack, 0 }},
		"a queued notification": {code("U:Run it.", "T:", `{"type":"attachment",COMMON,"attachment":{"type":"queued_command","commandMode":"task-notification","prompt":"<task-notification>x</task-notification>"}}`, "A:Ran."),
			"--\nuser: \"Run it.\"\nassistant: \"Ran.\"",
			func(c conversations.Counts) (int, int) { return c.Instructions, 1 }},
		"a queued prompt of the program": {code("U:Run it.", `{"type":"attachment",COMMON,"attachment":{"type":"queued_command","origin":{"kind":"harness"},"prompt":"go on"}}`, "A:Ran."),
			"--\nuser: \"Run it.\"\nassistant: \"Ran.\"",
			func(c conversations.Counts) (int, int) { return c.Instructions, 1 }},
		"a queued prompt with a picture": {code("U:Look.", "T:", `{"type":"attachment",COMMON,"attachment":{"type":"queued_command","commandMode":"prompt","prompt":[{"type":"text","text":"And this."},{"type":"image","source":{}}]}}`, "A:Seen."),
			"--\nuser: \"Look.\"\nuser: \"And this.\\n[attachment: image]\"\nassistant: \"Seen.\"",
			func(c conversations.Counts) (int, int) { return c.Attachments, 1 }},
		"a command with words": {code("U:Hi.", "A:Hello.", "U:<command-name>/plan</command-name>\n<command-args>a garden</command-args>",
			`{"type":"user",COMMON,"isMeta":true,"message":{"content":"You are a planner: a garden"}}`, "A:Roses."),
			"--\nuser: \"Hi.\"\nassistant: \"Hello.\"\n--\nuser: \"/plan a garden\"\nassistant: \"Roses.\"",
			func(c conversations.Counts) (int, int) { return c.Instructions, 1 }},
		"a command without words that is answered": {code("U:Hi.", "A:Hello.", "U:<command-name>review</command-name>", "A:Fine."),
			"--\nuser: \"Hi.\"\nassistant: \"Hello.\"\n--\nuser: \"/review\"\nassistant: \"Fine.\"", nil},
		"a command of the program": {code("U:<command-name>/clear</command-name>", "U:<local-command-stdout></local-command-stdout>", "U:Hi.", "A:Hello.", "U:<command-name>/cost</command-name>"),
			"--\nuser: \"Hi.\"\nassistant: \"Hello.\"",
			func(c conversations.Counts) (int, int) { return c.Instructions, 3 }},
		"what was asked to be remembered": {code("U:<user-memory-input>Use tabs.</user-memory-input>", "A:Noted."),
			"--\nuser: \"Use tabs.\"\nassistant: \"Noted.\"", nil},
		"a thought said aloud": {code("U:Hi.", "A:<think>Who is it?</think>Hello."),
			"--\nuser: \"Hi.\"\nassistant: \"Hello.\"",
			func(c conversations.Counts) (int, int) { return c.Thoughts, 1 }},
		"an interrupted prompt": {code("U:Plan it.", "T:", "U:[Request interrupted by user]", "U:Plan it well.", "A:Planned."),
			"--\nuser: \"Plan it.\"\nuser: \"Plan it well.\"\nassistant: \"Planned.\"", nil},
		"an unknown block and an unknown entry": {code("U:Hi.", `{"type":"assistant",COMMON,"message":{"content":[{"type":"hologram","text":"x"},{"type":"text","text":"Hello."}]}}`, `{"type":"dance",COMMON}`),
			"--\nuser: \"Hi.\"\nassistant: \"Hello.\"",
			func(c conversations.Counts) (int, int) { return c.Unknown["hologram"] + 10*c.Unknown["dance"], 11 }},
		"a message of another agent": {code("U:Plan it.", "A:Asked.", "U:<teammate-message teammate_id=\"a\">Mine is teal.</teammate-message>", "A:Teal.", "U:And mine?", "A:Red."),
			"--\nuser: \"Plan it.\"\nassistant: \"Asked.\"\n--\nuser: \"And mine?\"\nassistant: \"Red.\"",
			func(c conversations.Counts) (int, int) { return c.Others + 10*c.AnswersToOthers, 11 }},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := words(t, conversations.ClaudeCode, c.log)
			require.Equal(t, c.want, got)
			if c.check != nil {
				got, want := c.check(counts)
				require.Equal(t, want, got, "%+v", counts)
			}
		})
	}
}

// TestABadLineCostsThatLine and no other, in each log, whatever is wrong with it.
func TestABadLineCostsThatLine(t *testing.T) {
	logs := map[conversations.Source][]string{
		conversations.ClaudeCode: slices.Collect(strings.Lines(code("U:one", "A:1", "U:two", "A:2", "U:three", "A:3"))),
		conversations.Codex: {`{"timestamp":"2026-01-08T09:00:00Z","type":"session_meta","payload":{"id":"s"}}` + "\n",
			codexSays("user", "one"), codexSays("assistant", "1"), codexSays("user", "two"), codexSays("assistant", "2"),
			codexSays("user", "three"), codexSays("assistant", "3")},
		conversations.OpenAIJSONL: {request("a", "one", "1"), request("b", "two", "2"), request("c", "three", "3")},
	}
	for source, lines := range logs {
		for name, bad := range map[string]string{"cut": `{"type":"system","content":"cut off he` + "\n",
			"NULs": strings.Repeat("\x00", 64) + "\n", "no JSON": "xx\n", "a list": "[1]\n", "not UTF-8": "\xff{\n"} {
			t.Run(string(source)+" "+name, func(t *testing.T) {
				at := len(lines) - 2
				text := strings.Join(lines[:at], "") + bad + strings.Join(lines[at:], "")
				got, _ := words(t, source, text)
				want, _ := words(t, source, strings.Join(lines, ""))
				require.Equal(t, 1, strings.Count(got, "error: "), got)
				require.Contains(t, got, fmt.Sprintf("line %d: ", at+1))
				require.Equal(t, want, regexp.MustCompile(`(?m)^error.*\n`).ReplaceAllString(got, ""))
			})
			t.Run(string(source)+" "+name+" before the next line", func(t *testing.T) { // no line end between them
				if name == "a list" || name == "NULs" {
					t.Skip("that is another line")
				}
				at := len(lines) - 2
				text := strings.Join(lines[:at], "") + strings.TrimSuffix(bad, "\n") + strings.Join(lines[at:], "")
				got, _ := words(t, source, text)
				want, _ := words(t, source, strings.Join(lines, ""))
				require.Equal(t, 1, strings.Count(got, "error: "), got)
				require.Equal(t, want, regexp.MustCompile(`(?m)^error.*\n`).ReplaceAllString(got, ""))
			})
		}
		whole := strings.Join(lines, "")
		got, counts := words(t, source, whole+whole[:20])
		want, _ := words(t, source, whole)
		require.Equal(t, want, got, "a last line that is still being written")
		require.Equal(t, 1, counts.CutOff)
		got, _ = words(t, source, strings.Replace(whole, "\n", "\n\x00\x00\x00", 1))
		require.Equal(t, want, got, "NUL bytes before an entry")
		got, _ = words(t, source, strings.TrimSuffix(whole, "\n"))
		require.Equal(t, want, got, "no line end at the end")
		for form, text := range map[string]string{"CRLF": strings.ReplaceAll(whole, "\n", "\r\n"), "a mark": "\ufeff" + whole,
			"UTF-16": utf16Of(whole, true), "UTF-16 without a mark": utf16Of(whole, false)} {
			got, _ = words(t, source, text)
			require.Equal(t, want, got, form)
		}
	}
}

func utf16Of(text string, mark bool) string {
	var b bytes.Buffer
	if mark {
		text = "\ufeff" + text
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

func codexSays(role, text string) string {
	content, _ := json.Marshal(text)
	return fmt.Sprintf(`{"timestamp":"2026-01-08T09:00:01Z","type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":"input_text","text":%s}]}}`+"\n", role, content)
}

// request is a line in a log of requests: id, then the messages, alternating.
func request(id string, said ...string) string {
	var messages []string
	for i, text := range said {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		content, _ := json.Marshal(text)
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%s}`, role, content))
	}
	if id != "" {
		id = fmt.Sprintf(`"id":%q,`, id)
	}
	return fmt.Sprintf(`{%s"created":1775000000,"messages":[%s]}`+"\n", id, strings.Join(messages, ","))
}

// ids reads files and lists the ids of their events, with the first text of each.
func ids(t *testing.T, source conversations.Source, known []string, paths ...string) (list []string, counts conversations.Counts) {
	o := conversations.Options{Options: convert.Options{RunID: "r", UserID: "u"}}
	if known != nil {
		o.Known = conversations.NewKnownIDs(known)
	}
	r, err := conversations.Open(source, paths, o)
	require.NoError(t, err)
	for {
		item, err := r.Next()
		if err == io.EOF {
			return list, r.Counts()
		}
		require.NoError(t, err)
		list = append(list, item.Event.EventID)
	}
}

func TestALogOfGrowingRequestsHasEachTurnOnce(t *testing.T) {
	one, two, three := request("c1", "Pip is mine.", "Hi Pip."), request("c2", "Pip is mine.", "Hi Pip.", "It sings.", "Nice."),
		request("c3", "Pip is mine.", "Hi Pip.", "It sings.", "Nice.", "It eats.", "Good.")
	whole, counts := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", one+two+three))
	require.Len(t, whole, 3)
	require.Equal(t, 6, counts.Repeated)
	require.Equal(t, 1, counts.Conversations)
	again, _ := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", one+two))
	require.Equal(t, whole[:2], again, "a log that has grown since keeps its ids")
	for _, order := range []string{three + two + one, two + three + one, one + three + two} {
		got, _ := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", order))
		require.ElementsMatch(t, whole, got, "lines out of order")
	}
	later, counts := ids(t, conversations.OpenAIJSONL, whole[:2], write(t, "b.jsonl", three))
	require.Equal(t, whole[2:], later, "the next file of a log, whose lines repeat what is recorded")
	require.Equal(t, 2, counts.Known)

	same, _ := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", request("x", "Hi", "Hello")+request("y", "Hi", "Hello")))
	require.Len(t, same, 2, "two conversations that begin alike")
	require.NotEqual(t, same[0], same[1])
	fork, _ := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", request("x", "Hi", "Hello", "a", "b")+request("y", "Hi", "Hello", "c", "d")))
	require.Len(t, fork, 4, "in doubt both are kept")
	nameless, _ := ids(t, conversations.OpenAIJSONL, nil, write(t, "a.jsonl", request("", "Hi", "Hello")+request("", "Hi", "Hello", "a", "b")))
	require.Len(t, nameless, 2)
}

// TestIDsDoNotDependOnWhatIsRead: if a later reader reads a text differently, the turn is still the same.
func TestIDsDoNotDependOnWhatIsRead(t *testing.T) {
	log := code("U:My key is new.", "A:Noted.", "U:And the other?", "A:Old.")
	before, _ := ids(t, conversations.ClaudeCode, nil, write(t, "a.jsonl", log))
	after, _ := ids(t, conversations.ClaudeCode, nil, write(t, "b.jsonl", strings.NewReplacer("new", "changed", "Noted", "Well noted").Replace(log)))
	require.Equal(t, before, after)

	const id = "0190a1b2-1111-4222-8333-9444a5b6c7d8"
	entry := strings.NewReplacer("e0", id).Replace(code("U:Hi.", "A:Hello."))
	first, _ := ids(t, conversations.ClaudeCode, nil, write(t, "a.jsonl", entry))
	resumed, _ := ids(t, conversations.ClaudeCode, nil, write(t, "b.jsonl", strings.ReplaceAll(entry, `"sessionId":"s"`, `"sessionId":"s2"`)))
	require.Equal(t, first, resumed, "a resumed session in a file of its own, recorded another day")
	other, _ := ids(t, conversations.ClaudeCode, nil, write(t, "a.jsonl", log), write(t, "b.jsonl", strings.ReplaceAll(log, `"sessionId":"s"`, `"sessionId":"s2"`)+
		code("U:x", "A:y")))
	require.NotEmpty(t, other)

	prompt := strings.Replace(code("U:Hi.", "A:Hello."), `"uuid":"e0"`, `"uuid":"e0","promptId":"p-1"`, 1)
	got, _ := ids(t, conversations.ClaudeCode, nil, write(t, "a.jsonl", prompt))
	require.Equal(t, []string{conversations.TurnID(conversations.ClaudeCode, "s", "p-1")}, got, "as a hook names it")
	turn := `{"timestamp":"2026-01-08T09:00:00Z","type":"session_meta","payload":{"id":"s"}}` + "\n" +
		`{"timestamp":"2026-01-08T09:00:00Z","type":"turn_context","payload":{"turn_id":"t-1"}}` + "\n" +
		codexSays("user", "Hi.") + codexSays("assistant", "Hello.")
	got, _ = ids(t, conversations.Codex, nil, write(t, "a.jsonl", turn))
	require.Equal(t, []string{conversations.TurnID(conversations.Codex, "s", "t-1")}, got)
}

// TestWhatWasRecordedUnderEarlierIDsIsKnown: the ids are those that builds before the release gave to these logs.
func TestWhatWasRecordedUnderEarlierIDsIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		source             conversations.Source
		text               string
		earlier            []string
		left               string // of what is new
		known, differently int
	}{
		"the same":                {conversations.ClaudeCode, code("U:Hi.", "A:Hello."), []string{"cf5c86fd9e699a411111281ca2c224b2"}, "", 1, 0},
		"a queued prompt":         {conversations.ClaudeCode, code("U:Count.", "T:", "Q:One is red.", "R:", "A:Seven."), []string{"6813236d89392a4bdf8242a2712f19c2"}, "--\nuser: \"One is red.\"", 0, 0},
		"surroundings as words":   {conversations.ClaudeCode, code("U:<ide_selection>x</ide_selection>Hi.", "A:Hello."), []string{"44b3395780b2265e88e98a2364688db0"}, "", 1, 1},
		"a growing log":           {conversations.OpenAIJSONL, request("c1", "Hi", "Hello") + request("c2", "Hi", "Hello", "a", "b"), []string{"e30ffe5cbb580cfda59d1481dea461df", "fa350af51762d4fae6291a2133332d2e", "862a7bb1aa3f25a45065d067340b002e"}, "", 2, 0},
		"only the first of a log": {conversations.OpenAIJSONL, request("c1", "Hi", "Hello") + request("c2", "Hi", "Hello", "a", "b"), []string{"e30ffe5cbb580cfda59d1481dea461df"}, "--\nuser: \"a\"\nassistant: \"b\"", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "x.jsonl", c.text)
			r, err := conversations.Open(c.source, []string{path}, conversations.Options{Options: convert.Options{RunID: "r", UserID: "u"},
				Known: conversations.NewKnownIDs(c.earlier)})
			require.NoError(t, err)
			var said []string
			for {
				item, err := r.Next()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				said = append(said, "--")
				for _, m := range item.Event.Messages {
					said = append(said, fmt.Sprintf("%s: %q", m.Role, *m.Content))
				}
			}
			require.Equal(t, c.left, strings.Join(said, "\n"))
			require.Equal(t, []int{c.known, c.differently}, []int{r.Counts().Known, r.Counts().ReadDifferently})
		})
	}
}

func TestTimes(t *testing.T) {
	line := func(at string) string {
		return `{"id":"a","created":` + at + `,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`
	}
	for at, want := range map[string]string{`1775000000`: "2026-03-31T23:33:20Z", `1775000000000`: "2026-03-31T23:33:20Z",
		`"1775000000"`: "2026-03-31T23:33:20Z", `"1775000000000"`: "2026-03-31T23:33:20Z", `1775000000.25`: "2026-03-31T23:33:20.25Z",
		`"2026-04-01T09:00:00+02:00"`: "2026-04-01T07:00:00Z", `"2026-04-01 09:00:00Z"`: "2026-04-01T09:00:00Z",
		`1775000000000000`: "2026-03-31T23:33:20Z"} {
		text, _ := read(t, conversations.OpenAIJSONL, write(t, "x.jsonl", line(at)))
		require.Contains(t, text, " "+want+"\n", at)
	}
	for _, at := range []string{`1e308`, `-1e308`, `"1e308"`, `"soon"`, `-5`, `"2026-04-01T09:00:00"`, `"2026-04-01 09:00:00"`,
		`"2026-04-01"`, `true`, `{}`, `"1e999"`, `"NaN"`} {
		text, _ := read(t, conversations.OpenAIJSONL, write(t, "x.jsonl", line(at)))
		require.Contains(t, text, "line 1: created: ", at)
	}
	zone := time.FixedZone("", 2*3600)
	r, err := conversations.Open(conversations.OpenAIJSONL, []string{write(t, "x.jsonl", line(`"2026-04-01 09:00:00"`))},
		conversations.Options{Options: convert.Options{RunID: "r", UserID: "u"}, Zone: zone})
	require.NoError(t, err)
	item, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "2026-04-01T07:00:00Z", item.Event.Timestamp)

	text, counts := read(t, conversations.ChatGPT, write(t, "x.json", `[{"id":"x","create_time":"1775000000","current_node":"b","mapping":{
		"a":{"message":{"author":{"role":"user"},"create_time":1e308,"content":{"content_type":"text","parts":["Hi"]}}},
		"b":{"parent":"a","message":{"author":{"role":"assistant"},"create_time":"2026-04-01T09:00:00Z","content":{"content_type":"text","parts":["Hello"]}}}}}]`))
	require.Contains(t, text, "2026-03-31T23:33:20Z")
	require.Equal(t, 1, counts.BadTimes)
	text, _ = read(t, conversations.Claude, write(t, "x.json", `{"uuid":"k","created_at":"2026-04-01T09:00:00","chat_messages":[]}`))
	require.Contains(t, text, `conversation 1: created_at: "2026-04-01T09:00:00" has no zone`)
}

func TestClaudeWordsOfEveryKind(t *testing.T) {
	got, counts := words(t, conversations.Claude, `{"uuid":"k","created_at":"2026-04-01T09:00:00Z","chat_messages":[
		{"uuid":"1","sender":"human","text":"","content":[{"type":"voice_note","text":"My ferry leaves at seven."}]},
		{"uuid":"2","sender":"assistant","text":"ok","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"Seven."},{"type":"token_budget"}]},
		{"uuid":"3","sender":"human","text":"See this.","content":[],"attachments":[{"file_name":"","extracted_content":"My list: oats"},
			{"file_name":"paste.txt","extracted_content":"and rye"},{"file_name":"plan.pdf","extracted_content":"not mine"}]},
		{"uuid":"4","sender":"assistant","text":"Oats.","content":[{"type":"text","text":"Oats."},{"type":"hologram","text":"?"}]},
		{"uuid":"5","sender":"tool","text":"x","content":[]}]}`)
	require.Equal(t, `--
user: "My ferry leaves at seven."
assistant: "Seven."
--
user: "See this.\nMy list: oats\nand rye\n[attachment: plan.pdf]"
assistant: "Oats."`, got)
	require.Equal(t, 1, counts.Unknown["hologram"])
	require.Equal(t, 2, counts.Instructions)
	require.Equal(t, 1, counts.Attachments)
}

func TestMessagesOutOfOrder(t *testing.T) {
	for _, list := range []string{
		`{"uuid":"2","sender":"assistant","text":"Hello","created_at":"2026-04-01T09:00:05Z"},{"uuid":"1","sender":"human","text":"Hi","created_at":"2026-04-01T09:00:00Z"}`,
		`{"uuid":"2","parent_message_uuid":"1","sender":"assistant","text":"Hello","created_at":"2026-04-01T09:00:05Z"},{"uuid":"1","parent_message_uuid":"0","sender":"human","text":"Hi","created_at":"2026-04-01T09:00:00Z"}`,
	} {
		got, _ := words(t, conversations.Claude, `[{"uuid":"k","chat_messages":[`+list+`]}]`)
		require.Equal(t, "--\nuser: \"Hi\"\nassistant: \"Hello\"", got)
	}
}

func TestGemini(t *testing.T) {
	const activity = `[
		{"header":"Gemini Apps","title":"Prompted And the second?","time":"2026-04-01T09:05:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>It is <b>blue</b> &amp; new.</p><ul><li>one</li><li>two</li></ul>"}]},
		{"header":"Gemini Apps","title":"Used an Assistant feature","time":"2026-04-01T09:02:00.000Z","products":["Gemini Apps"]},
		{"header":"YouTube","title":"Watched a film","time":"2026-04-01T09:01:00.000Z","products":["YouTube"]},
		{"header":"Gemini Apps","title":"Prompted My first boat is red. Attached 1 file.","time":"2026-04-01T09:00:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>Red.</p>"}]},
		{"header":"Gemini Apps","title":"Prompted Never answered","time":"2026-04-01T08:00:00.000Z","products":["Gemini Apps"]}]`
	text, counts := read(t, conversations.Gemini, write(t, "MyActivity.json", activity))
	require.Equal(t, `gemini-2026-04-01 turn-0001 2026-04-01T09:00:00Z
  user: "My first boat is red.\n[attachment: file]"
  assistant: "Red."
gemini-2026-04-01 turn-0001 2026-04-01T09:05:00Z
  user: "And the second?"
  assistant: "It is blue & new.\n\none\n\ntwo"
`, text)
	require.Equal(t, 2, counts.ProgramEntries)
	require.Equal(t, 1, counts.Unfinished)
	require.Equal(t, 1, counts.Attachments)

	const studio = `{"runSettings":{"model":"models/x"},"systemInstruction":{"parts":[{"text":"Be kind."}]},"chunkedPrompt":{"chunks":[
		{"role":"user","text":"My oar is broken.","createTime":"2026-04-01T09:00:00Z"},{"role":"user","driveImage":{"id":"x"}},
		{"role":"model","text":"hm","isThought":true},{"role":"model","text":"Buy one."},
		{"role":"model","executableCode":{}},{"role":"model","codeExecutionResult":{}}],"pendingInputs":[{"role":"user","text":"dra"}]}}`
	folder := t.TempDir()
	for name, content := range map[string]string{"Oars": studio, "notes.json": `{"a":1}`} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	text, counts = read(t, conversations.Gemini, folder)
	require.Equal(t, `gemini-Oars turn-0001 2026-04-01T09:00:00Z
  user: "My oar is broken."
gemini-Oars turn-0002 2026-04-01T09:00:00Z
  user: "[attachment: image]"
  assistant: "Buy one."
`, text)
	require.Equal(t, []int{1, 1, 1, 1, 1}, []int{counts.Thoughts, counts.Instructions, counts.ToolCalls, counts.ToolOutputs, counts.Unfinished})
	for content, want := range map[string]string{"<html></html>": "found HTML", `{"a":1}`: "chunkedPrompt: missing", `[{"a":1}]`: "chunkedPrompt: missing"} {
		text, _ = read(t, conversations.Gemini, write(t, "x.json", content))
		require.Contains(t, text, want)
	}
}

func TestAnArchiveOfWindowsAndAConversationAlone(t *testing.T) {
	plain, err := os.ReadFile("testdata/chatgpt/conversations.json")
	require.NoError(t, err)
	want, _ := read(t, conversations.ChatGPT, "testdata/chatgpt")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(`export\conversations.json`)
	require.NoError(t, err)
	_, err = w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	got, _ := read(t, conversations.ChatGPT, write(t, "export.zip", b.String()))
	require.Equal(t, want, got)
	for _, name := range []string{`..\conversations.json`, `C:\conversations.json`, `x\..\..\conversations.json`} {
		_, err := conversations.Open(conversations.ChatGPT, []string{archive(t, map[string]string{name: "[]"})}, conversations.Options{})
		require.ErrorContains(t, err, "leads out of it", name)
	}
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal(plain, &list))
	for _, one := range list {
		alone, _ := read(t, conversations.ChatGPT, write(t, "one.json", string(one)))
		inList, _ := read(t, conversations.ChatGPT, write(t, "one.json", "["+string(one)+"]"))
		require.Equal(t, inList, alone)
	}
}

// TestNothingDisappearsUncounted: each line of a log is recorded as a message, or counted.
func TestNothingDisappearsUncounted(t *testing.T) {
	lines := []string{"U:hello", "A:hi", "T:", "R:", "Q:by the way", "U:<ide_selection>x</ide_selection>", "U:<teammate-message a=\"b\">x</teammate-message>",
		"U:[Request interrupted by user]", `{"type":"dance",COMMON}`, `{"type":"summary","summary":"x"}`, `{"type":"system",COMMON}`,
		`{"type":"user",COMMON,"isMeta":true,"message":{"content":"x"}}`, `{"type":"assistant",COMMON,"isSidechain":true,"message":{"content":"x"}}`,
		`{"type":"assistant",COMMON,"message":{"content":[{"type":"thinking"}]}}`, `{"type":"assistant",COMMON,"message":{"content":[{"type":"new_thing"}]}}`,
		"U:<command-name>/clear</command-name>"}
	rapid.Check(t, func(rt *rapid.T) {
		var log []string
		for range rapid.IntRange(1, 20).Draw(rt, "lines") {
			log = append(log, rapid.SampledFrom(lines).Draw(rt, "line"))
		}
		_, c := words(t, conversations.ClaudeCode, code(log...))
		counted := c.Messages + c.ToolCalls + c.ToolOutputs + c.Thoughts + c.Instructions + c.Replaced + c.SideConversations + c.Repeated + c.Others +
			c.AnswersToOthers + c.ProgramEntries
		for _, n := range c.Unknown {
			counted += n
		}
		if c.Unfinished == 0 { // it counts a turn, however many messages it has
			require.Equal(rt, len(log), counted, "%v\n%+v", log, c)
		}
	})
}
