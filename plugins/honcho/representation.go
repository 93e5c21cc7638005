package main

import (
	"strings"

	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/sdk"
)

// fact is one item of a representation's prose: text[start:end]. at is when, RFC 3339, "" where the prose does not say.
type fact struct {
	section    string
	start, end int
	at         string
	plain      bool // one line with nothing in it, nor in its section's heading, that cannot stand in the prompt as it is
}

// parseRepresentation finds the items in the markdown that Honcho makes of a collection: sections under "## ", in explicit and deductive ones an item
// begins with "[2026-03-01 09:00:00]" (UTC, the latest message of the batch that gave it), in the others with "**". Lines that begin no item belong to the one
// before. Whatever the text is, items are in order, do not overlap and hold every line that is neither blank nor a heading.
//
// Source: Honcho src/utils/representation.py; recorded as representation_all_levels.
func parseRepresentation(text string) (facts []fact) {
	section, stamped, when := "", "", ""
	plainSection, open := true, false // open: there is an item that lines may still belong to
	for at := 0; at < len(text); {
		begin := at
		end, plain := lineEnd(text, begin)
		line := text[begin:end]
		at = end + 1
		if sdk.TrimSpace(line) == "" {
			continue
		}
		begins, now := false, ""
		switch line[0] {
		case '#':
			if heading, ok := strings.CutPrefix(line, "## "); ok {
				section, plainSection, open = sectionName(heading), plain, false
				continue
			}
		case '[':
			if stamped == "" || !strings.HasPrefix(line, stamped) { // the items of a batch all have the same
				stamped, when = stamp(line)
			}
			begins, now = stamped != "", when
		case '*', ' ', '-':
			begins = strings.HasPrefix(line, "**") || strings.HasPrefix(line, " **") || strings.HasPrefix(line, "- ")
		}
		if begins || !open {
			if facts == nil {
				facts = make([]fact, 0, 16)
			}
			facts, open = append(facts, fact{section: section, start: begin, end: end, at: now, plain: plain && plainSection}), true
			continue
		}
		last := &facts[len(facts)-1]
		last.end, last.plain = end, false
	}
	return facts
}

// lineEnd finds the end of the line that begins at i. plain tells that the line can stand in the prompt as it is.
func lineEnd(text string, i int) (end int, plain bool) {
	for plain = true; ; i++ {
		if i = words.First(text, i, '\n', '\r', '<'); i == len(text) || text[i] == '\n' {
			return i, plain
		}
		plain = false
	}
}

// sectionName is the level of "Explicit Observations" and the like: the first word, in small letters.
func sectionName(heading string) string {
	heading = sdk.TrimSpace(heading)
	name := []byte(heading[:words.First(heading, 0, ' ', ' ', ' ')])
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
	return words.View(name)
}

// stamp reads "[2026-03-01 09:00:00]" at the beginning of a line, and when that is as RFC 3339; both are empty where there is none.
func stamp(line string) (stamped, at string) {
	const shape = "[dddd-dd-dd dd:dd:dd]"
	if len(line) < len(shape) {
		return "", ""
	}
	for i := range len(shape) {
		if c := line[i]; shape[i] == 'd' && (c < '0' || c > '9') || shape[i] != 'd' && c != shape[i] {
			return "", ""
		}
	}
	return line[:len(shape)], line[1:11] + "T" + line[12:20] + "Z"
}
