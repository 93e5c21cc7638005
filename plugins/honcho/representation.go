package main

import (
	"strings"
	"time"
)

// fact is one item of a representation's text: text[start:end]. at is its time, RFC 3339, "" if the text does not say.
type fact struct {
	section    string
	start, end int
	at         string
}

// parseRepresentation finds the items in the markdown that Honcho makes of a collection: sections under "## ", in
// explicit and deductive ones an item begins with "[2026-03-01 09:00:00]" (UTC, the latest message of the batch that
// gave it), in the others with "**". Lines that begin no item belong to the one before. Whatever the text is, items are
// in order, do not overlap and hold every line that is neither blank nor a heading.
//
// Source: Honcho src/utils/representation.py; recorded as representation_all_levels.
func parseRepresentation(text string) (facts []fact) {
	section, open := "", false // open: following lines may belong to the current item
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		start, end := at, at+len(line)
		at = end + 1
		if strings.TrimSpace(line) == "" {
			continue
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section, open = sectionName(heading), false
			continue
		}
		when := stamp(line)
		item := strings.TrimPrefix(line, " ")
		if when == "" && open && !strings.HasPrefix(item, "**") && !strings.HasPrefix(line, "- ") {
			facts[len(facts)-1].end = end
			continue
		}
		facts, open = append(facts, fact{section, start, end, when}), true
	}
	return facts
}

// sectionName is the level of "Explicit Observations" and the like: the first word, in small letters.
func sectionName(heading string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
	return strings.ToLower(name)
}

// stamp returns the time of "[2026-03-01 09:00:00]" at the start of a line as RFC 3339; "" if there is none.
func stamp(line string) string {
	const layout = "[2006-01-02 15:04:05]"
	at, err := time.Parse(layout, line[:min(len(line), len(layout))])
	if err != nil {
		return ""
	}
	return at.Format(time.RFC3339)
}
