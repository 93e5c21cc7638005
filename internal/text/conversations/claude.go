package conversations

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/transcript"
)

// claudeExport is an element of claude.ai's conversations.json.
type claudeExport struct {
	UUID      string          `json:"uuid"`
	CreatedAt json.RawMessage `json:"created_at"`
	Leaf      string          `json:"current_leaf_message_uuid"`
	Messages  []claudeMessage `json:"chat_messages"`
	// Mapping is only present in an export from ChatGPT.
	Mapping json.RawMessage `json:"mapping"`
}

type claudeMessage struct {
	UUID        string          `json:"uuid"`
	Parent      string          `json:"parent_message_uuid"`
	Sender      string          `json:"sender"`
	Text        string          `json:"text"`
	Content     json.RawMessage `json:"content"`
	CreatedAt   json.RawMessage `json:"created_at"`
	Attachments []claudeFile    `json:"attachments"`
	Files       []claudeFile    `json:"files"`
}

type claudeFile struct {
	Name string `json:"file_name"`
	// Extracted is the attachment's text, as far as the service has extracted it.
	Extracted string `json:"extracted_content"`
}

func claudeConversation(raw json.RawMessage, zone *time.Location) (*conversation, error) {
	var c claudeExport
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, invalid("is not a conversation of claude.ai: %s", err)
	}
	if c.Messages == nil && c.Mapping != nil {
		return nil, broken("is an export of chatgpt: read it with --from chatgpt")
	}
	if c.Messages == nil {
		return nil, invalid("chat_messages: want a list of messages, found none: not an export of claude.ai, or one of " +
			"another version")
	}
	t := newConversation(zone)
	t.session = c.UUID
	at := t.timeOf(c.CreatedAt, "created_at")
	shown := c.shown()
	for i, m := range shown {
		at = orElse(t.timeOf(m.CreatedAt, "chat_messages["+strconv.Itoa(i)+"].created_at"), at)
		role := abi.RoleAssistant
		switch m.Sender {
		case "human", "user":
			role = abi.RoleUser
		case "assistant":
		default:
			t.counts.Instructions++
			continue
		}
		words, earlier := t.claudeWords(m)
		t.noteEarlier(role, earlier, t.say(role, words, at, entryID(c.UUID, m.UUID)))
	}
	t.counts.Replaced += len(c.Messages) - len(shown)
	return t, nil
}

// shown returns the messages of the branch that was shown last. Exports without parents have one branch, ordered by
// time. If the export does not name the branch's last message, it is the newest one.
func (c *claudeExport) shown() []claudeMessage {
	byID := map[string]claudeMessage{}
	linked, timed := false, true
	time := func(m *claudeMessage) time.Time {
		at, err := readTime(m.CreatedAt, time.UTC)
		timed = timed && err == nil && !at.IsZero()
		return at
	}
	newest := 0
	for i, m := range c.Messages {
		byID[m.UUID] = m
		linked = linked || m.Parent != ""
		if !time(&m).Before(time(&c.Messages[newest])) {
			newest = i
		}
	}
	if !linked {
		if timed {
			slices.SortStableFunc(c.Messages, func(a, b claudeMessage) int { return time(&a).Compare(time(&b)) })
		}
		return c.Messages
	}
	leaf := c.Leaf
	if _, ok := byID[leaf]; !ok {
		if !timed {
			newest = len(c.Messages) - 1
		}
		leaf = c.Messages[newest].UUID
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

// pasted matches the names that the service gives to pasted texts.
var pasted = regexp.MustCompile(`(?i)^\s*$|^pasted?([ _-](text|content))?([ _-]?\(?\d+\)?)?(\.(txt|md))?$`)

// claudeWords reads the blocks, because in text the service replaces blocks other than words by notes. Old exports only
// have text, and so do messages with empty blocks. Pasted text counts as the person's: it is an attachment whose text
// the service has. earlier is what older builds read.
func (t *conversation) claudeWords(m claudeMessage) (words, earlier string) {
	pieces := transcript.Blocks(m.Content)
	words, earlier = t.wordsOf(pieces), earlierWords(m.Content)
	if strings.TrimSpace(words) == "" && !slices.ContainsFunc(pieces, func(p transcript.Piece) bool {
		return p.Kind != transcript.Words
	}) {
		words = m.Text
	}
	if len(pieces) == 0 && strings.TrimSpace(earlier) == "" {
		earlier = m.Text
	}
	for _, f := range slices.Concat(m.Attachments, m.Files) {
		name := t.attached(f.Name, "file")
		earlier += "\n" + name
		if pasted.MatchString(f.Name) && strings.TrimSpace(f.Extracted) != "" {
			t.counts.Attachments--
			name = f.Extracted
		}
		words += "\n" + name
	}
	return words, earlier
}
