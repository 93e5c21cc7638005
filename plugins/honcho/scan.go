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

// find finds the first byte from i on that is one of three. It returns the length of text where there is none.
//
//go:noinline
func find(text string, i int, a, b, c byte) int {
	for ; i+8 <= len(text); i += 8 {
		w := eight(text[i:])
		x, y, z := w^uint64(a)*each, w^uint64(b)*each, w^uint64(c)*each
		// The lowest mark is right; one above it may be a borrow.
		if marks := ((x - each) &^ x) | ((y - each) &^ y) | ((z - each) &^ z); marks&high != 0 {
			return i + bits.TrailingZeros64(marks&high)/8
		}
	}
	for ; i < len(text); i++ {
		if x := text[i]; x == a || x == b || x == c {
			return i
		}
	}
	return i
}

// lineEnd finds the end of the line that begins at i. plain tells that the line can stand in the prompt as it is.
func lineEnd(text string, i int) (end int, plain bool) {
	for plain = true; ; i++ {
		if i = find(text, i, '\n', '\r', '<'); i == len(text) || text[i] == '\n' {
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

// unspaced tells that a text is ASCII and holds neither blanks nor control characters, except perhaps DEL.
func unspaced(text string) bool {
	n := len(text)
	if n < 8 {
		for i := range n {
			if c := text[i]; c <= ' ' || c >= 0x80 {
				return false
			}
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		if w := eight(text[i:]); (w|((w-'!'*each)&^w))&high != 0 {
			return false
		}
		if i == n-8 {
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
