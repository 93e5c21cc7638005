package main

import (
	"strings"
	"unicode/utf8"
)

// specialTokens are texts that Honcho's tokenizers reject: the first two with 422 in the schema, the others with 500 in
// the embedding client, after which nothing is stored. Others, such as <|im_start|>, are harmless.
var specialTokens = []string{"<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"}

// broken is inserted after the "<" of a special token: a zero-width space.
const broken = "\u200b"

// sanitize breaks up special tokens and drops NUL characters, which Honcho itself would drop. changed reports whether
// there were any.
func sanitize(text string) (clean string, changed bool) {
	clean = strings.ReplaceAll(text, "\x00", "") // first, because dropping one may complete a token
	for _, token := range specialTokens {
		clean = strings.ReplaceAll(clean, token, "<"+broken+token[1:])
	}
	return clean, clean != text
}

// splitText splits a text into parts of at most limit characters; joined, they are the text again. It prefers to split
// after white space in the last tenth of a part. The same text always gives the same parts, because a partial write is
// completed by their numbers.
func splitText(text string, most int) []string {
	var parts []string
	for len(text) > most && utf8.RuneCountInString(text) > most {
		end, seen, blank := 0, 0, 0
		for i, r := range text {
			if seen == most {
				end = i
				break
			}
			seen++
			if (r == ' ' || r == '\n' || r == '\t') && seen > most-most/10 {
				blank = i + 1
			}
		}
		if blank > 0 {
			end = blank
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
	return append(parts, text)
}

// cutQuery sanitizes a query and keeps its first characters.
func cutQuery(query string, most int) (cut string, shortened bool) {
	query, _ = sanitize(query)
	if len(query) <= most || utf8.RuneCountInString(query) <= most {
		return query, false
	}
	seen := 0
	for i := range query {
		if seen == most {
			return query[:i], true
		}
		seen++
	}
	return query, false
}
