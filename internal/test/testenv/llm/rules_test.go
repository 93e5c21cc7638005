package llm

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask answers a prompt of one user text and returns the JSON of the answer.
func ask(t *testing.T, purpose string, p *Prompt) map[string]any {
	t.Helper()
	got, answer := Reply(p)
	require.Equal(t, purpose, got)
	text := answer.Text
	if len(answer.Calls) > 0 {
		text = answer.Calls[0].Arguments
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	if list, ok := v.([]any); ok {
		return map[string]any{"list": list}
	}
	return v.(map[string]any)
}

func user(text string) *Prompt { return &Prompt{Messages: []Message{{Role: "user", Content: text}}} }

func schema(name, text string) *Prompt {
	p := user(text)
	p.SchemaName, p.JSON = name, true
	return p
}

func texts(list any, key string) []any {
	var out []any
	for _, x := range list.([]any) {
		out = append(out, x.(map[string]any)[key])
	}
	return out
}

func TestMem0KeepsStatementsOfBothSpeakers(t *testing.T) {
	got := ask(t, "mem0.extract", user("## Summary\n\n\n## Existing Memories\n[]\n\n## New Messages\nuser: I like "+
		"tea. Which one?\nassistant: Noted, I like it too.\nuser: 我住在上海。\n\n## Observation Date\n2026-01-01\n\n# "+
		"Output:"))
	require.Equal(t, []any{"I like tea.", "Noted, I like it too.", "我住在上海。"}, texts(got["memory"], "text"))
	require.Equal(t, []any{}, ask(t, "mem0.extract",
		user("## New Messages\nuser: Which milk?\n\n## Observation Date\nx"))["memory"])
}

// TestHonchoDerivesOfTheTargetPeer: the prompt's rules speak of "Target peer:" and of <messages> before they come.
func TestHonchoDerivesOfTheTargetPeer(t *testing.T) {
	got := ask(t, "honcho.deriver", schema("PromptRepresentation", "The target peer is below under `Target peer:`.\n"+
		"Every conclusion must be supported by the <messages> block only.\n\nTarget peer:\nuser-mara\n\n"+
		"Messages to analyze:\n<messages>\n2026-01-12 08:42:00 user-mara: I like tea.\n"+
		"2026-01-12 08:43:00 agent-default: I like maps.\n</messages>\n"))
	require.Equal(t, []any{"user-mara like tea"}, texts(got["explicit"], "content"))
	_, summary := Reply(user("<previous_summary>\n</previous_summary>\n\n<conversation>\nuser-mara: I like tea.\n" +
		"agent-default: I like maps.\n</conversation>"))
	require.Equal(t, "Summary. user-mara like tea. agent-default like maps.", summary.Text)
}

func TestGraphitiExtractsAndInvalidates(t *testing.T) {
	episode := "<CURRENT MESSAGE>\nmara(user): I now prefer aisle seats on business trips.\nbot(assistant): I like " +
		"them too.\n</CURRENT MESSAGE>"
	entities := ask(t, "graphiti.entities", schema("ExtractedEntities", episode))
	require.Equal(t, []any{"mara", "bot", "seats business trips", "them too"},
		texts(entities["extracted_entities"], "name"))

	edges := ask(t, "graphiti.edges", schema("ExtractedEdges",
		"<CURRENT_MESSAGE>\nmara(user): I now prefer aisle seats on business "+
			"trips.\n</CURRENT_MESSAGE>\n<ENTITIES>\n[{\"name\":\"mara\"},{\"name\":\"seats business "+
			"trips\"}]\n</ENTITIES>\n<REFERENCE_TIME>\n2025-04-10 08:00:00+00:00  # ISO 8601 (UTC)\n</REFERENCE_TIME>"))
	require.Equal(t, []any{"mara now prefer aisle seats on business trips"}, texts(edges["edges"], "fact"))
	require.Equal(t, []any{"2025-04-10T08:00:00+00:00"}, texts(edges["edges"], "valid_at"))

	// A bulk asks for both in one call since 0.31, and then for the times.
	combined := ask(t, "graphiti.combined", schema("CombinedExtraction",
		"<CURRENT MESSAGES>\nmara(user): I now prefer aisle seats on business trips.\n</CURRENT MESSAGES>"))
	require.Equal(t, []any{"mara", "seats business trips"}, texts(combined["extracted_entities"], "name"))
	require.Equal(t, texts(edges["edges"], "fact"), texts(combined["edges"], "fact"))
	require.Equal(t, []any{nil}, texts(combined["edges"], "valid_at"))
	times := ask(t, "graphiti.timestamps_batch", schema("BatchEdgeTimestamps", `<FACTS>
[{"fact":"mara likes tea","reference_time":"2026-04-21T08:00:00+00:00"},{"fact":"mara: someday I want a boat","reference_time":"2026-04-21T08:00:00+00:00"}]
</FACTS>`))
	require.Equal(t, []any{"2026-04-21T08:00:00+00:00", nil}, texts(times["timestamps"], "valid_at"))

	resolved := ask(t, "graphiti.resolve_edge", schema("EdgeDuplicate", `<EXISTING FACTS>
[{'idx': 0, 'fact': 'mara like tea'}]
</EXISTING FACTS>
<FACT INVALIDATION CANDIDATES>
[{'idx': 1, 'fact': "mara prefer window seats on business trips, that's it"}, {'idx': 2, 'fact': 'jonas prefer window seats'}]
</FACT INVALIDATION CANDIDATES>
<NEW FACT>
mara now prefer aisle seats on business trips
</NEW FACT>`))
	require.Equal(t, []any{}, resolved["duplicate_facts"])
	require.Equal(t, []any{1.0}, resolved["contradicted_facts"],
		"the seat of the same person, not the tea and not another's seat")

	nodes := ask(t, "graphiti.dedupe_nodes", schema("NodeResolutions",
		`<ENTITIES>[{"id":0,"name":"Mara"},{"id":1,"name":"tea"}]</ENTITIES><EXISTING ENTITIES>[{"candidate_id":4,"name":"mara"}]</EXISTING ENTITIES>`))
	require.Equal(t, []any{4.0, -1.0}, texts(nodes["entity_resolutions"], "duplicate_candidate_id"))
}

func TestGraphitiJSONModeIsRecognisedByTheSchemaInTheText(t *testing.T) {
	p := user("<CURRENT MESSAGE>\nmara: I like tea.\n</CURRENT MESSAGE>\nRespond with a JSON object: {\"title\": " +
		"\"ExtractedEntities\"}")
	p.JSON = true
	require.Equal(t, []any{"mara", "tea"}, texts(ask(t, "graphiti.entities", p)["extracted_entities"], "name"))
}

func TestMemOS(t *testing.T) {
	extract := ask(t, "memos.extract", user("...\"memory list\"...\nConversation:\nuser: [2026-05-01T10:00:00Z]: I "+
		"always prefer an aisle seat. Book me one again.\nassistant: [x]: Noted.\n\nYour Output:"))
	require.Equal(t, []any{"The user always prefer an aisle seat.", "Book me one again."},
		texts(extract["memory list"], "value"))
	zh := ask(t, "memos.extract", user("\"memory list\"\n对话：\nuser: [2026]: 我住在北京。我喜欢喝绿茶。\n\n您的输出："))
	require.Equal(t, []any{"我住在北京。", "我喜欢喝绿茶。"}, texts(zh["memory list"], "value"))

	explicit := ask(t, "memos.preference_explicit",
		user("\nInput:\nuser: I like tea. I moved to Lyon.\n\nFind ALL explicit preferences \"explicit_preference\""))
	require.Equal(t, []any{"The user like tea."}, texts(explicit["list"], "explicit_preference"))
	require.Equal(t, []any{}, ask(t, "memos.preference_implicit",
		user("\nConversation:\nuser: I like tea.\n\nOutput format \"implicit_preference\""))["list"])

	update := ask(t, "memos.feedback_compare", user("\"operations\"\n**Current Memories**\n16ec66de-ab43: The user's "+
		"favourite seat is the window seat.\nffff: Likes tea.\n\n**The background of the new fact being put "+
		"forward**\nx\n\n**Newly facts**\n\"The favourite seat is the aisle seat.\"\n\nOperation recommendations:\n"))
	require.Equal(t, []any{"UPDATE", "NONE"}, texts(update["operations"], "operation"))
	add := ask(t, "memos.feedback_compare", user("\"operations\"\n**Current Memories**\nffff: Likes tea.\n\n**The "+
		"background\nx\n\n**Newly facts**\nThe bike stays in the cellar.\n\nOperation recommendations:\n"))
	require.Equal(t, []any{"NONE", "ADD"}, texts(add["operations"], "operation"))
	goal := ask(t, "memos.goal", user("Task description(User Question):\n\"\"\"Which seat?\"\"\"\n\nContext (if "+
		"any):\n\"\"\"\"\"\"\n\"goal_type\""))
	require.Equal(t, []any{"Which seat?"}, goal["memories"], "an empty list makes the search fail to empty")
}

func TestNanobotConsolidationKeepsWhatStillHolds(t *testing.T) {
	p := user("## Current Long-term Memory\n# Long-term Memory\n\n- I prefer a window seat. (2026-01-01)\n- I like " +
		"green tea. (2026-01-02)\n\n## Conversation\n[2026-03-30 10:00] USER: I moved to an aisle seat. And I like " +
		"jazz. Which song?\n[2026-03-30 10:00] ASSISTANT: I like it.")
	p.Tools, p.Forced = []string{"save_memory"}, true
	got := ask(t, "nanobot.consolidate", p)
	require.Equal(t, "# Long-term Memory\n\n- I like green tea. (2026-01-02)\n- I moved to an aisle seat. "+
		"(2026-03-30)\n- And I like jazz. (2026-03-30)\n", got["memory_update"])
	require.Contains(t, got["history_entry"], "[2026-03-30 10:00] The user said: ")
}

func TestNanobotDreamEditsThenEnds(t *testing.T) {
	p := user("Edit.\n## Current Memory Files\n### SOUL.md\n(empty)\n### USER.md\n# User\n- I prefer a window seat. " +
		"(2026-01-01)\n### memory/MEMORY.md\n(empty)\n## Conversation History\n[2026-03-30 10:00] - [correction] I " +
		"moved to an aisle seat.\n[2026-03-30 10:00] Hello there.")
	p.Tools = []string{"read_file", "edit_file", "write_file"}
	purpose, answer := Reply(p)
	require.Equal(t, "nanobot.dream", purpose)
	require.Len(t, answer.Calls, 1)
	var edit struct{ Path, Old_text, New_text string }
	require.NoError(t, json.Unmarshal([]byte(answer.Calls[0].Arguments), &edit))
	require.Equal(t, "USER.md", edit.Path)
	require.Equal(t, "- I prefer a window seat. (2026-01-01)", edit.Old_text)
	require.Equal(t, "- I moved to an aisle seat. (2026-03-30)", edit.New_text)
	p.Messages = append(p.Messages, Message{Role: "assistant", Calls: answer.Calls},
		Message{Role: "tool", Content: "ok"})
	_, answer = Reply(p)
	require.Empty(t, answer.Calls)
	require.Equal(t, "Done.", answer.Text)
}

func TestNanobotArchiveAndLedger(t *testing.T) {
	_, answer := Reply(user("List facts, or (nothing).\n[2026-03-30 10:00] USER: I like jazz. Play it.\n"))
	require.Equal(t, "- [durable] I like jazz. (2026-03-30)", answer.Text)
	_, answer = Reply(user("List facts, or (nothing).\n[2026-03-30 10:00] USER: Play it.\n"))
	require.Equal(t, "(nothing)", answer.Text)

	got := ask(t, "nanobot.ledger", user("Give event_type, subject, "+
		"predicate.\n{\"id\":\"ab12\",\"subject\":\"user\",\"predicate\":\"prefers\",\"object\":\"a window "+
		"seat\"}\n[2026-03-30 10:00] USER: I now prefer an aisle seat. I like jazz."))
	require.Equal(t, []any{"modify", "add"}, texts(got["list"], "event_type"))
	require.Equal(t, []any{"ab12", nil}, texts(got["list"], "parent_id"))
}

func TestNanobotKeepsWhatLastsAndNotWhatIsAskedOrFelt(t *testing.T) {
	for said, kept := range map[string]bool{
		"I would like you to give me some advice.": false, "I'm a bit worried about it.": false, "请为我推荐一些项目。": false,
		"我感觉每天都很累。":                       false,
		"The doctor says it is a sprain.": true, "我刚刚测量了我的腰围，是104厘米。": true, "I like jazz.": true,
		"My goal is 75 kg.":                   true,
		"The deadline is Friday, all agreed.": false, "Betty: The deadline is Friday, all agreed.": true,
		"Betty: Agreed.": false, "Dylan: 我搭FastAPI服务，日志打到ES。": true,
	} {
		_, answer := Reply(user("List facts, or (nothing).\n[2026-03-30 10:00] USER: " + said + "\n"))
		require.Equal(t, kept, answer.Text != "(nothing)", said)
	}
}

func TestNanobotLedgerSaysOfWhomAFactIs(t *testing.T) {
	got := ask(t, "nanobot.ledger", user("Give event_type, subject, predicate.\n[2026-03-30 10:00] USER: Alex: I "+
		"like jazz.\n[2026-03-30 10:01] USER: My cat is called Zorvex.\n"+
		"[2026-03-30 10:02] USER: The doctor said I can run again.\n[2026-03-30 10:03] USER: I want to ride my bike "+
		"every day."))
	require.Equal(t, []any{"Alex", "user's cat", "user", "user"}, texts(got["list"], "subject"))
	require.Equal(t, []any{"likes", "is called", "said", "said"}, texts(got["list"], "predicate"))
	require.Equal(t, []any{"jazz", "Zorvex", "The doctor said I can run again", "I want to ride my bike every day"},
		texts(got["list"], "object"))
	require.Equal(t, []any{"add", "add", "observe", "observe"}, texts(got["list"], "event_type"))
}

func TestAnUnknownSchemaIsFilledIn(t *testing.T) {
	p := schema("Whatever", "Say something.")
	p.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/B"},"c":{"anyOf":[{"type":"string"},{"type":"null"}]}},"$defs":{"B":{"type":"object","properties":{"n":{"type":"integer"}}}}}`)
	require.Equal(t, map[string]any{"a": "Say something.", "b": map[string]any{"n": 0.0}, "c": nil},
		ask(t, "unknown.Whatever", p))
}

// FuzzReply: no prompt makes a rule panic, and what must be JSON is.
func FuzzReply(f *testing.F) {
	f.Add("ExtractedEdges", "<CURRENT_MESSAGE>\nmara: I like tea\n</CURRENT_MESSAGE><ENTITIES>[1]</ENTITIES>", "")
	f.Add("EdgeDuplicate", "<NEW FACT>x</NEW FACT><EXISTING FACTS>[{'idx': 99999999999999999999, 'fact': 'a'}]", "")
	f.Add("", "\"memory list\"\nConversation:\nuser: I like\n\nYour Output:", "")
	f.Add("", "[2026] USER: I like tea", "save_memory")
	f.Add("", "### USER.md\n- x\n## History\n[x] I like tea.", "edit_file")
	f.Add("", "\"operations\"\n**Current Memories**\naaa: \n**The background", "")
	f.Add("X", "", "")
	f.Fuzz(func(t *testing.T, schema, text, tool string) {
		p := &Prompt{Messages: []Message{{Role: "user", Content: text}}, SchemaName: schema, JSON: schema != "",
			Schema: json.RawMessage(`{"type":"object"}`)}
		if tool != "" {
			p.Tools = []string{tool}
		}
		_, answer := Reply(p)
		for _, c := range answer.Calls {
			if !json.Valid([]byte(c.Arguments)) {
				t.Fatalf("arguments %q", c.Arguments)
			}
		}
		if p.JSON && len(answer.Calls) == 0 && schemaRule(schema) && !json.Valid([]byte(answer.Text)) {
			t.Fatalf("answer %q", answer.Text)
		}
	})
}

// schemaRule reports whether a rule answers by this schema's name.
func schemaRule(name string) bool {
	for _, r := range graphitiRules {
		if r.match(&Prompt{SchemaName: name, JSON: true}, "") {
			return true
		}
	}
	return false
}

func TestAnOldLineIsReplacedOrRepeated(t *testing.T) {
	line := func(text string) memoryLineOf {
		s, ok := Read("The user", text)
		require.True(t, ok)
		return memoryLineOf{"- " + text + " (2026-02-02)", s}
	}
	old := []string{"- I live in Oslo. (2026-01-01)", "- I drink tea. (2026-01-01)", "- My cat is called Tom. (2026-01-01)"}
	require.Equal(t, []string{old[2], "- I drink tea. (2026-02-02)", "- I moved to Bergen. (2026-02-02)"},
		mergeLines(old, []memoryLineOf{line("I drink tea."), line("I moved to Bergen.")}))
}

func TestCogneesGraphHasAnEdgeForEachStatement(t *testing.T) {
	purpose, answer := Reply(&Prompt{SchemaName: "KnowledgeGraph", JSON: true, Messages: []Message{{Role: "system", Content: "Extract."},
		{Role: "user", Content: "[e1 2026-03-01T10:30:00+01:00]\nuser: My cat is called Zorvex."}}})
	if purpose != "cognee.graph" {
		t.Fatalf("purpose %q", purpose)
	}
	var graph struct {
		Nodes []cogneeNode
		Edges []cogneeEdge
	}
	if err := json.Unmarshal([]byte(answer.Text), &graph); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, n := range graph.Nodes {
		known[n.ID] = true
	}
	if len(graph.Edges) != 1 || !known[graph.Edges[0].Source] || !known[graph.Edges[0].Target] {
		t.Errorf("got %s", answer.Text)
	}
}
