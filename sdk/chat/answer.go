package chat

import (
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Text returns the text of a message's content: a string, or a list of parts, as some endpoints send it. A model's
// thoughts are left out, whether they are parts of such a type or elements in the text.
func Text(content []byte) string {
	text, _ := StripThoughts(rawText(content))
	return text
}

// rawText is Text with the elements that contain a model's thoughts.
func rawText(content wirejson.Raw) string {
	text := str(content)
	if content.Type() == wirejson.Array {
		for _, raw := range elements(content) {
			of := str(member(raw, "type"))
			if text += str(raw); of == "" || of == "text" || of == "output_text" {
				text += str(member(raw, "text"))
			}
		}
	}
	return text
}

// str returns the text of a JSON string, or "" for any other value.
//
//go:noinline
func str(raw wirejson.Raw) (text string) {
	if raw.Type() == wirejson.String {
		text, _ = wirejson.DecodeBytes(raw).Str()
	}
	return text
}

// member returns the value of an object's member, or nil.
//
//go:noinline
func member(raw wirejson.Raw, name string) (value wirejson.Raw) {
	if raw.Type() == wirejson.Object {
		_ = wirejson.DecodeBytes(raw).Obj(func(d *wirejson.Decoder, key string) (err error) {
			if key != name || value != nil {
				return d.Skip()
			}
			value, err = d.RawAppend(nil)
			return err
		})
	}
	return value
}

// elements returns the elements of an array.
//
//go:noinline
func elements(list wirejson.Raw) (items []wirejson.Raw) {
	_ = wirejson.DecodeBytes(list).Arr(func(d *wirejson.Decoder) error {
		item, err := d.RawAppend(nil)
		items = append(items, item)
		return err
	})
	return items
}

// Word returns the one of words (lower-case) that an answer gives: alone, in a fence, in quotes or JSON, after
// "Answer:", or as the first word of a sentence. It returns "" if the answer gives none, or several without one of them
// at the start.
func Word(answer string, choices ...string) string {
	text, _ := StripThoughts(answer)
	is := func(word string) string {
		word = strings.ToLower(word)
		for _, choice := range choices {
			if word == choice {
				return choice
			}
		}
		return ""
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '\'' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r < 0x80
	})
	for len(words) > 0 && isLead(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	if first := is(strings.Trim(words[0], "'_")); first != "" {
		if len(words) > 2 && strings.EqualFold(words[1], "or") && is(strings.Trim(words[2], "'_")) != "" {
			return "" // "yes, or no"
		}
		return first
	}
	// "Both mean the same. Final answer: yes": the text after the last such phrase counts.
	found := ""
	for i, w := range words {
		if is(strings.Trim(w, "'_")) != "" && i > 0 && isLead(words[i-1]) {
			found = is(strings.Trim(w, "'_"))
		}
	}
	return found
}

// isLead reports whether a word only introduces an answer.
func isLead(word string) bool {
	switch strings.ToLower(word) {
	case "answer", "verdict", "final", "the", "is", "my", "result", "decision", "json", "text", "judgement", "judgment",
		"output", "response", "accepted", "correct":
		return true
	}
	return false
}

// List returns the list of objects in an answer: bare, in an object under one of the names, in a fence, or in prose.
// Other lists, such as the [1] of a citation, are skipped. An empty list counts only if there is no other. ok is false
// if there is no list.
func List(answer string, names ...string) (items []wirejson.Raw, ok bool) {
	text, _ := StripThoughts(answer)
	empty := false
	for at := 0; at < len(text); at++ {
		if text[at] != '[' && text[at] != '{' {
			continue
		}
		raw, err := wirejson.DecodeBytes([]byte(text[at:])).Raw()
		if err != nil {
			continue
		}
		if list := listIn(raw, names); list != nil {
			items, objects := elements(list), 0
			for _, item := range items {
				if item.Type() == wirejson.Object {
					objects++
				}
			}
			if objects > 0 && objects == len(items) {
				return items, true
			}
			empty = empty || len(items) == 0
		}
		at += len(raw) - 1
	}
	return nil, empty
}

// Object returns the first object in an answer that has a member with this name: bare, in a fence, or in prose. ok is
// false if there is none.
func Object(answer, name string) (object wirejson.Raw, ok bool) {
	text, _ := StripThoughts(answer)
	for at := 0; at < len(text); at++ {
		if text[at] != '{' {
			continue
		}
		raw, err := wirejson.DecodeBytes([]byte(text[at:])).Raw()
		if err == nil && member(raw, name) != nil {
			return raw, true
		}
	}
	return nil, false
}

// listIn returns an array itself, or the array of an object under one of the names; nil if there is none.
//
//go:noinline
func listIn(raw wirejson.Raw, names []string) wirejson.Raw {
	if raw.Type() == wirejson.Array {
		return raw
	}
	for _, name := range names {
		if list := member(raw, name); list.Type() == wirejson.Array {
			return list
		}
	}
	return nil
}

// ErrorText returns an endpoint's own message about a failed request: error.message, error, message or detail of its
// JSON, or its text. At most 500 bytes.
//
//go:noinline
func ErrorText(body []byte) string {
	failure := member(body, "error")
	text := str(member(failure, "message")) + str(failure)
	for _, name := range [...]string{"message", "detail"} {
		if text == "" {
			text = str(member(body, name))
		}
	}
	if text == "" {
		text = string(body)
	}
	if text = strings.Join(strings.Fields(text), " "); len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "..."
	}
	return text
}

// Retryable reports whether a status says that the same request may work later.
func Retryable(status int64) bool {
	return status == 408 || status == 425 || status == 429 || status >= 500
}

// RetryAfter parses the header Retry-After, seconds or an HTTP date, into milliseconds from now. ok is false for
// anything else. More than a day is cut to a day.
func RetryAfter(header string, now time.Time) (ms int64, ok bool) {
	const day = 24 * 60 * 60 * 1000
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		return min(max(seconds, 0), day/1000) * 1000, seconds >= 0
	}
	// "Mon, 02 Mar 2026 09:00:30 GMT". time.Parse would add 20 KB to a module.
	const months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	if len(header) != len("Mon, 02 Mar 2026 09:00:30 GMT") || header[25:] != " GMT" {
		return 0, false
	}
	month := strings.Index(months, header[8:11])
	if month < 0 || month%3 != 0 {
		return 0, false
	}
	two := string([]byte{'0' + byte((month/3+1)/10), '0' + byte((month/3+1)%10)})
	at, err := abi.ParseTime(header[12:16] + "-" + two + "-" + header[5:7] + "T" + header[17:25] + "Z")
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now).Milliseconds(), 0), day), true
}
