package transcript

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestReadPrompt(t *testing.T) {
	for text, want := range map[string]Prompt{
		"hello":   {Words: "hello"},
		" \n":     {},
		"a <b> c": {Words: "a <b> c"},
		"<ide_opened_file>The user opened x.md.</ide_opened_file>\nMy stoat is Fen.": {Words: "My stoat is Fen.", Instructions: 1},
		"My stoat is Fen.\n<ide_selection>a\nb</ide_selection>":                      {Words: "My stoat is Fen.", Instructions: 1},
		"<ide_opened_file>x</ide_opened_file><ide_selection>y</ide_selection>":       {Instructions: 2},
		"a <system-reminder>x</system-reminder> b":                                   {Words: "a  b", Instructions: 1},
		"tea?\n\n<memory-context backend=\"x\">\n- oolong\n</memory-context>":        {Words: "tea?", Instructions: 1},
		"<teammate-message teammate_id=\"x\">teal</teammate-message>":                {Others: 1},
		"<cross-session-message from=\"s\">now</cross-session-message>":              {Others: 1},
		"<channel source=\"chat\" user=\"x\">hi</channel>":                           {Others: 1},
		"<channel>5</channel> is what I watch":                                       {Words: "<channel>5</channel> is what I watch"},
		"<task-notification><task-id>1</task-id></task-notification>":                {Instructions: 1},
		"What does <task-notification> mean?":                                        {Words: "What does <task-notification> mean?"},
		"Is <ide_selection>x</ide_selection> sent to you?":                           {Words: "Is <ide_selection>x</ide_selection> sent to you?"},
		"<instructions>Sum up.</instructions>":                                       {Words: "<instructions>Sum up.</instructions>"},
		"<INSTRUCTIONS>x</INSTRUCTIONS>":                                             {Instructions: 1},
		"<permissions instructions>x</permissions instructions>":                     {Instructions: 1},
		"<environment_context>x</environment_context>":                               {Instructions: 1},
		"[Request interrupted by user for tool use]":                                 {Instructions: 1},
		"<local-command-stdout>Set model</local-command-stdout>":                     {Instructions: 1, Output: true},
		"<user-memory-input>Use tabs</user-memory-input>":                            {Words: "Use tabs"},
		"/loop 5m check":                            {Instructions: 1},
		"/plan a garden":                            {Words: "/plan a garden"},
		"<command-name>/clear</command-name>":       {Words: "/clear", Command: true, Bare: true},
		"<command-message>plan</command-message>\n": {Instructions: 1, Command: true, Bare: true},
		"<command-message>plan is running…</command-message>\n<command-name>/plan</command-name>\n<command-args>a garden</command-args>":                   {Words: "/plan a garden", Command: true},
		"<command-args>5m x</command-args><command-name>loop</command-name>":                                                                               {Instructions: 1, Command: true},
		"# Context from my IDE setup:\n\n## Active file: a.go\n\n## My request for Codex:\nFix it.":                                                        {Words: "Fix it.", Instructions: 1},
		"<teammate-message teammate_id=\"a\">x <teammate-message>y</teammate-message></teammate-message>\n<teammate-message id=\"b\">z</teammate-message>": {Others: 2},
	} {
		require.Equal(t, want, ReadPrompt(text), text)
	}
}

// TestPlainWordsStayTheirs: text without such elements is recorded as the person's words, verbatim.
func TestPlainWordsStayTheirs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z .,?!#@*'-]{0,60}`).Draw(t, "text")
		p := ReadPrompt("x" + text + "x")
		require.Equal(t, Prompt{Words: "x" + text + "x"}, p)
	})
}

func TestBlocks(t *testing.T) {
	for raw, want := range map[string][]Piece{
		`"hello"`:                                {{Words, "hello", "text"}},
		`null`:                                   nil,
		``:                                       nil,
		`["a",{"type":"text","text":"b"}]`:       {{Words, "a", "text"}, {Words, "b", "text"}},
		`{"type":"text","text":"b"}`:             {{Words, "b", "text"}},
		`[{"type":"text","text":{"value":"v"}}]`: {{Words, "v", "text"}},
		`[{"type":"voice_note","title":"note","text":"ferry"}]`:  {{Words, "ferry", "voice_note"}},
		`[{"type":"thinking","thinking":"x"}]`:                   {{Thought, "", "thinking"}},
		`[{"type":"text","text":"x","thought":true}]`:            {{Thought, "x", "text"}},
		`[{"type":"image_url","image_url":{}}]`:                  {{Attachment, "image", "image_url"}},
		`[{"type":"file","file":{"filename":"plan.pdf"}}]`:       {{Attachment, "plan.pdf", "file"}},
		`[{"type":"code_execution_tool_result"}]`:                {{ToolOutput, "", "code_execution_tool_result"}},
		`[{"type":"web_search_call"}]`:                           {{ToolCall, "", "web_search_call"}},
		`[{"type":"hologram","text":"x"}]`:                       {{Unknown, "", "hologram"}},
		`[{"text":"x"}]`:                                         {{Unknown, "", "without a type"}},
		`[{"type":"refusal","refusal":"no"}]`:                    {{Words, "no", "refusal"}},
		`[{"type":"hologram","text":7,"content":{"a":[1]}}, 7]`:  {{Unknown, "", "hologram"}, {Unknown, "", "without a type"}},
		`[{"type":"input_audio","transcript":"x","filename":1}]`: {{Attachment, "sound", "input_audio"}},
	} {
		got := Blocks(json.RawMessage(raw))
		for i := range got {
			if got[i].Kind == Thought || got[i].Kind == Unknown {
				got[i].Text = want[i].Text
			}
		}
		require.Equal(t, want, got, raw)
	}
}
