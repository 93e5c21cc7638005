package abi

import (
	"unicode/utf16"
	"unicode/utf8"
)

// What package jx leaves to its callers: a limit of depth, and escapes that stand for half a character.

// tooDeep says where arrays and objects nest deeper than most levels; it returns "" where they do not. It looks for
// brackets only, and is run before anything that recurses.
func tooDeep(data []byte, most int) string {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > most {
				return "nested too deep at byte " + itoa(i) + ", want at most " + itoa(MaxDepth) + " levels, in a free value " + itoa(MaxValueDepth)
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return ""
}

const escaped = len(`\u0000`)

// mended returns JSON text with every escaped surrogate that is not part of a pair written as \ufffd, which encoding/json
// reads it as: jx takes the first two of three surrogates for a pair when only the last two are one. It copies text
// where it differs, and keeps its length.
func mended(text []byte) (clean []byte, differs bool) {
	clean = text
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch r := codeUnit(text[i:]); {
		case !utf16.IsSurrogate(r):
			i++ // whatever is escaped, it is no backslash that escapes
		case utf16.DecodeRune(r, codeUnit(text[i+escaped:])) != utf8.RuneError:
			i += 2*escaped - 1
		default:
			if !differs {
				clean, differs = append([]byte(nil), text...), true
			}
			copy(clean[i:], `\ufffd`)
			i += escaped - 1
		}
	}
	return clean, differs
}

// codeUnit reads the escape \uXXXX at the beginning of text; it returns -1 where there is none.
func codeUnit(text []byte) (r rune) {
	if len(text) < escaped || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	for _, c := range text[2:escaped] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
