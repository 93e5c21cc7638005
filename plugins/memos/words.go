package main

import "unsafe"

// Texts are compared and looked through eight bytes at a time: TinyGo does both byte by byte, some thirty machine instructions each.

const (
	eachByte = 0x0101010101010101 // a byte in each of eight places
	highBit  = 0x8080808080808080 // its highest bit
)

// word is the eight bytes at an offset of a text.
func word(text unsafe.Pointer, at int) uint64 { return *(*uint64)(unsafe.Add(text, at)) }

// plain tells that text is ASCII without control characters and without "<": neither sdk.OneLine nor sdk.EscapeText would change it, nor has it lines. The last
// eight bytes are looked at first, and some of them twice. Of a text shorter than that it always says no.
func plain(text string) bool {
	last := len(text) - 8
	if last < 0 {
		return false
	}
	p := unsafe.Pointer(unsafe.StringData(text))
	for i, w := 0, word(p, last); ; i += 8 {
		angle, del := w^('<'*eachByte), w^(0x7f*eachByte)
		// The zero-byte test of Hacker's Delight, section 6-1: with every highest bit clear a borrow only comes from a byte that is marked itself.
		if (w|(w-' '*eachByte)|(angle-eachByte)&^angle|(del-eachByte)&^del)&highBit != 0 {
			return false
		}
		if i >= last {
			return true
		}
		w = word(p, i)
	}
}

// same is a == b.
func same(a, b string) bool {
	last := len(a) - 8
	if len(a) != len(b) || last < 0 {
		return a == b
	}
	p, q := unsafe.Pointer(unsafe.StringData(a)), unsafe.Pointer(unsafe.StringData(b))
	if word(p, last) != word(q, last) {
		return false
	}
	for i := 0; i < last; i += 8 {
		if word(p, i) != word(q, i) {
			return false
		}
	}
	return true
}

// among is slices.Contains.
func among(list []string, text string) bool {
	for i := range list {
		if same(list[i], text) {
			return true
		}
	}
	return false
}
