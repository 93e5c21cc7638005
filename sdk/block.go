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
// The label mN of the frame compact names the Nth evidence that has Shown. A date alone has no brackets. Where a memory
// has neither When nor Who, minimal writes "- <Text>". A time of day goes without its date below a memory of the same
// date: "m1 [2026-03-01 09:30] user: Hello." and then "m2 [09:31] user: I am back."
type Block struct {
	// Item is the memory's place in the list of evidence, from 0. Blocks of one memory follow one another.
	Item int
	// Heading is written above the first of the blocks in a row that have it. Empty: none.
	Heading string
	// Text is the memory's own words, without the last line end. Indent keeps its further lines from looking like
	// another memory.
	Text string
	// Before and After are around it in the frame full.
	Before, After string
	// When is the memory's time in UTC, as Day and Minute write it, and whether it still holds: "2026-03-01", "until
	// 2026-04-10, superseded". Who is its speaker or subject. Both are for the frames compact and minimal; empty: none.
	When, Who string
	// Document: Text is a line of a document. Nothing is put before it; its label has a line of its own.
	Document bool

	body       string // as it is shown, escaped, with its line end
	start, end int    // of Text in body
	first      bool   // of its item's blocks
}

// isBrief reports whether a frame shows When and Who instead of Before and After.
func isBrief(frame abi.Frame) bool { return frame == abi.FrameCompact || frame == abi.FrameMinimal }

// render makes the block's body.
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

// sameDay is the number of bytes of the block's body that repeat the date of the block above it, from its second byte
// on: 11, "2026-03-01 " of "[2026-03-01 09:31 | work] ", or 0.
func (b *Block) sameDay(above *Block, frame abi.Frame) int {
	const date, minute = len("2026-03-01"), len("2026-03-01 09:31")
	if !isBrief(frame) || !b.first || b.Document || len(b.When) < minute || !isDay(b.When) || b.When[date+3] != ':' ||
		!strings.HasPrefix(above.When, b.When[:date]) {
		return 0
	}
	return date + 1
}

// brief is what stands before the text in the frames compact and minimal.
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

// escapedAt is where the byte at a place of text is in its escaped form, which has only backslashes more.
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

// Indent makes every line end of a text a "\n" with two blanks behind it, those at its end excepted, which go: no line
// of it can look like the beginning of another memory, or like a heading.
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

// lineEnd is the length of the line end with which a text begins, 0 if there is none.
func lineEnd(text string) int {
	for _, end := range [...]string{"\n", "\r\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029"} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	return 0
}

// Day is the date in UTC of a time such as RFC 3339: "2026-03-01" of "2026-03-01T09:30:00+01:00". A time without a zone
// is taken as it is. Another text is returned as one line.
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

// isDay reports whether a text begins with a date, followed by nothing, "T" or a blank.
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

// ShortIDs are prefixes of ids, all of one length, of which no two are the same unless the ids are: at least 8
// characters, and whole ids where they are not much longer.
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
