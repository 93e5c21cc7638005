package conversations

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// chatgptExport is an element of conversations.json: a tree of messages, and the leaf that the user saw last.
type chatgptExport struct {
	ID             string                 `json:"id"`
	ConversationID string                 `json:"conversation_id"`
	CreateTime     json.RawMessage        `json:"create_time"`
	CurrentNode    string                 `json:"current_node"`
	Mapping        map[string]chatgptNode `json:"mapping"`
	// ChatMessages is only present in an export from claude.ai.
	ChatMessages json.RawMessage `json:"chat_messages"`
}

type chatgptNode struct {
	Parent  string          `json:"parent"`
	Message *chatgptMessage `json:"message"`
}

type chatgptMessage struct {
	Author struct {
		Role string `json:"role"`
	} `json:"author"`
	CreateTime json.RawMessage `json:"create_time"`
	Recipient  string          `json:"recipient"`
	Content    struct {
		Type  string            `json:"content_type"`
		Text  string            `json:"text"`
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Metadata struct {
		Hidden      bool `json:"is_visually_hidden_from_conversation"`
		Attachments []struct {
			Name string `json:"name"`
		} `json:"attachments"`
	} `json:"metadata"`
}

func chatgptConversation(raw json.RawMessage, zone *time.Location) (*conversation, error) {
	var c chatgptExport
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, invalid("is not a conversation of chatgpt: %s", err)
	}
	if c.Mapping == nil && c.ChatMessages != nil {
		return nil, broken("is an export of claude.ai: read it with --from claude")
	}
	if c.Mapping == nil {
		return nil, invalid("mapping: want the messages of a conversation, found none: not an export of chatgpt, or one of another " +
			"version")
	}
	t := newConversation(zone)
	t.session = c.ConversationID
	if t.session == "" {
		t.session = c.ID
	}
	shown, err := c.shown()
	if err != nil {
		return nil, err
	}
	at := t.timeOf(c.CreateTime, "create_time")
	for _, id := range shown {
		if m := c.Mapping[id].Message; m != nil {
			at = orElse(t.timeOf(m.CreateTime, "mapping["+id+"].message.create_time"), at)
			t.addChatGPT(m, at, id)
		}
	}
	t.counts.Replaced += c.replaced(shown)
	return t, nil
}

// shown returns the nodes from the root to the leaf that was shown last. If the export does not name that leaf, it is
// the newest message.
func (c *chatgptExport) shown() ([]string, error) {
	leaf := c.CurrentNode
	if _, ok := c.Mapping[leaf]; !ok {
		leaf = c.newest()
	}
	var path []string
	for id := leaf; ; {
		node, ok := c.Mapping[id]
		if !ok {
			break
		}
		if len(path) == len(c.Mapping) {
			return nil, invalid("the tree of messages runs in a circle")
		}
		path = append(path, id)
		id = node.Parent
	}
	slices.Reverse(path)
	return path, nil
}

func (c *chatgptExport) newest() string {
	newest, at := "", time.Time{}
	for id, node := range c.Mapping {
		if node.Message == nil {
			continue
		}
		t, _ := readTime(node.Message.CreateTime, time.UTC)
		if newest == "" || t.After(at) || t.Equal(at) && id > newest {
			newest, at = id, t
		}
	}
	return newest
}

// replaced counts the messages of people and of the assistant on branches that are not shown.
func (c *chatgptExport) replaced(shown []string) int {
	isShown := make(map[string]bool, len(shown))
	for _, id := range shown {
		isShown[id] = true
	}
	n := 0
	for id, node := range c.Mapping {
		m := node.Message
		if m != nil && m.isSaid() && !isShown[id] {
			n++
		}
	}
	return n
}

// chatgptContext has the content types with which the service instructs the model.
var chatgptContext = []string{"user_editable_context", "model_editable_context", "system_error", "app_pairing_content",
	"sonic_webpage", "system_message"}

// isSaid distinguishes words from what the service inserted and from input for tools.
func (m *chatgptMessage) isSaid() bool {
	role := m.Author.Role
	toAll := m.Recipient == "" || m.Recipient == "all"
	typeSaid := m.Content.Type == "text" || m.Content.Type == "multimodal_text" || m.Content.Type == "code"
	return (role == "user" || role == "assistant") && toAll && typeSaid && !m.Metadata.Hidden
}

func (t *conversation) addChatGPT(m *chatgptMessage, at time.Time, id string) {
	say := func(role abi.Role, texts bool) {
		words := t.chatgptWords(m, texts)
		t.noteEarlier(role, words, t.say(role, words, at, entryID(t.session, id)))
	}
	role := abi.Role(m.Author.Role)
	switch kind := m.Content.Type; {
	case role == abi.RoleTool:
		t.counts.ToolOutputs++
		if kind == "multimodal_text" { // a requested picture is recorded by name, as an answer
			say(abi.RoleAssistant, false)
		}
	case kind == "thoughts" || kind == "reasoning_recap":
		t.counts.Thoughts++
	case kind == "execution_output" || kind == "tether_quote" || kind == "tether_browsing_display":
		t.counts.ToolOutputs++
	case role == abi.RoleAssistant && m.Recipient != "" && m.Recipient != "all":
		t.counts.ToolCalls++
	case m.isSaid():
		say(role, true)
	case slices.Contains(chatgptContext, kind) || role == abi.RoleSystem || m.Metadata.Hidden:
		if kind != "text" || strings.TrimSpace(newConversation(nil).chatgptWords(m, true)) != "" {
			t.counts.Instructions++
		}
	default:
		t.counts.Unknown[orWithout(kind)]++
	}
}

// mark matches a citation or a widget in ChatGPT's text, which uses letters of the private use area.
var mark = regexp.MustCompile("\ue200[^\ue201]*\ue201")

// chatgptWords joins the parts of a message. Parts that are not text, and files that it names, become attachments.
// Without texts it returns only the attachments.
func (t *conversation) chatgptWords(m *chatgptMessage, texts bool) string {
	var words []string
	if texts && m.Content.Text != "" {
		words = append(words, m.Content.Text)
	}
	named := len(m.Metadata.Attachments)
	for _, raw := range m.Content.Parts {
		var text string
		var part struct {
			Type string `json:"content_type"`
			Text string `json:"text"`
		}
		switch {
		case json.Unmarshal(raw, &text) == nil:
		case json.Unmarshal(raw, &part) != nil:
			t.counts.Unknown["without a type"]++
			continue
		case part.Type == "audio_transcription":
			text = part.Text
		case named == 0 && strings.Contains(part.Type, "image"):
			words = append(words, t.attached("", "image"))
		case named == 0 && strings.Contains(part.Type, "video"):
			words = append(words, t.attached("", "video"))
		case strings.Contains(part.Type, "image"), strings.Contains(part.Type, "video"),
			strings.Contains(part.Type, "audio"), strings.HasSuffix(part.Type, "_asset_pointer"):
			// named below, or the sound of a transcription
		default:
			t.counts.Unknown[orWithout(part.Type)]++
		}
		if texts && text != "" {
			words = append(words, mark.ReplaceAllString(text, ""))
		}
	}
	for _, a := range m.Metadata.Attachments {
		words = append(words, t.attached(a.Name, "file"))
	}
	return strings.Join(words, "\n")
}
