package talks

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// talk is one conversation as far as it is kept.
type talk struct {
	session string
	said    []convert.Said
	ids     []string // of what was said, where another file may repeat it
	// repeated is how many messages at its beginning are those of another file.
	repeated int
	// working: an agent used tools since it last said something, so its answer is not complete.
	working bool
	counts  Counts
}

// say adds a message. Blanks around it are removed, credentials are replaced, and an empty text adds no message.
func (t *talk) say(role abi.Role, text string, at time.Time) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	text, found := withoutCredentials(text)
	t.counts.Credentials += found
	t.said = append(t.said, convert.Said{Role: role, Text: text, At: at})
	t.working = false
}

// attached is the line that names an attachment; kind replaces a missing name.
func (t *talk) attached(name, kind string) string {
	t.counts.Attachments++
	if name = strings.Join(strings.Fields(name), " "); name == "" {
		name = kind
	}
	return "[attachment: " + name + "]"
}

// finish leaves out a last turn that has no answer yet, or only a part of one.
func (t *talk) finish() {
	last := len(t.said) - 1
	if last < 0 || t.said[last].Role == abi.RoleAssistant && !t.working {
		return
	}
	for last > 0 && t.said[last].Role != abi.RoleUser {
		last--
	}
	t.said = t.said[:last]
	t.ids = t.ids[:min(last, len(t.ids))]
	t.counts.Unfinished++
}

// block is a part of a message, as Claude, Claude Code, Codex and OpenAI's API write it.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Name string `json:"filename"`
}

// blocksOf reads a content that is a text or a list of blocks.
func blocksOf(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return nil
	}
	blocks := make([]block, len(raw))
	for i := range raw {
		if json.Unmarshal(raw[i], &blocks[i]) != nil { // a block of another version: only its type counts
			blocks[i] = block{Type: typeOf(raw[i])}
		}
	}
	return blocks
}

func typeOf(raw json.RawMessage) string {
	var b struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &b)
	return b.Type
}

// wordsOf joins the texts of a message, names its attachments and counts the rest.
func (t *talk) wordsOf(blocks []block) string {
	var words []string
	for _, b := range blocks {
		switch b.Type {
		case "text", "input_text", "output_text", "refusal":
			words = append(words, b.Text)
		case "tool_use", "server_tool_use", "mcp_tool_use":
			t.counts.ToolCalls++
		case "tool_result", "web_search_tool_result", "mcp_tool_result":
			t.counts.ToolOutputs++
		case "thinking", "redacted_thinking", "reasoning":
			t.counts.Thoughts++
		case "image", "input_image", "image_url":
			words = append(words, t.attached(b.Name, "image"))
		case "document", "input_file", "file":
			words = append(words, t.attached(b.Name, "file"))
		case "input_audio", "audio":
			words = append(words, t.attached(b.Name, "sound"))
		}
	}
	return strings.Join(words, "\n")
}

// secondsSince1970 is a time as ChatGPT writes it, to the microsecond. Nil and 0 are no time.
func secondsSince1970(seconds *float64) time.Time {
	const latest = 1e11 // some three thousand years from now
	if seconds == nil || *seconds <= 0 || *seconds > latest {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(*seconds * 1e6))).UTC()
}

// rfc3339 is a time with a zone. What is no time is a zero one.
func rfc3339(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// orElse is the first time that is one.
func orElse(at, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at
}
