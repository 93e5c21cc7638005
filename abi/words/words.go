// Package words looks at eight bytes of a text at a time, and at bytes as a text without a copy. In WebAssembly a loop over bytes is several times slower: each byte
// costs a check of its place, a load, a comparison and a jump, and what modules read and write are texts.
//
// The tests of eight bytes at once come from the zero-byte test of Hacker's Delight, section 6-1.
package words

import (
	"math/bits"
	"unsafe"
)

// What a test of eight bytes calculates with.
const (
	Each = 0x0101010101010101 // times a byte: the byte in each of eight places
	High = 0x8080808080808080 // the highest bit of each
)

// At is the eight bytes of text from i on, the first in the lowest place. They must be there: nobody checks it.
func At(text string, i int) uint64 {
	return ordered(*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(text)), i)))
}

// HalfAt is At for four bytes.
func HalfAt(text string, i int) uint32 {
	half := *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.StringData(text)), i))
	if bigEndian {
		half = bits.ReverseBytes32(half)
	}
	return half
}

// Put writes the eight bytes that At read, from i on. There must be room: nobody checks it.
func Put(to []byte, i int, word uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(to)), i)) = ordered(word)
}

// PutHalf is Put for four bytes.
func PutHalf(to []byte, i int, half uint32) {
	if bigEndian {
		half = bits.ReverseBytes32(half)
	}
	*(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(to)), i)) = half
}

// ordered is a word between the machine's order of bytes and ours.
func ordered(word uint64) uint64 {
	if bigEndian {
		return bits.ReverseBytes64(word)
	}
	return word
}

// Below is 0 where none of the eight bytes is less than c, which is at most 0x80. Otherwise the lowest bit that is set is the highest of the first such byte; a bit
// above it may come from a borrow. The same holds for Equal, and for several of them joined by or.
func Below(word uint64, c byte) uint64 { return (word - uint64(c)*Each) &^ word & High }

// Equal is Below for bytes that are c.
func Equal(word uint64, c byte) uint64 { return Below(word^uint64(c)*Each, 1) }

// First finds the first byte from i on that is one of three. It returns the length of text where there is none.
//
//go:noinline
func First(text string, i int, a, b, c byte) int {
	for ; i+8 <= len(text); i += 8 {
		w := At(text, i)
		if marks := Equal(w, a) | Equal(w, b) | Equal(w, c); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(text); i++ {
		if x := text[i]; x == a || x == b || x == c {
			return i
		}
	}
	return i
}

// Plain tells that text is ASCII without control characters (DEL is one) and without "<". It can stand in a line of a context as it is: neither sdk.OneLine nor
// sdk.EscapeText would change it.
//
//go:noinline
func Plain(text string) bool {
	n := len(text)
	if n < 8 {
		for i := range n {
			if c := text[i]; c < ' ' || c >= 0x7f || c == '<' {
				return false
			}
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8) // some bytes twice instead of one by one
		if w := At(text, i); w&High|Below(w, ' ')|Equal(w, '<')|Equal(w, 0x7f) != 0 {
			return false
		}
		if i == n-8 {
			return true
		}
	}
}

// View is the bytes as a text, without a copy: good until they change.
func View(data []byte) string {
	return *(*string)(unsafe.Pointer(&data)) // a slice begins as a string does; unsafe.String would check the length
}

// Bytes is the text's bytes, without a copy: nobody may change them.
func Bytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
