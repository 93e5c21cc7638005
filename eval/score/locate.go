package score

import (
	"encoding/json"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// find searches the context for the items' texts: each after the previous one, or else from the start. An item is shown
// from the first of its parts that is found to the last.
func (r *retrieval) find(list []item, body *foldedText) {
	var raw any
	if r.raw != nil {
		_ = json.Unmarshal(r.raw, &raw) // without it, items without their own text are not found
	}
	from := 0
	for i := range list {
		first, last, at := -1, 0, from
		for _, part := range parts(list[i].Evidence, raw) {
			text := fold(part).text
			if text == "" {
				continue
			}
			start := strings.Index(body.text[at:], text)
			switch {
			case start >= 0:
				start += at
			case first >= 0: // the rest was cut off
				continue
			default:
				if start = strings.Index(body.text, text); start < 0 {
					continue
				}
			}
			if first < 0 {
				first = start
			}
			at = start + len(text)
			last = at
		}
		if first >= 0 {
			from = last
			list[i].start, list[i].end = body.original(first, last)
		}
	}
}

// textMembers are the names under which backends store an item's text.
var textMembers = []string{"text", "content", "memory", "fact", "value", "summary", "data"}

// parts returns the texts of an item: its own, or what it points to (a string, or a span of one; a turn's messages; the
// text of an object).
func parts(e *abi.Evidence, raw any) []string {
	if e.Text != "" {
		return []string{e.Text}
	}
	value, there := jsonpointer.Find(raw, e.Pointer)
	if !there {
		return nil
	}
	switch v := value.(type) {
	case string:
		if s := e.Span; s != nil && 0 <= s.Start && s.Start < s.End && s.End <= int64(len(v)) {
			v = v[s.Start:s.End]
		}
		return []string{v}
	case map[string]any:
		if messages, is := v["messages"].([]any); is {
			var list []string
			for _, m := range messages {
				if object, is := m.(map[string]any); is {
					if text, is := object["content"].(string); is {
						list = append(list, text)
					}
				}
			}
			return list
		}
		for _, name := range textMembers {
			if text, is := v[name].(string); is {
				return []string{text}
			}
		}
	}
	return nil
}
