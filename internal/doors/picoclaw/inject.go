package picoclaw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// userMessage is the last user message of a request. params[start:end] is its content, a JSON text; index is its
// position in the list of messages.
type userMessage struct {
	params     []byte
	start, end int
	index      int
	text       string
}

// errForm: the request does not have PicoClaw's form.
var errForm = errors.New("want an object with a list of messages")

// lastUserMessage finds the message that the context belongs to. It returns nil if no user message has a text as its
// content.
func lastUserMessage(params []byte) (*userMessage, error) {
	list, err := member(params, 0, "messages")
	if err != nil || list == nil {
		return nil, errors.Join(errForm, err)
	}
	var last *span
	index, count := 0, 0
	err = eachElement(list.of(params), func(e span) error {
		var m struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(e.of(list.of(params)), &m); err != nil {
			return err
		}
		if m.Role == "user" {
			last, index = &span{list.start + e.start, list.start + e.end}, count
		}
		count++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if last == nil {
		return nil, nil
	}
	content, err := member(last.of(params), last.start, "content")
	if err != nil || content == nil || params[content.start] != '"' {
		return nil, err
	}
	m := &userMessage{params: params, start: content.start, end: content.end, index: index}
	return m, json.Unmarshal(content.of(params), &m.text)
}

// userTexts lists the user messages of a request whose content is a text. A request of another form has none.
func userTexts(params []byte) (texts []string) {
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(params, &request); err != nil {
		return nil
	}
	for _, m := range request.Messages {
		var text string
		if err := json.Unmarshal(m.Content, &text); err == nil && m.Role == "user" {
			texts = append(texts, text)
		}
	}
	return texts
}

// with returns the request with text appended to the message. Every other byte stays the same: PicoClaw drops all
// changes if a system message differs, and loses what an answer leaves out.
func (m *userMessage) with(more string) []byte {
	written := mustMarshal(more)
	return slicesOf(m.params[:m.end-1], []byte(`\n\n`), written[1:], m.params[m.end:])
}

// withoutTools removes the tool definitions.
func withoutTools(request []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(request, &all); err != nil {
		return nil, err
	}
	delete(all, "tools")
	return mustMarshal(all), nil
}

// span is a range of bytes.
type span struct{ start, end int }

func (s span) of(text []byte) []byte { return text[s.start:s.end] }

// member finds the value of a key in an object that starts at base in a larger text. Of equal keys the last one wins,
// as in PicoClaw. It returns nil if there is no such key.
func member(object []byte, base int, key string) (*span, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errForm, err)
	}
	var found *span
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := next(d)
		if err != nil {
			return nil, err
		}
		if name == key {
			found = &span{base + value.start, base + value.end}
		}
	}
	return found, nil
}

// eachElement visits the elements of a list.
func eachElement(list []byte, do func(e span) error) error {
	d := json.NewDecoder(bytes.NewReader(list))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errForm, err)
	}
	for d.More() {
		value, err := next(d)
		if err == nil {
			err = do(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns the position of the decoder's next value.
func next(d *json.Decoder) (span, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return span{}, err
	}
	end := int(d.InputOffset())
	return span{end - len(raw), end}, nil
}
