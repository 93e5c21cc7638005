package jsontext

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

const (
	each = 0x0101010101010101 // a byte in each of eight places
	high = 0x8080808080808080 // its highest bit
)

// special finds the first byte from i on that a JSON string cannot hold as it is: a quote, a backslash, a control character. It returns the length of text
// where there is none.
//
// It looks at eight bytes at a time (the zero-byte test of Hacker's Delight, section 6-1): strings are most of what modules read, and a loop over bytes is
// several times slower in WebAssembly.
func special(text []byte, i int) int {
	for ; i+8 <= len(text); i += 8 {
		w := *(*uint64)(unsafe.Pointer(&text[i]))
		quote, slash := w^('"'*each), w^('\\'*each)
		// The lowest mark is right; one above it may be a borrow.
		if marks := ((w - ' '*each) &^ w) | ((quote - each) &^ quote) | ((slash - each) &^ slash); marks&high != 0 {
			if first := i + bits.TrailingZeros64(marks&high)/8; isSpecial(text[first]) {
				return first
			}
			break // the machine stores the highest byte first: look at each
		}
	}
	for ; i < len(text); i++ {
		if isSpecial(text[i]) {
			return i
		}
	}
	return i
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// ValidUTF8 is utf8.Valid, faster on text that is ASCII: there TinyGo's calls a function for every word.
func ValidUTF8(text []byte) bool {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if *(*uint64)(unsafe.Pointer(&text[i]))&high != 0 {
			return utf8.Valid(text[i:])
		}
	}
	return utf8.Valid(text[i:])
}

// plain tells that a string can stand in JSON as it is and is ASCII. It looks at some bytes twice instead of one by one.
func plain(text []byte) bool {
	n := len(text)
	if n < 8 {
		for _, c := range text {
			if c >= utf8.RuneSelf || isSpecial(c) {
				return false
			}
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		w := *(*uint64)(unsafe.Pointer(&text[i]))
		quote, slash := w^('"'*each), w^('\\'*each)
		if (w|((w-' '*each)&^w)|((quote-each)&^quote)|((slash-each)&^slash))&high != 0 {
			return false
		}
		if i == n-8 {
			return true
		}
	}
}
