package sdk

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// Context describes the element in which an agent gets its memory:
//
//	<memory-context backend="full_history" scope="run/persona" condition_kind="control">
//	...
//	</memory-context>
type Context struct {
	Backend string
	Scope   abi.MemoryScope
	// Kind is shown for controls only.
	Kind abi.ConditionKind
	// Frame says how much the context has in addition to the memories' own words. Empty means abi.FrameFull.
	Frame abi.Frame
	// UTC says that the text contains times, which are in UTC; the element then says so in its attribute times. It is
	// implied if a block has a When.
	UTC bool
	// Arrange puts the blocks that fit into their final order, and may change their headings. It gets a copy. Nil keeps
	// the order.
	Arrange func(blocks []Block) []Block
}

// ContextOf returns the element for a call: the configured provider's name, kind and frame, and the call's scope.
func ContextOf(config *abi.GuestConfig, scope abi.MemoryScope) Context {
	return Context{Backend: config.Provider, Scope: scope, Kind: config.Kind, Frame: config.Frame}
}

// Wrap puts the element around body, which must be escaped text. For an empty body it returns "", not an empty element.
func (x Context) Wrap(body string) string {
	if body == "" {
		return ""
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return x.openTag() + body + contextEnd
}

// contextEnd is the element's closing tag.
const contextEnd = "</" + abi.ContextTag + ">"

// openTag returns the element's opening tag with its line end.
func (x Context) openTag() string {
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

// EscapeText escapes text so that it cannot open or close the element: it puts a backslash after each "<", or character
// that looks like it, that begins such a tag. abi.NextContextTag defines what counts as a tag. A "<" near the end that
// the following text could complete to a tag is escaped too, so escaped texts may be joined. Other text is returned
// unchanged.
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

// Named reports whether a message says who spoke. A blank name does not count.
func Named(m *abi.Message) bool { return strings.TrimSpace(m.Name) != "" }

// OneLine replaces line ends and other control characters by blanks, so that a label, a name or an id cannot start a
// new line.
func OneLine(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ { // in a guest, strings.Map would cost a call per character
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

// EscapeAttr escapes text for a double-quoted attribute. Line ends and tabs become blanks, and a character that looks
// like "<" and begins a tag of the element becomes a character reference.
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

// escapeAttr escapes text for an attribute, but ignores tags of the element.
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
