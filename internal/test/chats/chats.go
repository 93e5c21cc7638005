// Package chats reads the conversations that tests record: that of examples/demo, or with CHATS=DIR the chats in a
// folder, JSON files as EverMemOS has them (session_meta with user_details, conversation_list).
package chats

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
)

// Variable is the environment variable that names a folder of chats.
const Variable = "CHATS"

// Chat is a conversation of several people, or of one with an assistant.
type Chat struct {
	// Name is the file's, without .json.
	Name     string
	Messages []Message
}

// Message is one message of a chat. Its ID need not be unique within the chat.
type Message struct {
	ID         string `json:"message_id"`
	Time       string `json:"create_time"`
	Sender     string `json:"sender"`
	SenderName string `json:"sender_name"`
	Content    string `json:"content"`
	Assistant  bool   `json:"-"`
}

// Read reads the chats in a folder, by name.
//
// Errors: those of files, and when there is none.
func Read(folder string) ([]Chat, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no *.json", folder)
	}
	var list []Chat
	for _, path := range paths {
		c, err := read(path)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, err
}

func read(path string) (Chat, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Chat{}, err
	}
	var file struct {
		Meta struct {
			Users map[string]struct{ Role string } `json:"user_details"`
		} `json:"session_meta"`
		Messages []Message `json:"conversation_list"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Chat{}, fmt.Errorf("%s: %w", path, err)
	}
	for i := range file.Messages {
		m := &file.Messages[i]
		m.Assistant = file.Meta.Users[m.Sender].Role == "assistant" || m.SenderName == "assistant"
	}
	return Chat{Name: strings.TrimSuffix(filepath.Base(path), ".json"), Messages: file.Messages}, nil
}

// Events makes a turn of each message of a person and the answers behind it; a day is a session, and the chat a scope.
// The speakers' names are on the messages.
func (c *Chat) Events() []abi.MemoryEvent {
	var list []abi.MemoryEvent
	for i := range c.Messages {
		m := &c.Messages[i]
		if strings.TrimSpace(m.Content) == "" {
			continue
		}
		if m.Assistant && len(list) > 0 {
			last := &list[len(list)-1]
			last.Messages = append(last.Messages, abi.Message{Role: abi.RoleAssistant, Content: &m.Content})
			continue
		}
		name := m.SenderName
		if name == "user" {
			name = ""
		}
		day, _, _ := strings.Cut(m.Time, "T")
		list = append(list, abi.MemoryEvent{EventID: fmt.Sprint(c.Name, "-", i), RunID: c.Name, UserID: "chat",
			SessionID: c.Name + "-" + day, TurnID: m.ID, Timestamp: m.Time,
			Messages: []abi.Message{{Role: abi.RoleUser, Name: name, Content: &m.Content}}})
	}
	return list
}

// Events are those of the chats that CHATS names, or of examples/demo.
func Events() ([]abi.MemoryEvent, error) {
	folder := os.Getenv(Variable)
	if folder == "" {
		return demoEvents()
	}
	list, err := Read(folder)
	var events []abi.MemoryEvent
	for i := range list {
		events = append(events, list[i].Events()...)
	}
	return events, err
}

func demoEvents() (list []abi.MemoryEvent, err error) {
	file, err := demo.Events()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e abi.MemoryEvent
		if err := abi.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, lines.Err()
}
