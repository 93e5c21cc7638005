package sdk

import (
	"strings"

	"github.com/memhost/memhost/abi"
)

// cutMark ends a block of which only the beginning fitted.
const cutMark = "\n[cut to fit the budget]"

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
}

// ContextOf is the element for a call: the configured provider's name and kind, and the call's scope.
func ContextOf(config *abi.GuestConfig, scope abi.MemoryScope) Context {
	return Context{Backend: config.Provider, Scope: scope, Kind: config.Kind}
}

// Wrap puts the element around body, which must be made of escaped text. An empty body gives the empty string, not an empty element.
func (x Context) Wrap(body string) string {
	if body == "" {
		return ""
	}
	control := ""
	if x.Kind == abi.KindControl {
		control = ` condition_kind="control"`
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return "<" + abi.ContextTag + ` backend="` + EscapeAttr(x.Backend) + `" scope="` + EscapeAttr(x.Scope.RunID+"/"+x.Scope.PersonaID) +
		`"` + control + ">\n" + body + "</" + abi.ContextTag + ">"
}

// EscapeText makes text unable to open or close the element: a "<", or what looks like one, that begins such a tag gets a backslash behind it.
// abi.NamesContextTag says what counts as a tag. So does one at the end that could become a tag with what follows: escaped texts may be joined.
// Other text is returned as it is.
func EscapeText(text string) string {
	var b strings.Builder
	done := 0
	for i := range len(text) {
		switch text[i] {
		case '<', 0xe2, 0xef: // the last two begin the look-alikes: quotation marks and brackets, and full-width and small forms
		default:
			continue
		}
		end := i + abi.BracketLen(text[i:])
		if end > i && abi.MayNameContextTag(text[end:]) {
			b.WriteString(text[done:end])
			b.WriteByte('\\')
			done = end
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// OneLine keeps a label, a name or an id from looking like a line of its own: what ends a line, and other control characters, become blanks.
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

// EscapeAttr makes text safe inside a double-quoted attribute. Line ends and tabs become blanks.
func EscapeAttr(text string) string {
	if !strings.ContainsAny(text, "&<>\"\n\r\t") {
		return text
	}
	var b strings.Builder
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
	return b.String()
}

// Fitted is a context that fits its budget.
type Fitted struct {
	// Text is the element, or empty.
	Text   string
	Tokens int64
	// First and End are the range of blocks kept, half open.
	First, End int
	// Truncated is true when a block was left out or cut.
	Truncated bool
	// Cut is true when of the one block kept only the beginning fitted.
	Cut bool
}

// FitNewest keeps as many of the last blocks as the budget's max_tokens and max_items allow, in order. Each block ends with a line end and is made of
// escaped text. Where not even the last one fits whole, its beginning is kept, with a mark.
//
// The text never has more tokens than max_tokens by the configured tokenizer. When all blocks fit, all are kept; otherwise one block more would have been
// too much, except that an estimator may count a longer text lower than a shorter one (bytes4, at a quarter of characters that are not ASCII).
func (x Context) FitNewest(c *Call, blocks []string, budget abi.ContextBudget) Fitted {
	return fitting{x, c, blocks, true}.fit(budget)
}

// FitFirst is FitNewest for results in order of rank: it keeps as many of the first blocks as the budget allows.
func (x Context) FitFirst(c *Call, blocks []string, budget abi.ContextBudget) Fitted {
	return fitting{x, c, blocks, false}.fit(budget)
}

// fitting looks for the largest number of blocks that fits.
type fitting struct {
	Context
	call   *Call
	blocks []string
	newest bool // the last blocks count first
}

// kept is the range of n blocks.
func (f fitting) kept(n int) (first, end int) {
	if f.newest {
		return len(f.blocks) - n, len(f.blocks)
	}
	return 0, n
}

// nth is the block that n+1 blocks have and n have not.
func (f fitting) nth(n int) string {
	if f.newest {
		return f.blocks[len(f.blocks)-1-n]
	}
	return f.blocks[n]
}

func (f fitting) try(n int) Fitted {
	text := f.text(n)
	return f.fitted(n, text, f.call.CountTokens(text))
}

func (f fitting) text(n int) string {
	first, end := f.kept(n)
	return f.Wrap(strings.Join(f.blocks[first:end], ""))
}

func (f fitting) fitted(n int, text string, tokens int64) Fitted {
	first, end := f.kept(n)
	return Fitted{Text: text, Tokens: tokens, First: first, End: end, Truncated: n < len(f.blocks)}
}

func (f fitting) fit(budget abi.ContextBudget) Fitted {
	most := len(f.blocks)
	if budget.MaxItems != nil {
		most = int(min(int64(most), max(0, *budget.MaxItems)))
	}
	best := f.try(most)
	if budget.MaxTokens == nil || best.Tokens <= *budget.MaxTokens {
		return best
	}
	limit := *budget.MaxTokens
	good, bad := 0, most // numbers of blocks that fit and that do not
	var tokens int64     // of the fitting ones
	at := f.guess(limit)
	for step := 1; bad-good > 1; step *= 2 {
		if at <= good || at >= bad {
			at = (good + bad) / 2
		}
		if next := f.try(at); next.Tokens <= limit {
			good, tokens = at, next.Tokens
			at += step
		} else {
			bad = at
			at -= step
		}
	}
	if good == 0 {
		return f.cut(limit)
	}
	// Made anew: carried around the loop the text would be held by nothing that TinyGo's collector looks at, once try is called again.
	return f.fitted(good, f.text(good), tokens)
}

// guess is how many blocks fit by the sum of their counts. Tokenizers do not add up: the count of the whole decides.
func (f fitting) guess(limit int64) int {
	sum := f.call.CountTokens(f.Wrap("\n"))
	for n := range f.blocks {
		if sum += f.call.CountTokens(f.nth(n)); sum > limit {
			return n
		}
	}
	return len(f.blocks)
}

// cut keeps the beginning of the one block that counts first, where not even that fits whole.
func (f fitting) cut(limit int64) Fitted {
	first, end := f.kept(1)
	room := limit - f.call.CountTokens(f.Wrap(cutMark+"\n"))
	for ; room > 0; room -= 1 + room/8 {
		prefix, _ := f.call.FitTokens(f.blocks[first], room)
		if prefix == "" {
			break
		}
		text := f.Wrap(prefix + cutMark)
		if tokens := f.call.CountTokens(text); tokens <= limit {
			return Fitted{Text: text, Tokens: tokens, First: first, End: end, Truncated: true, Cut: true}
		}
	}
	return Fitted{First: first, End: first, Truncated: true}
}
