// Package transcript classifies the pieces of a conversation: what a person or an assistant said, and what a program
// inserted. The readers of exports and logs use it, and so do the hooks of agents, so that all of them skip the same
// pieces.
//
// Reading order: transcript.go (the kinds, the blocks of a message, and an assistant's answer), prompt.go (a person's text).
package transcript

import (
	"encoding/json"
	"strings"

	"github.com/memhost/memhost/sdk/chat"
)

// Kind is the kind of a piece of a conversation.
type Kind string

// The kinds. Words and Attachment are recorded, an attachment by its name. All other kinds are skipped and counted.
const (
	Words      Kind = "words"
	Attachment Kind = "attachment"
	ToolCall   Kind = "tool_call"
	ToolOutput Kind = "tool_output"
	Thought    Kind = "thought"
	// Instruction is what a program inserts into a user's message for the model: instructions, context, reminders.
	Instruction Kind = "instruction"
	// Other is a message of another session, agent or channel.
	Other Kind = "other"
	// Unknown is a block type that this version does not know.
	Unknown Kind = "unknown"
)

// Piece is a part of a message.
type Piece struct {
	Kind Kind
	// Text is what was said, or the attachment's name.
	Text string
	// Type is the block's own type, such as "image". For an attachment it is used if there is no name.
	Type string
}

// block is a part of a message, in the formats of Claude, Claude Code, Codex and OpenAI's API.
type block struct {
	Type       string          `json:"type"`
	Text       json.RawMessage `json:"text"`
	Refusal    string          `json:"refusal"`
	Transcript string          `json:"transcript"`
	Content    json.RawMessage `json:"content"`
	Extracted  string          `json:"extracted_content"`
	Name       string          `json:"filename"`
	FileName   string          `json:"file_name"`
	Title      string          `json:"title"`
	Thought    bool            `json:"thought"`
	File       struct {
		Name string `json:"filename"`
	} `json:"file"`
}

// kinds has the known block types.
var kinds = map[string]Kind{
	"text": Words, "input_text": Words, "output_text": Words, "refusal": Words,
	"voice_note": Words, "audio_transcription": Words, "transcript": Words, "pasted_text": Words, "paste": Words,
	"tool_use": ToolCall, "server_tool_use": ToolCall, "mcp_tool_use": ToolCall, "tool_call": ToolCall,
	"function_call": ToolCall, "custom_tool_call": ToolCall,
	"tool_result": ToolOutput, "tool_reference": ToolOutput, "search_result": ToolOutput, "knowledge": ToolOutput,
	"thinking": Thought, "redacted_thinking": Thought, "reasoning": Thought, "thought": Thought, "summary_text": Thought,
	"reasoning_text": Thought, "reasoning_content": Thought, "encrypted_content": Thought,
	"token_budget": Instruction, "flag": Instruction, "system_reminder": Instruction, "cache_edits": Instruction,
	"image": Attachment, "input_image": Attachment, "image_url": Attachment, "output_image": Attachment,
	"document": Attachment, "input_file": Attachment, "file": Attachment, "container_upload": Attachment,
	"input_audio": Attachment, "audio": Attachment, "video": Attachment, "input_video": Attachment,
	"video_url": Attachment,
}

// attachments has the names of attachments that have no name of their own, by type.
var attachments = map[string]string{"document": "file", "input_file": "file", "file": "file", "container_upload": "file",
	"input_audio": "sound", "audio": "sound", "video": "video", "input_video": "video", "video_url": "video"}

// kindOf is the kind of a block type. Tool calls and outputs are also recognised by suffix, because each new tool
// brings new types.
func kindOf(of string) Kind {
	if kind, known := kinds[of]; known {
		return kind
	}
	switch {
	case strings.HasSuffix(of, "_result"), strings.HasSuffix(of, "_call_output"), strings.HasSuffix(of, "_tool_output"):
		return ToolOutput
	case strings.HasSuffix(of, "_tool_use"), strings.HasSuffix(of, "_call"):
		return ToolCall
	}
	return Unknown
}

// Blocks parses the content of a message: a text, a list of texts and blocks, or one block. Null and empty content have
// no pieces.
func Blocks(content json.RawMessage) []Piece {
	var text string
	if len(content) == 0 || string(content) == "null" {
		return nil
	}
	if json.Unmarshal(content, &text) == nil {
		return []Piece{{Kind: Words, Text: text, Type: "text"}}
	}
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		list = []json.RawMessage{content}
	}
	var pieces []Piece
	for _, raw := range list {
		if json.Unmarshal(raw, &text) == nil {
			pieces = append(pieces, Piece{Kind: Words, Text: text, Type: "text"})
			continue
		}
		pieces = append(pieces, Block(raw))
	}
	return pieces
}

// Block parses one block.
func Block(raw json.RawMessage) Piece {
	var b block
	if json.Unmarshal(raw, &b) != nil { // a field has an unexpected type: only the block's type counts
		b = block{Type: typeOf(raw)}
	}
	p := Piece{Kind: kindOf(b.Type), Type: b.Type}
	if b.Thought && p.Kind == Words {
		p.Kind = Thought
	}
	switch p.Kind {
	case Words:
		p.Text = b.words()
	case Attachment:
		for _, name := range []string{b.Name, b.FileName, b.File.Name, b.Title, attachments[b.Type], "image"} {
			if p.Text = strings.Join(strings.Fields(name), " "); p.Text != "" {
				break
			}
		}
	case Unknown:
		if p.Type == "" {
			p.Type = "without a type"
		}
	}
	return p
}

// words returns the text of a block, which is a string, an object with one, or in another field.
func (b *block) words() string {
	for _, raw := range []json.RawMessage{b.Text, b.Content} {
		var text string
		var object struct {
			Value string `json:"value"`
			Text  string `json:"text"`
		}
		switch {
		case json.Unmarshal(raw, &text) == nil && text != "":
			return text
		case json.Unmarshal(raw, &object) == nil && object.Value+object.Text != "":
			return object.Value + object.Text
		}
	}
	for _, text := range []string{b.Refusal, b.Transcript, b.Extracted} {
		if text != "" {
			return text
		}
	}
	return ""
}

func typeOf(raw json.RawMessage) string {
	var b struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &b)
	return b.Type
}

// Answer splits an assistant's text into its words and the model's thoughts, which it removes and counts.
func Answer(text string) (words string, thoughts int) { return chat.StripThoughts(text) }
