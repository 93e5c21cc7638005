package abi

import "unicode/utf8"

// ContextTag is the name of the element in which an agent gets its memory: <memory-context ...>...</memory-context>.
const ContextTag = "memory-context"

// softHyphen is invisible, or a dash where a line ends.
const softHyphen = 0xad

// NextContextTag finds the first "<", or character that looks like it, in text that begins an opening or closing tag of
// the element, and returns the position behind it: a backslash there makes the tag ordinary text. It is -1 if there is
// none. If more text may follow, one near the end that could become a tag counts too.
//
// A tag is an optional number of slashes and "memory-context". Letters may be large or small, and characters that look
// like the tag's count as these. Invisible characters are skipped everywhere, blanks before the name.
func NextContextTag(text string, moreFollows bool) int {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '<' && c < 0xc2 { // neither the character nor the first byte of a look-alike
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r != '<' && !isBracket(r) {
			i += size - 1
			continue
		}
		end := i + size
		named := matchTag(text[end:])
		// Ordinary words end with a letter that looks like the bracket.
		if named == len(ContextTag) || moreFollows && named >= 0 && !isLetterBracket(r) {
			return end
		}
		i = end - 1
	}
	return -1
}

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
	case r < utf8.RuneSelf:
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

// lookAlike finds r in the table of look-alikes.
func lookAlike(r rune) byte {
	const characters = rune(len(tagCharacters))
	at := rune(0)
	for table := lookAlikes; table != "" && at < r; {
		var n rune
		n, table = number(table)
		if at += n / characters; at == r {
			return tagCharacters[n%characters]
		}
	}
	return 0xff
}

// invisible finds r in the table of invisible characters.
func invisible(r rune) bool {
	last := rune(0)
	for table := invisibles; table != "" && last < r; {
		var distance, length rune
		distance, table = number(table)
		length, table = number(table)
		first := last + distance
		if last = first + length; first <= r && r <= last {
			return true
		}
	}
	return false
}

// number reads the first number of a generated table: groups of seven bits, the highest first; all but the last have the
// eighth bit set.
func number(table string) (n rune, rest string) {
	for i := range len(table) {
		n = n<<7 | rune(table[i]&0x7f)
		if table[i] < 0x80 {
			return n, table[i+1:]
		}
	}
	return n, ""
}
