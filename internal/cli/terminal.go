package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// isControl reports whether a character could change how a terminal shows other text: control characters except line
// ends and tabs, and the embeddings, overrides and isolates of bidirectional text. Joiners and the marks LRM and RLM
// are allowed, because ordinary text uses them.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Printable makes text from outside harmless for a terminal: control characters become \u{1b} and the like.
func Printable(s string) string { return escaped(s, `\u{%x}`) }

// escapedJSON returns JSON with the same value that is harmless for a terminal. Control characters occur in strings
// only.
func escapedJSON(text string) string { return escaped(text, `\u%04x`) }

// escaped writes control characters in a form.
func escaped(s, form string) string {
	var b strings.Builder
	done := 0
	for i, r := range s {
		if isControl(r) {
			b.WriteString(s[done:i])
			fmt.Fprintf(&b, form, r)
			done = i + utf8.RuneLen(r)
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// terminal writes text to a terminal and makes it harmless: control characters are escaped, and bytes that are not
// UTF-8 become U+FFFD. In JSON output the escapes are JSON's.
type terminal struct {
	w    io.Writer
	json *bool

	mu sync.Mutex
	// rest is the start of a character whose other bytes have not been written yet.
	rest []byte
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := append(t.rest, p...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				end = start
			}
			break
		}
	}
	t.rest = append([]byte(nil), text[end:]...)
	escape := Printable
	if *t.json {
		escape = escapedJSON
	}
	if _, err := io.WriteString(t.w, escape(strings.ToValidUTF8(string(text[:end]), "\ufffd"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
