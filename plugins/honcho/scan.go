package main

import (
	"math/bits"
	"strings"
)

// Texts are looked through eight bytes at a time (the zero-byte test of Hacker's Delight, section 6-1): in WebAssembly a loop over bytes is several times slower.

const (
	each = 0x0101010101010101 // a byte in each of eight places
	high = 0x8080808080808080 // its highest bit
)

// eight are the first eight bytes of a text, the first in the lowest place.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// special finds the first byte from i on that keeps a text from standing in the prompt as it is: a line end, or a "<". It returns the length of text where there
// is none.
//
//go:noinline
func special(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		w := eight(text[i:])
		newline, carriage, less := w^'\n'*each, w^'\r'*each, w^'<'*each
		// The lowest mark is right; one above it may be a borrow.
		if marks := ((newline - each) &^ newline) | ((carriage - each) &^ carriage) | ((less - each) &^ less); marks&high != 0 {
			return i + bits.TrailingZeros64(marks&high)/8
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c == '\n' || c == '\r' || c == '<' {
			return i
		}
	}
	return i
}

// lineEnd finds the end of the line that begins at i. plain tells that the line holds nothing special.
func lineEnd(text string, i int) (end int, plain bool) {
	for plain = true; ; i++ {
		if i = special(text, i); i == len(text) || text[i] == '\n' {
			return i, plain
		}
		plain = false
	}
}

// same compares two texts.
func same(a, b string) bool {
	if len(a) != len(b) || len(a) < 8 {
		return a == b
	}
	for i := 0; ; i += 8 {
		i = min(i, len(a)-8)
		if eight(a[i:]) != eight(b[i:]) {
			return false
		}
		if i == len(a)-8 {
			return true
		}
	}
}

// trimmed is strings.TrimSpace, which is left out where both ends are certainly no space.
func trimmed(text string) string {
	if n := len(text); n > 0 && isGraphic(text[0]) && isGraphic(text[n-1]) {
		return text
	}
	return strings.TrimSpace(text)
}

func isGraphic(c byte) bool { return c > ' ' && c < 0x7f }
