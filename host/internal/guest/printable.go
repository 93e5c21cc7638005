package guest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes a guest's text fit for one line of a log: control characters (line ends and the escapes of terminals
// among them), the separators of lines and paragraphs, those that change the direction of writing, and bytes that are
// no UTF-8 are written as Go escapes. Everything else stays, up to most bytes of the result.
//
// "a\nb" becomes `a\nb`, "\x1b[2J" becomes `\x1b[2J`, a single 0xff becomes `\xff`.
func Printable(text string, most int) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		switch {
		case r == utf8.RuneError && size == 1:
			piece = fmt.Sprintf(`\x%02x`, text[0])
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control):
			piece = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		if out.Len()+len(piece) > most {
			return out.String()
		}
		out.WriteString(piece)
		text = text[size:]
	}
	return out.String()
}

// InvalidUTF8 is where a text has a byte that is not UTF-8, -1 where it has none.
func InvalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
