package conversations

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/transcript"
)

// openaiLines reads a conversation from each line: a request {"messages": [...]}, at the top level, in "request" or in
// "body", with the answer in "choices" or in "response". Files for fine-tuning and for batches have this form, too.
type openaiLines struct {
	in   *lines
	zone *time.Location
	file int
	log  *openaiLog
}

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
	ThreadID       string          `json:"thread_id"`
	CustomID       string          `json:"custom_id"`
	ID             string          `json:"id"`
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
	Refusal   string            `json:"refusal"`
	Reasoning json.RawMessage   `json:"reasoning_content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
	CreatedAt json.RawMessage   `json:"created_at"`
	Timestamp json.RawMessage   `json:"timestamp"`
}

// openaiLog knows how the lines of all files belong together. A program that logs its requests repeats a conversation's
// whole history in each, so that one line continues another.
//
// A line continues another one if it starts with all of its messages, and is not older. If there are several, the
// longest counts; among equal ones the first that no other line continues. Lines that name different conversations
// never belong together. Equal lines are separate conversations, unless they have the same id.
type openaiLog struct {
	lines map[openaiPlace]*openaiPast
	ends  map[string][]*openaiPast // by conversation and digest of all messages
}

type openaiPlace struct{ file, line int }

// openaiPast is what other lines need to know about a line to continue it.
type openaiPast struct {
	place    openaiPlace
	session  string // the conversation's id, if the line names one
	id       string // the request's own id
	at       time.Time
	prefixes []string // digests of its first message, its first two, and so on
	before   *openaiPast
	taken    bool // another line continues it
	copies   int  // how many earlier lines of the file, without an id, have the same messages
}

// findOpenAI reads all files once.
func findOpenAI(files []file, zone *time.Location) *openaiLog {
	l := &openaiLog{lines: map[openaiPlace]*openaiPast{}, ends: map[string][]*openaiPast{}}
	var all []*openaiPast
	for n, f := range files {
		in, err := f.open()
		if err != nil {
			continue // the error is reported when the file is read
		}
		copies := map[string][]time.Time{}
		for lines := newLines(in); ; {
			var line openaiLine
			err := lines.next(&line)
			var bad *badLine
			if errors.As(err, &bad) {
				continue
			}
			if err != nil {
				break
			}
			p := line.past(openaiPlace{n, lines.number}, zone)
			if len(p.prefixes) == 0 {
				continue
			}
			if p.id == "" {
				times := copies[p.end()]
				p.copies = len(times)
				if at := slices.Index(times, p.at); at >= 0 && !p.at.IsZero() {
					p.copies = at
				}
				copies[p.end()] = append(times, p.at)
			}
			l.lines[p.place] = p
			all = append(all, p)
		}
		_ = in.Close()
	}
	for _, p := range all {
		key := p.session + p.end()
		l.ends[key] = append(l.ends[key], p)
	}
	for _, p := range all {
		p.before = l.lineBefore(p)
		if p.before != nil {
			p.before.taken = true
		}
	}
	return l
}

func (p *openaiPast) end() string { return p.prefixes[len(p.prefixes)-1] }

// lineBefore returns the line that p continues; nil if there is none.
func (l *openaiLog) lineBefore(p *openaiPast) *openaiPast {
	for n := len(p.prefixes) - 2; n >= 0; n-- {
		var found *openaiPast
		for _, q := range l.ends[p.session+p.prefixes[n]] {
			later := q.place.file > p.place.file || q.place.file == p.place.file && q.place.line > p.place.line
			if !p.at.IsZero() && !q.at.IsZero() {
				later = q.at.After(p.at)
			}
			if !later && (found == nil || found.taken && !q.taken) {
				found = q
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// root is the first line of the conversation.
func (p *openaiPast) root() *openaiPast {
	for p.before != nil {
		p = p.before
	}
	return p
}

// past computes the openaiPast of a line.
func (l *openaiLine) past(place openaiPlace, zone *time.Location) *openaiPast {
	p := &openaiPast{place: place}
	p.session, p.id = l.ids()
	p.at, _ = l.time(zone)
	h := sha256.New()
	for _, m := range l.messages() {
		if m.Role != "user" && m.Role != "assistant" {
			continue // instructions change from request to request
		}
		text := string(m.Content)
		var plain string
		if json.Unmarshal(m.Content, &plain) == nil {
			text = plain
		}
		if m.Role == "assistant" { // histories contain answers without thoughts
			text, _ = transcript.Answer(text)
		}
		if text = strings.TrimSpace(text); text == "" || text == "null" {
			continue
		}
		fmt.Fprintf(h, "%s\x00%d\x00%s", m.Role, len(text), text)
		p.prefixes = append(p.prefixes, hex.EncodeToString(h.Sum(nil)[:16]))
	}
	return p
}

func (l *openaiLines) next() (*conversation, error) {
	var line openaiLine
	if err := l.in.next(&line); err != nil {
		return nil, err
	}
	messages := line.messages()
	if len(messages) == 0 {
		return nil, newBadLine(l.in.number, "has no messages: a request of OpenAI's chat API is meant", "")
	}
	t := newConversation(l.zone)
	at, problem := line.time(l.zone)
	if problem != nil {
		return nil, newBadLine(l.in.number, problem.Message, problem.Hint)
	}
	past := l.log.lines[openaiPlace{l.file, l.in.number}]
	known, n := 0, 0 // messages that an earlier line has; messages that count
	if past != nil && past.before != nil {
		known = len(past.before.prefixes)
	}
	for i, m := range messages {
		own, problem := firstTime(l.zone, [2]any{"timestamp", m.Timestamp}, [2]any{"created_at", m.CreatedAt})
		if problem != nil {
			return nil, newBadLine(l.in.number, fmt.Sprintf("messages[%d].%s", i, problem.Message), problem.Hint)
		}
		before := n
		if past != nil && isOpenAIText(m) {
			n++
		}
		if n > before && n <= known || n == before && n < known {
			if n > before {
				t.counts.Repeated++
				if m.Role == "user" {
					t.turnsBefore++
				}
			}
			t.noteEarlier(abi.Role(m.Role), earlierWords(m.Content), nil)
			continue
		}
		said := len(t.said)
		t.addOpenAI(m, orElse(own, at))
		for _, m := range t.said[said:] {
			if n > before {
				m.id, m.alike = past.messageID(before), past.prefixes[before]
			}
			m.history = n < len(past.prefixes)-1
		}
	}
	t.session = "none" // the conversation has no messages
	if past != nil {
		root := past.root()
		t.session = cmp.Or(root.session, root.id, root.prefixes[0][:16])
	}
	t.earlierSession = cmp.Or(line.SessionID, line.ConversationID, line.CustomID, line.ID, earlierFirst(t))
	return t, nil
}

// earlierFirst names a line without an id by its first message, as older builds did.
func earlierFirst(t *conversation) string {
	if len(t.earlier) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(string(t.earlier[0].role) + "\x00" + t.earlier[0].text))
	return hex.EncodeToString(sum[:8])
}

// isOpenAIText reports whether past counts a message.
func isOpenAIText(m openaiMessage) bool {
	line := openaiLine{openaiRequest: openaiRequest{[]openaiMessage{m}}}
	return len(line.past(openaiPlace{}, nil).prefixes) > 0
}

// messageID is the id of the line's nth message: it covers what was said up to there, and the number among equal
// conversations.
func (p *openaiPast) messageID(n int) string {
	own := p.id
	if own == "" && p.copies > 0 {
		own = strconv.Itoa(p.copies)
	}
	if own = p.session + "\x00" + own; own != "\x00" {
		return p.prefixes[n] + "." + digest(own)[:8]
	}
	return p.prefixes[n]
}

// time is the time of the line.
func (l *openaiLine) time(zone *time.Location) (time.Time, *abi.Error) {
	times := [][2]any{{"timestamp", l.Timestamp}, {"created_at", l.CreatedAt}, {"created", l.Created}}
	if r := l.Response; r != nil {
		times = append(times, [2]any{"response.created", r.Created})
		if r.Body != nil {
			times = append(times, [2]any{"response.body.created", r.Body.Created})
		}
	}
	return firstTime(zone, times...)
}

// messages returns the messages of the request, followed by the answer.
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

// ids returns the ids that the line has: of its conversation, and of the request. Either may be empty.
func (l *openaiLine) ids() (session, request string) {
	return cmp.Or(l.SessionID, l.ConversationID, l.ThreadID), cmp.Or(l.CustomID, l.ID)
}

func (t *conversation) addOpenAI(m openaiMessage, at time.Time) {
	t.counts.ToolCalls += len(m.ToolCalls)
	if len(m.Reasoning) > 2 && string(m.Reasoning) != "null" {
		t.counts.Thoughts++
	}
	switch m.Role {
	case "user", "assistant":
		words := t.wordsOf(transcript.Blocks(m.Content))
		earlier := earlierWords(m.Content)
		if words == "" && m.Refusal != "" {
			words = m.Refusal
		}
		t.noteEarlier(abi.Role(m.Role), earlier, t.say(abi.Role(m.Role), words, at, ""))
	case "tool", "function":
		t.counts.ToolOutputs++
	default:
		t.counts.Instructions++
	}
}

// firstTime returns the first of the values, each with its name, that is a time.
//
// Errors: invalid_argument with the name, for a value that is not a time.
func firstTime(zone *time.Location, values ...[2]any) (time.Time, *abi.Error) {
	for _, v := range values {
		at, err := readTime(v[1].(json.RawMessage), zone)
		if err != nil {
			err.Message = v[0].(string) + ": " + err.Message
			return at, err
		}
		if !at.IsZero() {
			return at, nil
		}
	}
	return time.Time{}, nil
}
