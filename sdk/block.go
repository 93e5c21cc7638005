package sdk

import (
	"strings"

	"github.com/memhost/memhost/abi"
)

// Block is one memory in a context, or a part of a longer one. Its texts are plain: the context escapes them.
//
//	full      <Heading>
//	          <Before><Text><After>
//	compact   <Heading>
//	          m1 [<When>] <Who>: <Text>
//	minimal   [<When>] <Who>: <Text>
//
// In the frame compact, the label mN belongs to the Nth evidence that has Shown. A date alone has no brackets. If a
// memory has neither When nor Who, minimal writes "- <Text>". A time of day is shown without its date if the memory
// above has the same date: "m1 [2026-03-01 09:30] user: Hello." and then "m2 [09:31] user: I am back."
type Block struct {
	// Item is the memory's index in the list of evidence, from 0. Blocks of one memory must be adjacent.
	Item int
	// Heading is written above the first of a run of blocks that share it. Empty: no heading.
	Heading string
	// Text is the memory's own words, without the last line end. Use Indent so that its further lines do not look like
	// another memory.
	Text string
	// Before and After surround the text in the frame full.
	Before, After string
	// When is the memory's time in UTC, formatted by Day or Minute, and whether it still holds: "2026-03-01", "until
	// 2026-04-10, superseded". Who is its speaker or subject. The frames compact and minimal show both; empty: not
	// shown.
	When, Who string
	// Document says that Text is a line of a document. Nothing is written before it, and its label has its own line.
	Document bool

	body       string // as shown: escaped, with its line end
	start, end int    // range of Text in body
	first      bool   // position among the blocks of its item
}

// isBrief reports whether a frame shows When and Who instead of Before and After.
func isBrief(frame abi.Frame) bool { return frame == abi.FrameCompact || frame == abi.FrameMinimal }

// render sets the block's body.
func (b *Block) render(frame abi.Frame) {
	before, after := b.Before, b.After
	if isBrief(frame) {
		before, after = "", ""
		if b.first && !b.Document {
			before = b.brief(frame)
		}
	}
	plain := before + b.Text + after + "\n"
	b.body, b.start, b.end = EscapeText(plain), len(before), len(before)+len(b.Text)
	if len(b.body) > len(plain) {
		b.start, b.end = escapedAt(plain, b.body, b.start), escapedAt(plain, b.body, b.end)
	}
}

// sameDay returns how many bytes of the block's body, from its second byte on, repeat the date of the block above it:
// 11 for "2026-03-01 " in "[2026-03-01 09:31 | work] ", or 0.
func (b *Block) sameDay(above *Block, frame abi.Frame) int {
	const date, minute = len("2026-03-01"), len("2026-03-01 09:31")
	if !isBrief(frame) || !b.first || b.Document || len(b.When) < minute || !isDay(b.When) || b.When[date+3] != ':' ||
		!strings.HasPrefix(above.When, b.When[:date]) {
		return 0
	}
	return date + 1
}

// brief returns what precedes the text in the frames compact and minimal.
func (b *Block) brief(frame abi.Frame) string {
	text := ""
	switch {
	case b.When == "":
	case len(b.When) == len("2026-03-01") && isDay(b.When):
		text = b.When + " "
	default:
		text = "[" + OneLine(b.When) + "] "
	}
	if b.Who != "" {
		text += OneLine(b.Who) + ": "
	}
	if text == "" && frame == abi.FrameMinimal {
		return "- "
	}
	return text
}

// escapedAt converts a position in text to the position in its escaped form, which has only additional backslashes.
func escapedAt(text, escaped string, at int) int {
	to := 0
	for i := range at {
		for escaped[to] != text[i] {
			to++
		}
		to++
	}
	return to
}

// Indent replaces each line end in a text by a line feed and two blanks, and removes those at its end. No line can then
// look like the start of another memory, or like a heading.
func Indent(text string) string {
	text = strings.TrimRight(text, "\r\n")
	if OneLine(text) == text {
		return text
	}
	b := make([]byte, 0, len(text)+len(text)/8)
	for i := 0; i < len(text); {
		n := lineEnd(text[i:])
		if n > 0 {
			b = append(b, "\n  "...)
		} else {
			b, n = append(b, text[i]), 1
		}
		i += n
	}
	return string(b)
}

// lineEnd returns the length of the line end at the start of a text, or 0.
func lineEnd(text string) int {
	for _, end := range [...]string{"\n", "\r\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029"} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	return 0
}

// Day returns the UTC date of a time: "2026-03-01" for "2026-03-01T09:30:00+01:00". A time without a zone is taken as
// UTC. Any other text is returned as one line.
func Day(at string) string {
	if at = UTC(at); isDay(at) {
		return at[:len("2026-03-01")]
	}
	return OneLine(at)
}

// Minute is Day with the time of day, to the minute: "2026-03-01 08:30".
func Minute(at string) string {
	const date, minute = len("2026-03-01"), len("2026-03-01T09:30")
	if at = UTC(at); !isDay(at) || len(at) < minute {
		return Day(at)
	}
	return at[:date] + " " + at[date+1:minute]
}

// hasDay reports whether a text contains a date.
func hasDay(text string) bool {
	for i := range len(text) - len("2026-03-01") + 1 {
		if isDay(text[i : i+len("2026-03-01")]) {
			return true
		}
	}
	return false
}

// isDay reports whether a text begins with a date that is followed by nothing, "T" or a blank.
func isDay(at string) bool {
	const shape = "dddd-dd-dd"
	if len(at) < len(shape) || len(at) > len(shape) && at[len(shape)] != 'T' && at[len(shape)] != ' ' {
		return false
	}
	for i := range len(shape) {
		if digit := at[i] >= '0' && at[i] <= '9'; shape[i] == 'd' && !digit || shape[i] == '-' && at[i] != '-' {
			return false
		}
	}
	return true
}

// ShortIDs returns prefixes of ids that are unique for different ids and all have the same length, at least 8
// characters. If the ids are not much longer than that, it returns the whole ids.
//
//	8be2a280-1d1c-4d0a-9d3e-1f0e8e9b7c11 -> 8be2a280
func ShortIDs(ids []string) []string {
	const least, spare = 8, 4
	short := make([]string, len(ids))
	for n := least; ; n += spare {
		whole := map[string]string{}
		unique, longer := true, false
		for i, id := range ids {
			if short[i] = id; len(id) > n+spare {
				short[i], longer = id[:n], true
			}
			other, taken := whole[short[i]]
			unique = unique && (!taken || other == id)
			whole[short[i]] = id
		}
		if unique || !longer {
			return short
		}
	}
}
