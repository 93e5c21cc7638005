package conversations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/text/conversations"
)

// unit is a piece of a log, and the counts that it belongs to, by their names in JSON. A block of a type that this
// version does not know is "unknown:TYPE".
type unit struct{ text, counts string }

const (
	spoken      = "messages"
	tool        = "tool_calls_left_out"
	output      = "tool_outputs_left_out"
	thought     = "thoughts_left_out"
	instruction = "instructions_left_out"
	replaced    = "replaced_messages_left_out"
	program     = "program_entries_left_out"
	unfinished  = "unfinished_turns_left_out"
	repeated    = "repeated_messages_left_out"
	subAgent    = "sub_agent_messages_left_out"
	ofOthers    = "messages_of_others_left_out"
	toOthers    = "answers_to_others_left_out"
	attachment  = "attachments_named"
	credential  = "credentials_left_out"
)

// TestEveryPieceOfALogIsRecordedOrCounted: a log of each source, in the shape that the source writes, with each kind of
// piece that it has. The counts are exactly those of the pieces: nothing is left out without a name, and nothing is
// counted twice.
func TestEveryPieceOfALogIsRecordedOrCounted(t *testing.T) {
	blocks := func(of ...string) string { return "[" + strings.Join(of, ",") + "]" }
	text := func(words string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, words) }
	entry := func(kind, content string) string {
		return fmt.Sprintf(`{"type":%q,COMMON,"message":{"role":%q,"content":%s}}`, kind, kind, content)
	}
	item := func(payload string) string {
		return `{"timestamp":"2026-01-08T09:00:00Z","type":"response_item","payload":` + payload + "}"
	}
	event := func(kind, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-08T09:00:00Z","type":%q,"payload":%s}`, kind, payload)
	}
	// node is a message of ChatGPT's tree. Its parent is the node before, unless the text has one.
	node := func(role, kind, rest string) string {
		return fmt.Sprintf(`{"author":{"role":%q},"create_time":1767776400,"content":{"content_type":%q,%s}}`, role, kind, rest)
	}
	human := func(sender, rest string) string {
		return fmt.Sprintf(`"sender":%q,"created_at":"2026-01-08T09:00:00Z",%s`, sender, rest)
	}
	for _, c := range []struct {
		name   string
		source conversations.Source
		units  []unit
		file   func(units []string) string
		want   string // what is recorded, "--" between events
	}{
		{name: "claude-code", source: conversations.ClaudeCode, file: func(units []string) string { return code(units...) },
			units: []unit{
				{`{"type":"summary","summary":"Boats"}`, program},
				{`{"type":"file-history-snapshot","snapshot":{}}`, program},
				{entry("user", `"<ide_opened_file>boat.go</ide_opened_file>Count the boats."`), spoken + " " + instruction},
				{entry("assistant", blocks(`{"type":"thinking","thinking":"how?"}`)), thought},
				{entry("assistant", blocks(text("I look."), `{"type":"tool_use","name":"ls"}`)), spoken + " " + tool},
				{entry("user", blocks(`{"type":"tool_result","content":"a b"}`)), output},
				{`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"One is Ida's."}`, program},
				{`{"type":"attachment",COMMON,"attachment":{"type":"queued_command","prompt":"One is Ida's."}}`, spoken},
				{`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"Never mind."}`, program + " taken_back_prompts_left_out"},
				{`{"type":"assistant",COMMON,"isSidechain":true,"message":{"content":"I am a helper."}}`, subAgent},
				{`{"type":"user",COMMON,"isMeta":true,"message":{"content":"Caveat"}}`, instruction},
				{entry("assistant", blocks(text("Two."), `{"type":"hologram","text":"x"}`)), spoken + " unknown:hologram"},
				{`{"type":"dance",COMMON}`, "unknown:dance"},
				{entry("user", blocks(text("The key is sk-EXAMPLEEXAMPLEEXAMPLE."), `{"type":"image","source":{}}`)), spoken + " " + credential + " " + attachment},
				{entry("assistant", `"Left out."`), spoken},
				{entry("user", `"<teammate-message from=\"x\">Mine.</teammate-message>"`), ofOthers},
				{entry("assistant", `"Yours."`), toOthers},
				{entry("user", `"<command-name>/clear</command-name>"`), instruction},
				{entry("user", `"And now?"`), unfinished},
			},
			want: "user: Count the boats. | assistant: I look. | user: One is Ida's. | assistant: Two. -- " +
				"user: The key is [credential left out].\n[attachment: image] | assistant: Left out."},
		{name: "codex", source: conversations.Codex, file: func(units []string) string { return strings.Join(units, "\n") + "\n" },
			units: []unit{
				{event("session_meta", `{"id":"cx","source":"cli"}`), program},
				{event("turn_context", `{"turn_id":"t1"}`), program},
				{item(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}`), instruction},
				{item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}`), instruction},
				{item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Count the boats."},{"type":"input_image","image_url":"data:"}]}`), spoken + " " + attachment},
				{event("event_msg", `{"type":"user_message","message":"Count the boats."}`), program},
				{item(`{"type":"reasoning","summary":[]}`), thought},
				{item(`{"type":"function_call","name":"shell"}`), tool},
				{item(`{"type":"function_call_output","output":"2"}`), output},
				{item(`{"type":"hologram"}`), "unknown:hologram"},
				{item(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two."}]}`), spoken},
				{event("dance", `{}`), "unknown:dance"},
				{item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"No, wait."}]}`), replaced},
				{item(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I wait."}]}`), replaced},
				{event("event_msg", `{"type":"thread_rolled_back","num_turns":1}`), program},
				{item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}`), unfinished},
			},
			want: "user: Count the boats.\n[attachment: image] | assistant: Two."},
		{name: "codex, a sub-agent", source: conversations.Codex, file: func(units []string) string { return strings.Join(units, "\n") + "\n{\"cut" },
			units: []unit{
				{event("session_meta", `{"id":"sub","source":{"subagent":"review"}}`), program},
				{item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Review it."}]}`), subAgent},
				{item(`{"type":"function_call","name":"shell"}`), tool},
				{item(`{"type":"function_call_output","output":"2"}`), output},
				{item(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Fine."}]}`), subAgent},
				{"", "cut_off_last_lines_left_out empty_conversations_left_out"}, // what file adds
			}},
		{name: "chatgpt", source: conversations.ChatGPT,
			file: func(units []string) string {
				nodes := []string{`"root":{"parent":null,"message":null}`}
				parent := "root"
				for i, u := range units {
					id := fmt.Sprintf("n%d", i)
					nodes = append(nodes, fmt.Sprintf(`%q:{"parent":%q,"message":%s}`, id, parent, u))
					if !strings.Contains(u, "An answer made anew") { // a branch that is left
						parent = id
					}
				}
				return `[{"id":"c","create_time":1767776400,"current_node":"` + parent + `","mapping":{` + strings.Join(nodes, ",") + "}}]"
			},
			units: []unit{
				{node("system", "text", `"parts":["You are helpful."]`), instruction},
				{node("user", "user_editable_context", `"user_profile":"x"`), instruction},
				{node("user", "multimodal_text", `"parts":["How many boats?",{"content_type":"image_asset_pointer"}]`), spoken + " " + attachment},
				{node("assistant", "text", `"parts":["An answer made anew"]`), replaced},
				{node("assistant", "thoughts", `"thoughts":[]`), thought},
				{strings.Replace(node("assistant", "code", `"text":"search()"`), `{"author"`, `{"recipient":"web","author"`, 1), tool},
				{node("tool", "tether_quote", `"text":"x"`), output},
				{node("assistant", "hologram", `"text":"x"`), "unknown:hologram"},
				{node("assistant", "text", `"parts":["Two.",{"content_type":"dance"}]`), spoken + " unknown:dance"},
				{node("user", "text", `"parts":["And now?"]`), unfinished},
			},
			want: "user: How many boats?\n[attachment: image] | assistant: Two."},
		{name: "claude", source: conversations.Claude,
			file: func(units []string) string {
				var messages []string
				for i, u := range units {
					parent := i - 1
					if strings.Contains(units[max(parent, 0)], "An answer made anew") {
						parent--
					}
					messages = append(messages, fmt.Sprintf(`{"uuid":"m%d","parent_message_uuid":"m%d",%s}`, i, parent, u))
				}
				return fmt.Sprintf(`[{"uuid":"c","created_at":"2026-01-08T09:00:00Z","current_leaf_message_uuid":"m%d","chat_messages":[%s]}]`,
					len(units)-1, strings.Join(messages, ","))
			},
			units: []unit{
				{human("system", `"text":"Be brief."`), instruction},
				{human("human", `"text":"","content":`+blocks(`{"type":"voice_note","text":"How many boats?"}`)+`,"files":[{"file_name":"a.png"}]`), spoken + " " + attachment},
				{human("assistant", `"text":"An answer made anew"`), replaced},
				{human("assistant", `"text":"","content":`+blocks(`{"type":"thinking","thinking":"x"}`, `{"type":"tool_use"}`, `{"type":"tool_result"}`,
					`{"type":"hologram","text":"x"}`, text("Two."))), spoken + " " + thought + " " + tool + " " + output + " unknown:hologram"},
				{human("human", `"text":"And now?"`), unfinished},
			},
			want: "user: How many boats?\n[attachment: a.png] | assistant: Two."},
		{name: "openai-jsonl", source: conversations.OpenAIJSONL,
			file: func(units []string) string {
				line := func(id string, messages []string) string {
					return fmt.Sprintf(`{"id":%q,"created":1767776400,"messages":[%s]}`+"\n", id, strings.Join(messages, ","))
				}
				at := len(units) - 2 // the second request repeats the first one's history: only its messages count again
				return line("a", units[:at]) + line("b", units)
			},
			units: []unit{
				{`{"role":"system","content":"Be brief."}`, instruction},
				{`{"role":"user","content":[{"type":"text","text":"How many boats?"},{"type":"image_url","image_url":{}},{"type":"hologram"}]}`,
					spoken + " " + attachment + " unknown:hologram " + repeated},
				{`{"role":"assistant","content":null,"tool_calls":[{},{}]}`, tool + " " + tool},
				{`{"role":"tool","content":"2"}`, output},
				{`{"role":"assistant","reasoning_content":"x y z","content":"Two."}`, spoken + " " + thought + " " + repeated},
				{`{"role":"user","content":"Which?"}`, spoken},
				{`{"role":"assistant","content":"<think>?</think>Ida's and mine."}`, spoken + " " + thought},
			},
			want: "user: How many boats?\n[attachment: image] | assistant: Two. -- user: Which? | assistant: Ida's and mine."},
		{name: "gemini, activities", source: conversations.Gemini, file: func(units []string) string { return blocks(units...) },
			units: []unit{
				{`{"header":"Gemini Apps","title":"Prompted How many boats? Attached 1 file.","time":"2026-01-08T09:00:00Z","attachedFiles":[{"name":"a.png"}],"safeHtmlItem":[{"html":"<p>Two.</p>"}]}`,
					spoken + " " + spoken + " " + attachment},
				{`{"header":"Gemini Apps","title":"Gave feedback","time":"2026-01-08T09:01:00Z"}`, program + " empty_conversations_left_out"},
				{`{"header":"Search","title":"Searched for boats","time":"2026-01-08T09:02:00Z"}`, program + " empty_conversations_left_out"},
				{`{"header":"Gemini Apps","title":"Prompted And now?","time":"2026-01-08T09:03:00Z"}`, unfinished + " empty_conversations_left_out"},
			},
			want: "user: How many boats?\n[attachment: a.png] | assistant: Two."},
		{name: "gemini, AI Studio", source: conversations.Gemini,
			file: func(units []string) string {
				return `{"createTime":"2026-01-08T09:00:00Z","systemInstruction":{"text":"Be brief."},"chunkedPrompt":{"chunks":[` +
					strings.Join(units[1:len(units)-1], ",") + `],"pendingInputs":[` + units[len(units)-1] + "]}}"
			},
			units: []unit{
				{"", instruction}, // the system instruction
				{`{"role":"user","text":"How many boats?"}`, spoken},
				{`{"role":"user","driveImage":{"id":"x"}}`, spoken + " " + attachment},
				{`{"role":"model","text":"I guess.","isThought":true}`, thought},
				{`{"role":"model","executableCode":{}}`, tool},
				{`{"role":"model","codeExecutionResult":{}}`, output},
				{`{"role":"model","text":"Two."}`, spoken},
				{`{"role":"ghost","text":"Boo."}`, "unknown:role ghost"},
				{`{"role":"user","text":"And now?"}`, unfinished},
			},
			want: "user: How many boats? -- user: [attachment: image] | assistant: Two."},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := map[string]int{}
			var texts []string
			for _, u := range c.units {
				if u.text != "" || c.name != "codex, a sub-agent" {
					texts = append(texts, u.text)
				}
				for _, name := range wordsOf(u.counts) {
					want[name]++
				}
			}
			said, counts := words(t, c.source, c.file(texts))
			require.Equal(t, want, tally(t, counts))
			require.Equal(t, c.want, oneLine(said))
		})
	}
}

// wordsOf takes the names of counts apart. "unknown:" names a role with two words.
func wordsOf(counts string) []string {
	if strings.HasPrefix(counts, "unknown:role") {
		return []string{counts}
	}
	return strings.Fields(counts)
}

// tally are the counts of what was read, by name, without those of nothing and those that are no pieces.
func tally(t *testing.T, c conversations.Counts) map[string]int {
	text, err := json.Marshal(c)
	require.NoError(t, err)
	fields := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(text, &fields))
	all := map[string]int{}
	for name, value := range fields {
		var n int
		if json.Unmarshal(value, &n) == nil && n > 0 {
			all[name] = n
		}
	}
	for name, n := range c.Unknown {
		all["unknown:"+name] = n
	}
	delete(all, "files")
	delete(all, "conversations")
	delete(all, "events")
	return all
}

// oneLine writes what words returned in one line.
func oneLine(said string) string {
	var events []string
	for _, e := range strings.Split(said, "--\n") {
		if e = strings.TrimSuffix(e, "\n"); e == "" {
			continue
		}
		var messages []string
		for _, m := range strings.Split(e, "\n") {
			role, quoted, _ := strings.Cut(m, ": ")
			var text string
			_ = json.Unmarshal([]byte(quoted), &text)
			messages = append(messages, role+": "+text)
		}
		events = append(events, strings.Join(messages, " | "))
	}
	return strings.Join(events, " -- ")
}
