package guest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes a guest's text fit on one line of a log. It writes as Go escapes: control characters (including line
// ends and terminal escapes), line and paragraph separators, characters that change the writing direction, and invalid
// UTF-8. Everything else is unchanged. The result has at most limit bytes.
//
// "a\nb" becomes `a\nb`, "\x1b[2J" becomes `\x1b[2J`, a single 0xff becomes `\xff`.
func Printable(text string, limit int) string {
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
		if out.Len()+len(piece) > limit {
			return out.String()
		}
		out.WriteString(piece)
		text = text[size:]
	}
	return out.String()
}

// InvalidUTF8 returns the index of the first byte that is not UTF-8; -1 if there is none.
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
