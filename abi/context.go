package abi

import "unicode/utf8"

// ContextTag is the name of the element in which an agent gets its memory: <memory-context ...>...</memory-context>.
const ContextTag = "memory-context"

// softHyphen is invisible, or a dash where a line ends.
const softHyphen = 0xad

// BracketLen is the length of a "<", or of a character that looks like one, at the beginning of text, in bytes: "<" has
// 1, "＜" 3. It is 0 if there is none.
func BracketLen(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if skeleton(r) == '<' {
		return size
	}
	return 0
}

// NamesContextTag reports whether rest, which follows a "<", is an opening or closing tag of the element: its skeleton
// begins with slashes, if any, and "memory-context". In a skeleton letters are small; full-width and mathematical
// letters, dashes and slashes of all kinds are the plain ones; invisible characters count nothing anywhere, blanks
// nothing before the name.
func NamesContextTag(rest string) bool { return matchTag(rest) == len(ContextTag) }

// MayNameContextTag is NamesContextTag for a text that may be continued: it is also true if rest ends before the tag
// can be told from other text.
func MayNameContextTag(rest string) bool { return matchTag(rest) >= 0 }

// matchTag counts the characters of the tag's name that rest has before it ends. It is -1 when another character comes
// first.
func matchTag(rest string) int {
	const dash = len("memory")
	n, soft := 0, false
	for i := 0; i < len(rest) && n < len(ContextTag); {
		r, size := utf8.DecodeRuneInString(rest[i:])
		i += size
		c := skeleton(r)
		switch {
		case r == softHyphen:
			soft = soft || n == dash
		case c == 0, n == 0 && (c == ' ' || c == '/'):
		case c == ContextTag[n]:
			n++
		case soft && n == dash && c == ContextTag[n+1]:
			n += 2
		default:
			return -1
		}
	}
	return n
}

// skeleton is the ASCII character that r looks like, in small letters; 0 for what is invisible, or no character; ' '
// for a blank; 0xff for every other.
func skeleton(r rune) byte {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full-width
		r -= 0xff01 - '!'
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical alphabets of 26 large and 26 small letters
		return 'a' + byte((r-0x1d400)%26)
	case r < 0x80:
	case invisible(r):
		return 0
	default:
		return lookAlike(r)
	}
	switch {
	case r >= 'A' && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case r == ' ' || r >= '\t' && r <= '\r':
		return ' '
	case r < ' ' || r == 0x7f:
		return 0
	}
	return byte(r)
}

func lookAlike(r rune) byte {
	switch r {
	case 0x2039, 0x2329, 0x276e, 0x27e8, 0x3008, 0xfe64:
		return '<'
	case 0x2044, 0x2215, 0x2571, 0x29f8:
		return '/'
	case 0x2d7, 0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2043, 0x2212, 0x2796, 0xfe58, 0xfe63:
		return '-'
	case 0x435:
		return 'e'
	case 0x43e, 0x3bf:
		return 'o'
	case 0x441:
		return 'c'
	case 0x443:
		return 'y'
	case 0x445:
		return 'x'
	case 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return ' '
	}
	if r >= 0x2000 && r <= 0x200a {
		return ' '
	}
	return 0xff
}

// invisibles are ranges of what has no shape of its own: controls, formats, fillers, variation selectors, private use.
var invisibles = [...][2]rune{{0x80, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd,
	0x6dd},
	{0x70f, 0x70f}, {0x890, 0x891}, {0x8e2, 0x8e2}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
	{0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xe000, 0xf8ff}, {0xfe00, 0xfe0f},
	{0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffd, 0xfffd}, {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
	{0x13430, 0x1345f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff}}

func invisible(r rune) bool {
	for _, known := range invisibles {
		if r <= known[1] {
			return r >= known[0]
		}
	}
	return false
}
