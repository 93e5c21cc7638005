package sdk

import (
	"slices"

	"github.com/memhost/memhost/abi"
)

// cutMark ends a block that was cut.
const cutMark = "\n[cut to fit the budget]\n"

// Fitted is a context that fits its budget.
type Fitted struct {
	// Text is the element, or "".
	Text   string
	Tokens int64
	// FrameTokens counts the tokens of Text that are not the memories' own words.
	FrameTokens int64
	// First and End are the range of kept blocks, half open.
	First, End int
	// Truncated is true if a block was left out or cut.
	Truncated bool
	// Cut is true if only one block was kept, and only its beginning fitted.
	Cut bool

	shown []*abi.Shown // by item; nil if the item is not shown
}

// Mark sets Shown in the evidence of a result, by its rank. first is the item of rank 1: 0, or First if only kept
// blocks have evidence.
func (f Fitted) Mark(evidence []abi.Evidence, first int) {
	for i := range evidence {
		e := &evidence[i]
		e.Shown = nil
		if item := int64(first) + e.Rank - 1; item >= 0 && item < int64(len(f.shown)) {
			e.Shown = f.shown[item]
		}
	}
}

// Result returns the answer of format_context. evidence is the request's evidence; Result sets its Shown.
func (f Fitted) Result(evidence []abi.Evidence) *abi.FormatResult {
	f.Mark(evidence, 0)
	return &abi.FormatResult{FormattedContext: f.Text, TokenCount: f.Tokens, Truncated: f.Truncated, Evidence: evidence}
}

// FitNewest keeps as many of the last blocks as the budget's max_tokens and max_items allow, in order. Each block ends
// with a line end and is escaped text. If not even the last block fits, its beginning is kept and marked as cut. The
// text never has more tokens than max_tokens by the configured tokenizer.
//
// It keeps the largest number of blocks that fits. The exception is an estimator that counts a longer text lower than a
// shorter one (bytes4, at a quarter of characters that are not ASCII).
func (x Context) FitNewest(c *Call, blocks []Block, budget abi.ContextBudget) Fitted {
	return x.fit(c, blocks, budget, true)
}

// FitFirst is FitNewest for results in order of rank: it keeps as many of the first blocks as the budget allows.
func (x Context) FitFirst(c *Call, blocks []Block, budget abi.ContextBudget) Fitted {
	return x.fit(c, blocks, budget, false)
}

// CountBlock returns the token count of a single block, which is slightly more than its share of a whole context.
func (x Context) CountBlock(c *Call, b Block) int64 {
	b.first = true
	b.render(x.Frame)
	if x.Frame == abi.FrameCompact {
		b.body = "m1 " + b.body
	}
	return c.CountTokens(b.body)
}

func (x Context) fit(c *Call, blocks []Block, budget abi.ContextBudget, newest bool) Fitted {
	f := fitting{Context: x, call: c, blocks: slices.Clone(blocks), newest: newest}
	for i := range f.blocks {
		b := &f.blocks[i]
		b.first = i == 0 || b.Item != f.blocks[i-1].Item
		b.render(x.Frame)
		f.UTC = f.UTC || isBrief(x.Frame) && hasDay(b.When)
		f.items = max(f.items, b.Item+1)
	}
	return f.fit(budget)
}

// fitting finds the largest number of blocks that fits.
type fitting struct {
	Context
	call   *Call
	blocks []Block
	items  int  // maximum number of blocks, by item limits
	newest bool // keep the last blocks instead of the first
}

// keptRange returns the range of blocks if n are kept.
func (f *fitting) keptRange(n int) (first, end int) {
	if f.newest {
		return len(f.blocks) - n, len(f.blocks)
	}
	return 0, n
}

// nth returns the block that is kept with n+1 blocks but not with n.
func (f *fitting) nth(n int) *Block {
	if f.newest {
		return &f.blocks[len(f.blocks)-1-n]
	}
	return &f.blocks[n]
}

// composition is the element with some of the blocks.
type composition struct {
	text  string
	shown []*abi.Shown // by item
	order []int        // tokens of the items in text
}

// compose composes n blocks.
func (f *fitting) compose(n int) composition {
	if n == 0 {
		return composition{}
	}
	first, end := f.keptRange(n)
	kept, size := f.blocks[first:end], 256 // the tags
	if f.Arrange != nil {
		kept = f.Arrange(slices.Clone(kept))
	}
	for i := range kept {
		size += len(kept[i].body) + len(kept[i].Heading) + len("m1000 ")
	}
	c := composition{shown: make([]*abi.Shown, f.items), order: make([]int, 0, n)}
	labels, heading, above := f.labels(kept), "", new(Block)
	b := append(make([]byte, 0, size), f.openTag()...)
	for i := range kept {
		k := &kept[i]
		left := k.sameDay(above, f.Frame)
		above = k
		if k.Heading != heading && f.Frame != abi.FrameMinimal {
			if heading = k.Heading; heading != "" {
				b = append(append(b, EscapeText(heading)...), '\n')
			}
		}
		if k.first && labels != nil {
			b = append(append(b, 'm'), Itoa(labels[k.Item])...)
			if k.Document {
				b = append(b, '\n')
			} else {
				b = append(b, ' ')
			}
		}
		if c.shown[k.Item] == nil {
			c.shown[k.Item] = &abi.Shown{Start: int64(len(b) + k.start - left), Whole: k.Item != f.split(n)}
			c.order = append(c.order, k.Item)
		}
		c.shown[k.Item].End = int64(len(b) + k.end - left)
		if left > 0 {
			b = append(b, '[')
			b = append(b, k.body[1+left:]...)
		} else {
			b = append(b, k.body...)
		}
	}
	c.text = string(append(b, contextEnd...))
	return c
}

// labels returns the numbers of the items' labels, or nil if the frame has none.
func (f *fitting) labels(kept []Block) []int {
	if f.Frame != abi.FrameCompact {
		return nil
	}
	labels, count := make([]int, f.items), 0
	for i := range kept {
		labels[kept[i].Item] = 1
	}
	for i, has := range labels {
		count += has
		labels[i] = count
	}
	return labels
}

// split returns the item of which n blocks include only a part, or -1.
func (f *fitting) split(n int) int {
	if n > 0 && n < len(f.blocks) && f.nth(n).Item == f.nth(n-1).Item {
		return f.nth(n).Item
	}
	return -1
}

// result returns the context of n blocks, given its text and token count.
func (f *fitting) result(n int, c composition, tokens int64) Fitted {
	first, end := f.keptRange(n)
	return Fitted{Text: c.text, Tokens: tokens, FrameTokens: f.frameTokens(c, tokens), First: first, End: end,
		Truncated: n < len(f.blocks), shown: c.shown}
}

// frameTokens counts the tokens that are not the items' own words, given the total. An estimator may count a part
// higher than the whole.
func (f *fitting) frameTokens(c composition, tokens int64) int64 {
	var frame []byte
	at := int64(0)
	for _, item := range c.order {
		frame = append(frame, c.text[at:c.shown[item].Start]...)
		at = c.shown[item].End
	}
	return min(tokens, f.call.CountTokens(string(append(frame, c.text[at:]...))))
}

func (f *fitting) fit(budget abi.ContextBudget) Fitted {
	most := len(f.blocks)
	if budget.MaxItems != nil {
		most = int(min(int64(most), max(0, *budget.MaxItems)))
	}
	all := f.compose(most)
	tokens := f.call.CountTokens(all.text)
	if budget.MaxTokens == nil || tokens <= *budget.MaxTokens {
		return f.result(most, all, tokens)
	}
	limit := *budget.MaxTokens
	good, bad := 0, most // largest number of blocks known to fit, and smallest known not to
	at := f.guess(limit)
	for step := 1; bad-good > 1; step *= 2 {
		if at <= good || at >= bad {
			at = (good + bad) / 2
		}
		if next := f.call.CountTokens(f.compose(at).text); next <= limit {
			good, tokens = at, next
			at += step
		} else {
			bad = at
			at -= step
		}
	}
	if good == 0 {
		return f.cut(limit)
	}
	return f.result(good, f.compose(good), tokens)
}

// guess estimates how many blocks fit from the sum of their counts. Token counts do not add up exactly, so the count of
// the whole text decides.
func (f *fitting) guess(limit int64) int {
	sum := f.call.CountTokens(f.Wrap("\n"))
	for n := range f.blocks {
		if sum += f.call.CountTokens(f.nth(n).body); sum > limit {
			return n
		}
	}
	return len(f.blocks)
}

// cut keeps the beginning of the most important block if the whole block does not fit. The beginning must include some
// of the memory's own words.
func (f *fitting) cut(limit int64) Fitted {
	first, end := f.keptRange(1)
	c := f.compose(1)
	shown, open := c.shown[f.nth(0).Item], len(f.openTag())
	body, endOfText := c.text[open:len(c.text)-len(contextEnd)], shown.End
	room := limit - f.call.CountTokens(f.Wrap(cutMark))
	for ; room > 0; room -= 1 + room/8 {
		prefix, _ := f.call.FitTokens(body, room)
		shown.End, shown.Whole = min(endOfText, int64(open+len(prefix))), false
		if shown.End <= shown.Start {
			break
		}
		c.text = f.Wrap(prefix + cutMark)
		if tokens := f.call.CountTokens(c.text); tokens <= limit {
			return Fitted{Text: c.text, Tokens: tokens, FrameTokens: f.frameTokens(c, tokens), First: first, End: end,
				Truncated: true, Cut: true, shown: c.shown}
		}
	}
	return Fitted{First: first, End: first, Truncated: true}
}
