package answercheck

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

//go:generate go run -C ../../../tools ./lookalikes -out ../host/internal/answercheck/lookalikes_gen.go

// softHyphen is invisible, or a dash where a line ends.
const softHyphen = 0xad

// escapeTags puts a backslash behind each "<", or character that looks like it, that begins an opening or closing tag of
// the memory-context element, and returns the positions in text before which the backslashes are. Other text stays as
// it is. The generated table of look-alikes has more than abi.NamesContextTag, which modules are built with.
func escapeTags(text string) (escaped string, inserted []int64) {
	var b strings.Builder
	done := 0
	for i := range len(text) {
		if c := text[i]; c != '<' && c < 0xc2 { // neither the character nor the first byte of a look-alike
			continue
		}
		if end := i + bracketLen(text[i:]); end > i && namesTag(text[end:]) {
			b.WriteString(text[done:end])
			b.WriteByte('\\')
			inserted = append(inserted, int64(end))
			done = end
		}
	}
	b.WriteString(text[done:])
	return b.String(), inserted
}

// bracketLen is the length in bytes of a "<", or of a character that looks like it, at the beginning of text; 0 if there
// is none.
func bracketLen(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if strings.ContainsRune(brackets, r) && r != utf8.RuneError {
		return size
	}
	return 0
}

// namesTag reports whether rest, which follows a "<", is a tag of the element: its skeleton begins with slashes, if any,
// and "memory-context". Invisible characters count nothing anywhere, blanks nothing before the name.
func namesTag(rest string) bool {
	const dash = len("memory")
	n, soft := 0, false
	for i := 0; i < len(rest) && n < len(abi.ContextTag); {
		r, size := utf8.DecodeRuneInString(rest[i:])
		i += size
		c := skeleton(r)
		switch {
		case r == softHyphen:
			soft = soft || n == dash
		case c == 0, n == 0 && (c == ' ' || c == '/'):
		case c == abi.ContextTag[n]:
			n++
		case soft && n == dash && c == abi.ContextTag[n+1]:
			n += 2
		default:
			return false
		}
	}
	return n == len(abi.ContextTag)
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
