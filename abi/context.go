package abi

import "unicode/utf8"

// ContextTag is the name of the element in which an agent gets its memory: <memory-context ...>...</memory-context>.
const ContextTag = "memory-context"

// softHyphen is invisible except at the end of a line, where it is shown as a dash.
const softHyphen = 0xad

// NextContextTag finds the first tag of the context element in text, opening or closing. It returns the position after
// the tag's "<", where a backslash turns the tag into ordinary text, or -1 if text has no tag. With moreFollows, a "<"
// near the end of text that the following text could complete to a tag counts too.
//
// A tag is "<", any number of slashes, and "memory-context", in upper or lower case. Characters that look like those of
// a tag count as these. Invisible characters are skipped everywhere, and blanks before the name.
func NextContextTag(text string, moreFollows bool) int {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '<' && c < 0xc2 { // neither "<" nor the first byte of a look-alike
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

// matchTag returns the number of characters of the tag's name that rest contains before it ends, or -1 if it contains
// another character first.
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

// skeleton returns the lower-case ASCII character that r looks like, 0 if r is invisible or not a character, ' ' if it
// is a blank, and 0xff for all others.
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

// lookAlike looks r up in the table of look-alikes.
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

// invisible looks r up in the table of invisible characters.
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

// number reads the first number of a generated table. Numbers are groups of seven bits, highest first; in all but the
// last group the eighth bit is set.
func number(table string) (n rune, rest string) {
	for i := range len(table) {
		n = n<<7 | rune(table[i]&0x7f)
		if table[i] < 0x80 {
			return n, table[i+1:]
		}
	}
	return n, ""
}
