package talks

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// claudeExport is an element of claude.ai's conversations.json.
type claudeExport struct {
	UUID      string          `json:"uuid"`
	CreatedAt string          `json:"created_at"`
	Leaf      string          `json:"current_leaf_message_uuid"`
	Messages  []claudeMessage `json:"chat_messages"`
	// Mapping is there only in an export of chatgpt.
	Mapping json.RawMessage `json:"mapping"`
}

type claudeMessage struct {
	UUID        string          `json:"uuid"`
	Parent      string          `json:"parent_message_uuid"`
	Sender      string          `json:"sender"`
	Text        string          `json:"text"`
	Content     json.RawMessage `json:"content"`
	CreatedAt   string          `json:"created_at"`
	Attachments []claudeFile    `json:"attachments"`
	Files       []claudeFile    `json:"files"`
}

type claudeFile struct {
	Name string `json:"file_name"`
}

func claudeTalk(raw json.RawMessage) (*talk, error) {
	var c claudeExport
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, invalid("is not a talk of claude.ai: %s", err)
	}
	if c.Messages == nil && c.Mapping != nil {
		return nil, broken("is an export of chatgpt: read it with --from chatgpt")
	}
	if c.Messages == nil {
		return nil, invalid("a talk has no chat_messages: not an export of claude.ai, or one of another version")
	}
	t := &talk{session: c.UUID}
	at := rfc3339(c.CreatedAt)
	shown := c.shown()
	for _, m := range shown {
		at = orElse(rfc3339(m.CreatedAt), at)
		role := abi.RoleAssistant
		if m.Sender == "human" || m.Sender == "user" {
			role = abi.RoleUser
		}
		t.say(role, t.claudeWords(m), at)
	}
	t.counts.Replaced += len(c.Messages) - len(shown)
	return t, nil
}

// shown are the messages of the branch that was shown last. Exports without parents are one branch.
func (c *claudeExport) shown() []claudeMessage {
	byID := map[string]claudeMessage{}
	linked := false
	for _, m := range c.Messages {
		byID[m.UUID] = m
		linked = linked || m.Parent != ""
	}
	if !linked {
		return c.Messages
	}
	leaf := c.Leaf
	if _, ok := byID[leaf]; !ok {
		leaf = c.Messages[len(c.Messages)-1].UUID
	}
	var path []claudeMessage
	for id := leaf; len(path) < len(c.Messages); {
		m, ok := byID[id]
		if !ok {
			break
		}
		path = append(path, m)
		id = m.Parent
	}
	slices.Reverse(path)
	return path
}

// claudeWords takes the blocks, since text has notes instead of those that are no words. Old exports have only text.
func (t *talk) claudeWords(m claudeMessage) string {
	words := t.wordsOf(blocksOf(m.Content))
	if strings.TrimSpace(words) == "" && len(blocksOf(m.Content)) == 0 {
		words = m.Text
	}
	for _, f := range slices.Concat(m.Attachments, m.Files) {
		words += "\n" + t.attached(f.Name, "file")
	}
	return words
}
