package sdk

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// Context is the element in which an agent gets its memory:
//
//	<memory-context backend="full_history" scope="run/persona" condition_kind="control">
//	...
//	</memory-context>
type Context struct {
	Backend string
	Scope   abi.MemoryScope
	// Kind is written out for controls only.
	Kind abi.ConditionKind
	// Frame is how much the context has beside the memories' own words. Empty means abi.FrameFull.
	Frame abi.Frame
	// UTC says that the text has times, which are in UTC: the element's attribute times tells the reader. A block's
	// When brings it without being asked.
	UTC bool
	// Arrange puts the blocks that fit into the order in which they are shown, and may give them other headings. It
	// gets a copy. Nil: they are shown as they come.
	Arrange func(blocks []Block) []Block
}

// ContextOf is the element for a call: the configured provider's name, kind and frame, and the call's scope.
func ContextOf(config *abi.GuestConfig, scope abi.MemoryScope) Context {
	return Context{Backend: config.Provider, Scope: scope, Kind: config.Kind, Frame: config.Frame}
}

// Wrap puts the element around body, which must be made of escaped text. An empty body gives the empty string and not
// an empty element.
func (x Context) Wrap(body string) string {
	if body == "" {
		return ""
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return x.opened() + body + contextEnd
}

// contextEnd is the element's closing tag.
const contextEnd = "</" + abi.ContextTag + ">"

// opened is the element's opening tag with its line end.
func (x Context) opened() string {
	control := ""
	if x.Kind == abi.KindControl {
		control = ` condition_kind="control"`
	}
	times := ""
	if x.UTC {
		times = ` times="UTC"`
	}
	return "<" + abi.ContextTag + ` backend="` + EscapeAttr(x.Backend) + `" scope="` +
		EscapeAttr(x.Scope.RunID+"/"+x.Scope.PersonaID) + `"` + control + times + ">\n"
}

// EscapeText makes text unable to open or close the element: a backslash is put behind each "<", or character that
// looks like it, that begins such a tag. abi.NextContextTag says what counts as a tag. One at the end that could become
// a tag with the text that follows is escaped too, so escaped texts may be joined. Other text is returned unchanged.
func EscapeText(text string) string {
	end := abi.NextContextTag(text, true)
	if end < 0 {
		return text
	}
	var b strings.Builder
	for ; end >= 0; end = abi.NextContextTag(text, true) {
		b.WriteString(text[:end])
		b.WriteByte('\\')
		text = text[end:]
	}
	b.WriteString(text)
	return b.String()
}

// Named reports whether a message says who spoke. A name of blanks is none.
func Named(m *abi.Message) bool { return strings.TrimSpace(m.Name) != "" }

// OneLine replaces line ends and other control characters by blanks, so that a label, a name or an id does not look
// like a line of its own.
func OneLine(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ { // in a guest Map is a call for every character
		plain = s[i] >= ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// EscapeAttr makes text safe inside a double-quoted attribute. Line ends and tabs become blanks, and a character that
// looks like "<" and begins a tag of the element becomes a character reference.
func EscapeAttr(text string) string {
	var b strings.Builder
	for end := abi.NextContextTag(text, false); end >= 0; end = abi.NextContextTag(text, false) {
		bracket, size := utf8.DecodeLastRuneInString(text[:end])
		escapeAttr(&b, text[:end-size])
		if bracket == '<' {
			b.WriteString("&lt;")
		} else {
			b.WriteString("&#" + Itoa(int(bracket)) + ";")
		}
		text = text[end:]
	}
	escapeAttr(&b, text)
	return b.String()
}

// escapeAttr writes text without regard to tags of the element.
func escapeAttr(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '"':
			b.WriteString("&quot;")
		case '\n', '\r', '\t':
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
}
