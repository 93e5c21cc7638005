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
// It looks at eight bytes at a time: strings are most of what modules read, and a loop over bytes is several times slower in WebAssembly.
func special(text []byte, i int) int {
	for ; i+8 <= len(text); i += 8 {
		w := *word(text, i)
		if marks := specials(w) &^ w & high; marks != 0 { // the lowest mark is right; one above it may be a borrow
			if first := i + bits.TrailingZeros64(marks)/8; isSpecial(text[first]) {
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

// word is the eight bytes at i, and half the four.
func word(text []byte, i int) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(text)), i))
}

func half(text []byte, i int) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(text)), i))
}

// specials has the highest bit of a byte set where w has a special one, or one that is not ASCII (the zero-byte test of Hacker's Delight, section 6-1; taking the bits
// of w away instead of those of each difference says the same, since what is subtracted and what it is compared with are ASCII).
func specials(w uint64) uint64 {
	return (w - ' '*each) | ((w ^ '"'*each) - each) | ((w ^ '\\'*each) - each)
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// ValidUTF8 is utf8.Valid, faster on text that is ASCII: there TinyGo's calls a function for every word.
func ValidUTF8(text []byte) bool {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if *word(text, i)&high != 0 {
			return utf8.Valid(text[i:])
		}
	}
	return utf8.Valid(text[i:])
}

// copyPlain copies text to the beginning of to, which is at least as long, if it can stand in JSON as it is and is ASCII. Otherwise it says false, and what to
// holds means nothing. It takes some bytes twice instead of one by one.
func copyPlain(to, text []byte) bool {
	n := len(text)
	to = to[:n]
	if n < 8 {
		if n >= 4 {
			first, last := *half(text, 0), *half(text, n-4)
			if w := uint64(last)<<32 | uint64(first); (specials(w)|w)&high != 0 {
				return false
			}
			*half(to, 0), *half(to, n-4) = first, last
			return true
		}
		for i, c := range text {
			if c >= utf8.RuneSelf || isSpecial(c) {
				return false
			}
			to[i] = c
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		w := *word(text, i)
		if (specials(w)|w)&high != 0 {
			return false
		}
		*word(to, i) = w
		if i == n-8 {
			return true
		}
	}
}
