package main

import "strings"

// fact is one item of a representation's prose: text[start:end]. at is when, RFC 3339, "" where the prose does not say.
type fact struct {
	section    string
	start, end int
	at         string
}

// parseRepresentation finds the items in the markdown that Honcho makes of a collection: sections under "## ", in explicit and deductive ones an item
// begins with "[2026-03-01 09:00:00]" (UTC, the latest message of the batch that gave it), in the others with "**". Lines that begin no item belong to the one
// before. Whatever the text is, items are in order, do not overlap and hold every line that is neither blank nor a heading.
//
// Source: Honcho src/utils/representation.py; recorded as representation_all_levels.
func parseRepresentation(text string) (facts []fact) {
	section := ""
	open := false // an item that lines may still belong to
	for at := 0; at < len(text); {
		end := at + strings.IndexByte(text[at:]+"\n", '\n')
		line := text[at:end]
		begin := at
		at = end + 1
		if strings.TrimSpace(line) == "" {
			continue
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section, open = sectionName(heading), false
			continue
		}
		when := stamp(line)
		begins := when != "" || strings.HasPrefix(line, "**") || strings.HasPrefix(line, " **") || strings.HasPrefix(line, "- ")
		if begins || !open {
			facts, open = append(facts, fact{section: section, start: begin, at: when}), true
		}
		facts[len(facts)-1].end = end
	}
	return facts
}

// sectionName is the level of "Explicit Observations" and the like: the first word, in small letters.
func sectionName(heading string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
	return strings.ToLower(word)
}

// stamp reads "[2026-03-01 09:00:00]" at the beginning of a line, as RFC 3339.
func stamp(line string) string {
	const shape = "[dddd-dd-dd dd:dd:dd]"
	if len(line) < len(shape) {
		return ""
	}
	for i := range len(shape) {
		if c := line[i]; shape[i] == 'd' && (c < '0' || c > '9') || shape[i] != 'd' && c != shape[i] {
			return ""
		}
	}
	return line[1:11] + "T" + line[12:20] + "Z"
}
