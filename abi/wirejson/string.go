package wirejson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// span reads a string and returns the text between its quotes, and whether it contains escapes. It has checked the
// escapes.
func (d *Decoder) span() (inner []byte, escaped bool, err error) {
	if err := d.consume('"'); err != nil {
		return nil, false, err
	}
	begin := d.at
	end := special(d.text, begin)
	if end < len(d.text) && d.text[end] == '"' {
		d.at = end + 1
		return d.text[begin:end], false, nil
	}
	if end, err = d.endString(end); err != nil {
		return nil, false, err
	}
	return d.text[begin : end-1], true, nil
}

// endString reads the rest of a string, from its first special byte to its end.
func (d *Decoder) endString(i int) (int, error) {
	d.at = i
	for {
		if d.at >= len(d.text) {
			return 0, d.unexpected()
		}
		switch d.text[d.at] {
		case '"':
			d.at++
			return d.at, nil
		case '\\':
			if err := d.skipEscape(); err != nil {
				return 0, err
			}
		default:
			return 0, d.unexpected()
		}
		d.at = special(d.text, d.at)
	}
}

// special returns the index of the first byte from i on that a JSON string cannot contain unescaped (a quote, a
// backslash, a control character), or the length of text. It looks at eight bytes at a time: most of what a module
// reads is strings, and in WebAssembly a loop over bytes is several times slower.
// For each byte c, the highest bit of c-' ', (c^'"')-1 or (c^'\\')-1 is set if c is special or not ASCII (Hacker's
// Delight, section 6-1). A borrow can set a wrong bit only above the first right one.
func special(text []byte, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		marks := ((w - ' '*each) | ((w ^ '"'*each) - each) | ((w ^ '\\'*each) - each)) &^ w & high
		if marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(text) && !isSpecial(text[i]) {
		i++
	}
	return i
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

func (d *Decoder) skipEscape() error {
	d.at++
	if d.at >= len(d.text) {
		return d.unexpected()
	}
	switch d.text[d.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		d.at++
		return nil
	case 'u':
		for end := d.at + 4; d.at < end; {
			d.at++
			if d.at >= len(d.text) || hex(d.text[d.at]) < 0 {
				return d.unexpected()
			}
		}
		d.at++
		return nil
	}
	return d.unexpected()
}

// unescape appends a string to dst and replaces its escapes, which have been checked.
func unescape(dst, inner []byte) []byte {
	for i := 0; i < len(inner); {
		plain := i
		i = special(inner, i) // a backslash, since a checked string has no other special byte
		dst = append(dst, inner[plain:i]...)
		if i == len(inner) {
			break
		}
		switch c := inner[i+1]; c {
		case 'u':
			r := codeUnit(inner[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if i+6 <= len(inner) && inner[i] == '\\' && inner[i+1] == 'u' {
					pair = utf16.DecodeRune(r, codeUnit(inner[i+2:]))
				}
				if r = pair; r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

// EscapeLen is the length of an escape \uXXXX, in bytes.
const EscapeLen = 6

// CodeUnit reads an escape \uXXXX at the start of text, with digits in upper or lower case. The result is a UTF-16 code
// unit, so it may be half of a surrogate pair. ok is false if text does not start with such an escape.
//
//	\u00e9...   0xE9, true
//	\ud83d...   0xD83D, true
//	\n...       0, false
func CodeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < EscapeLen || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:EscapeLen] {
		if hex(c) < 0 {
			return 0, false
		}
	}
	return codeUnit(text[2:]), true
}

func codeUnit(four []byte) (r rune) {
	for _, c := range four[:4] {
		r = r<<4 | hex(c)
	}
	return r
}

// hex returns the value of a digit, or a negative number.
func hex(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}
