package cli

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
)

// Column is one of several texts that are printed side by side.
type Column struct {
	Head  string
	Lines []string
	Foot  string
}

// Columns prints texts side by side if the width allows, and otherwise one below the other.
func (o *Output) Columns(list []Column) {
	const gap, atLeast = 2, 28
	width := (o.Width - gap*(len(list)-1)) / len(list)
	if width < atLeast {
		for _, c := range list {
			o.Print("\n  %s (%s)\n", c.Head, c.Foot)
			for _, line := range c.Lines {
				for _, part := range wrap(line, max(o.Width-4, atLeast)) {
					o.Print("    %s\n", part)
				}
			}
		}
		return
	}
	rule := strings.Repeat(o.Mark("─", "-"), width)
	blocks := make([][]string, len(list))
	height := 0
	for i, c := range list {
		blocks[i] = []string{c.Head, rule}
		for _, line := range c.Lines {
			blocks[i] = append(blocks[i], wrap(line, width)...)
		}
		height = max(height, len(blocks[i]))
	}
	o.Print("\n")
	for row := range height + 1 {
		var line strings.Builder
		for i, block := range blocks {
			text := ""
			switch {
			case row == height:
				text = fmt.Sprintf("(%s)", list[i].Foot)
			case row < len(block):
				text = block[row]
			}
			line.WriteString(pad(text, width+gap))
		}
		o.Print("%s\n", strings.TrimRight(line.String(), " "))
	}
}

// Paragraph prints text in lines of the terminal's width, broken between words.
func (o *Output) Paragraph(text string) {
	for _, part := range wrap(text, o.Width) {
		o.Print("%s\n", part)
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

// wrap breaks a line into parts of at most width columns, between words if it can.
func wrap(text string, width int) []string {
	var parts []string
	line, used := "", 0
	flush := func() {
		parts = append(parts, line)
		line, used = "", 0
	}
	for _, word := range strings.Fields(text) {
		n := uniseg.StringWidth(word)
		if line != "" && used+1+n > width {
			flush()
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		for n > width-used { // a word longer than a line, or text without blanks
			head, rest := splitAt(word, width-used)
			line += head
			flush()
			word, n = rest, uniseg.StringWidth(rest)
		}
		line, used = line+word, used+n
	}
	if line != "" || len(parts) == 0 {
		flush()
	}
	return parts
}

// splitAt cuts a word after at most width columns, and after one character at least.
func splitAt(word string, width int) (head, rest string) {
	g := uniseg.NewGraphemes(word)
	used, end := 0, 0
	for g.Next() {
		n := g.Width()
		if end > 0 && used+n > width {
			break
		}
		used += n
		_, end = g.Positions()
	}
	return word[:end], word[end:]
}

// Excerpt returns the part of a context that mentions one of words: the last lines that do, each shortened around the
// word, and the number of lines left out.
func Excerpt(context string, words []string) []string {
	const most, longest = 4, 150
	if context == "" {
		return []string{"(nothing)"}
	}
	var hits []string
	others := 0
	for _, line := range strings.Split(Printable(context), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "<memory-context") || line == "</memory-context>" {
			continue
		}
		at := -1
		for _, word := range words {
			if i := strings.Index(strings.ToLower(line), strings.ToLower(word)); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			others++
			continue
		}
		hits = append(hits, around(line, at, longest))
	}
	if more := len(hits) - most; more > 0 {
		others += more
		hits = hits[more:]
	}
	if others > 0 {
		hits = append(hits, fmt.Sprintf("... and %s", Count(others, "other line")))
	}
	return hits
}

// around shortens a line to about n bytes around a position, at word boundaries.
func around(line string, at, n int) string {
	if len(line) <= n {
		return line
	}
	from := max(0, min(at-n/3, len(line)-n))
	to := min(len(line), from+n)
	if from > 0 {
		if i := strings.IndexByte(line[from:at], ' '); i >= 0 {
			from += i + 1
		} else {
			from = at
		}
	}
	if to < len(line) {
		if i := strings.LastIndexByte(line[:to], ' '); i > at {
			to = i
		}
	}
	text := strings.ToValidUTF8(line[from:to], "")
	if from > 0 {
		text = "... " + text
	}
	if to < len(line) {
		text += " ..."
	}
	return text
}
