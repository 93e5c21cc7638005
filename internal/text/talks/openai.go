package talks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/memhost/memhost/abi"
)

// openaiLines reads a conversation from each line: a request {"messages": [...]}, as it is, in "request" or in "body",
// with the answer in "choices" or in "response"; so do files for fine-tuning and for batches.
type openaiLines struct{ in *lines }

type openaiLine struct {
	openaiRequest
	openaiAnswer
	Request *openaiRequest `json:"request"`
	Body    *openaiRequest `json:"body"`
	// Response is the answer, or in a batch's output an object with the answer in "body".
	Response *struct {
		openaiAnswer
		Body *openaiAnswer `json:"body"`
	} `json:"response"`
	SessionID      string          `json:"session_id"`
	ConversationID string          `json:"conversation_id"`
	CustomID       string          `json:"custom_id"`
	ID             string          `json:"id"`
	Created        json.RawMessage `json:"created"`
	CreatedAt      json.RawMessage `json:"created_at"`
	Timestamp      json.RawMessage `json:"timestamp"`
}

type openaiRequest struct {
	Messages []openaiMessage `json:"messages"`
}

type openaiAnswer struct {
	Created json.RawMessage `json:"created"`
	Choices []struct {
		Message openaiMessage `json:"message"`
	} `json:"choices"`
}

type openaiMessage struct {
	Role      string            `json:"role"`
	Content   json.RawMessage   `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
	CreatedAt json.RawMessage   `json:"created_at"`
	Timestamp json.RawMessage   `json:"timestamp"`
}

func (l *openaiLines) next() (*talk, error) {
	var line openaiLine
	if err := l.in.next(&line); err != nil {
		return nil, err
	}
	messages := line.messages()
	if len(messages) == 0 {
		return nil, invalid("line %d: has no messages: a request of OpenAI's chat API is meant", l.in.number)
	}
	t := new(talk)
	at := firstTime(line.Timestamp, line.CreatedAt, line.Created)
	if r := line.Response; r != nil {
		at = orElse(at, firstTime(r.Created))
		if r.Body != nil {
			at = orElse(at, firstTime(r.Body.Created))
		}
	}
	for _, m := range messages {
		at = orElse(firstTime(m.Timestamp, m.CreatedAt), at)
		t.addOpenAI(m, at)
	}
	t.session = line.session(t)
	return t, nil
}

// messages are those of the request with the answer behind them.
func (l *openaiLine) messages() []openaiMessage {
	messages, choices := l.Messages, l.Choices
	for _, request := range []*openaiRequest{l.Request, l.Body} {
		if len(messages) == 0 && request != nil {
			messages = request.Messages
		}
	}
	if r := l.Response; r != nil && len(choices) == 0 {
		if choices = r.Choices; r.Body != nil {
			choices = r.Body.Choices
		}
	}
	if len(messages) > 0 && len(choices) > 0 {
		messages = append(messages, choices[0].Message)
	}
	return messages
}

// session is the line's id. A line without one is known by what was said first.
func (l *openaiLine) session(t *talk) string {
	for _, id := range []string{l.SessionID, l.ConversationID, l.CustomID, l.ID} {
		if id != "" {
			return id
		}
	}
	if len(t.said) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(string(t.said[0].Role) + "\x00" + t.said[0].Text))
	return hex.EncodeToString(sum[:8])
}

func (t *talk) addOpenAI(m openaiMessage, at time.Time) {
	t.counts.ToolCalls += len(m.ToolCalls)
	switch m.Role {
	case "user", "assistant":
		t.say(abi.Role(m.Role), t.wordsOf(blocksOf(m.Content)), at)
	case "tool", "function":
		t.counts.ToolOutputs++
	default:
		t.counts.Instructions++
	}
}

// firstTime is the first of the values that is a time: RFC 3339, or seconds since 1970.
func firstTime(values ...json.RawMessage) time.Time {
	for _, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if at := rfc3339(text); !at.IsZero() {
				return at
			}
			continue
		}
		if seconds, err := strconv.ParseFloat(string(raw), 64); err == nil {
			if at := secondsSince1970(&seconds); !at.IsZero() {
				return at
			}
		}
	}
	return time.Time{}
}
