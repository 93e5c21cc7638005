package main

import "unsafe"

// Texts are compared and looked through eight bytes at a time: TinyGo does both byte by byte, some thirty machine instructions each.

const (
	eachByte = 0x0101010101010101 // a byte in each of eight places
	highBit  = 0x8080808080808080 // its highest bit
)

// word is the eight bytes of text from i on, which must be there.
func word(text string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(text)), i))
}

// plain tells that text is ASCII without control characters and without "<": neither sdk.OneLine nor sdk.EscapeText would change it, nor has it lines. The last
// eight bytes may be looked at twice. It may say no of a text that is plain, when that is short.
func plain(text string) bool {
	n := len(text)
	if n < 8 {
		return n == 0
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		w := word(text, i)
		angle, del := w^('<'*eachByte), w^(0x7f*eachByte)
		// The zero-byte test of Hacker's Delight, section 6-1: with every highest bit clear a borrow only comes from a byte that is marked itself.
		if (w|(w-' '*eachByte)|(angle-eachByte)&^angle|(del-eachByte)&^del)&highBit != 0 {
			return false
		}
		if i == n-8 {
			return true
		}
	}
}

// same is a == b.
func same(a, b string) bool {
	n := len(a)
	if n != len(b) || n < 8 {
		return a == b
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		if word(a, i) != word(b, i) {
			return false
		}
		if i == n-8 {
			return true
		}
	}
}
