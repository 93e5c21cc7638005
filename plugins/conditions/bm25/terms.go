package main

import (
	"strings"
	"unicode"

	"github.com/memhost/memhost/sdk"
)

// longestTerm is the maximum length of a term in a key, in bytes. Longer terms are hashed.
const longestTerm = 400

// terms are a text's words in lower case, in order and as often as they occur. A word is a maximal run of Unicode
// letters or digits; each character of Han, Hiragana or Katakana is a word of its own: "Tea, 2 cups 喝茶" has the terms
// tea, 2, cups, 喝, 茶.
func terms(text string) []string {
	var list []string
	begin := -1 // start of the current run
	end := func(at int) {
		if begin >= 0 {
			list = append(list, termOf(text[begin:at]))
		}
		begin = -1
	}
	for i, r := range text {
		switch {
		case r < 0x80 && isASCIIWord(byte(r)) || r >= 0x80 && !isIdeograph(r) &&
			(unicode.IsLetter(r) || unicode.IsDigit(r)):
			if begin < 0 {
				begin = i
			}
		case isIdeograph(r):
			end(i)
			list = append(list, string(r))
		default:
			end(i)
		}
	}
	end(len(text))
	return list
}

func isASCIIWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isIdeograph reports whether a character is a word of its own. None is below U+2E80.
func isIdeograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// termOf returns a run in lower case, or its digest if it is too long for a key.
func termOf(run string) string {
	term := strings.ToLower(run)
	if len(term) > longestTerm {
		return "#" + sdk.Digest256(term)
	}
	return term
}

// count returns how often each term occurs.
func count(list []string) map[string]int64 {
	counts := make(map[string]int64, len(list))
	for _, term := range list {
		counts[term]++
	}
	return counts
}
