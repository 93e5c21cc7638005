package jsontext

import (
	"math/bits"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/words"
)

// special finds the first byte from i on that a JSON string cannot hold as it is: a quote, a backslash, a control character. It returns the length of text
// where there is none.
func special(text []byte, i int) int {
	for view := words.View(text); i+8 <= len(text); i += 8 {
		w := words.At(view, i)
		if marks := specials(w) &^ w & words.High; marks != 0 { // as with words.Below the lowest is right
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(text); i++ {
		if isSpecial(text[i]) {
			return i
		}
	}
	return i
}

// specials has the highest bit of a byte set where w has a special one, or one that is not ASCII. It is words.Below and words.Equal but for taking the bits of w away,
// which special does once instead of those of each difference: it says the same, since what is subtracted and what it is compared with are ASCII.
func specials(w uint64) uint64 {
	return (w - ' '*words.Each) | ((w ^ '"'*words.Each) - words.Each) | ((w ^ '\\'*words.Each) - words.Each)
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// ValidUTF8 is utf8.Valid, faster on text that is ASCII: there TinyGo's calls a function for every word.
func ValidUTF8(text []byte) bool {
	view, i := words.View(text), 0
	for ; i+32 <= len(text); i += 32 {
		if (words.At(view, i)|words.At(view, i+8)|words.At(view, i+16)|words.At(view, i+24))&words.High != 0 {
			break
		}
	}
	for ; i+8 <= len(text); i += 8 {
		if words.At(view, i)&words.High != 0 {
			break
		}
	}
	return utf8.Valid(text[i:])
}

// copyPlain copies text to the beginning of to, which is at least as long, if it can stand in JSON as it is and is ASCII. Otherwise it says false, and what to
// holds means nothing. It takes some bytes twice instead of one by one.
func copyPlain(to []byte, text string) bool {
	n := len(text)
	to = to[:n]
	if n < 8 {
		if n >= 4 {
			first, last := words.HalfAt(text, 0), words.HalfAt(text, n-4)
			if w := uint64(last)<<32 | uint64(first); (specials(w)|w)&words.High != 0 {
				return false
			}
			words.PutHalf(to, 0, first)
			words.PutHalf(to, n-4, last)
			return true
		}
		for i := range n {
			c := text[i]
			if c >= utf8.RuneSelf || isSpecial(c) {
				return false
			}
			to[i] = c
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		w := words.At(text, i)
		if (specials(w)|w)&words.High != 0 {
			return false
		}
		words.Put(to, i, w)
		if i == n-8 {
			return true
		}
	}
}
