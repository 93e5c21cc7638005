package main

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/memhost/memhost/abi/jsontext"
)

// Texts are compared and looked through eight bytes at a time: the guest's runtime does it byte by byte, and an answer has thousands of them.
const (
	each = 0x0101010101010101 // a byte in each of eight places
	high = 0x8080808080808080 // its highest bit
)

// eight is the eight bytes from i on, which must be there.
func eight(s string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// same is a == b.
func same(a, b string) bool {
	n := len(a)
	if n != len(b) {
		return false
	}
	if n < 8 {
		return a == b
	}
	for i := 0; i < n-8; i += 8 {
		if eight(a, i) != eight(b, i) {
			return false
		}
	}
	return eight(a, n-8) == eight(b, n-8)
}

// quiet tells that there is no control character in s and no "<". It may also be false where there is none.
func quiet(s string) bool {
	n := len(s)
	if n < 8 {
		for i := range n {
			if s[i] < ' ' || s[i] == '<' {
				return false
			}
		}
		return true
	}
	for i := 0; ; i += 8 {
		i = min(i, n-8)
		w := eight(s, i)
		opens := w ^ '<'*each
		if (((w-' '*each)&^w)|((opens-each)&^opens))&high != 0 { // the zero-byte test of Hacker's Delight, section 6-1
			return false
		}
		if i == n-8 {
			return true
		}
	}
}

// asciiPrefix is a length up to which s is ASCII: all of it but for the last bytes, or near what is not.
func asciiPrefix(s string) int {
	n := 0
	for ; n+32 <= len(s); n += 32 {
		if (eight(s, n)|eight(s, n+8)|eight(s, n+16)|eight(s, n+24))&high != 0 {
			break
		}
	}
	return n
}

// blank tells that there are only blanks in s.
func blank(s string) bool {
	if s != "" && s[0] > ' ' && s[0] < 0x7f { // as nearly every text begins
		return false
	}
	return strings.TrimSpace(s) == ""
}

// withoutZero leaves out U+0000, which mem0 cannot store.
func withoutZero(s string) string {
	if quiet(s) {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// view is b as a text, without a copy: b does not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// add appends s to buf, without a call of the runtime where there is room.
func add(buf []byte, s string) []byte {
	n := len(buf)
	if n+len(s) > cap(buf) {
		return append(buf, s...)
	}
	buf = buf[:n+len(s)]
	copy(buf[n:], s)
	return buf
}

// addHundredths appends x with two digits behind the point, as strconv does with 'f' and 2. Scores are small: times 100 they are still exact in 64 bits.
func addHundredths(buf []byte, x float64) []byte {
	bits := math.Float64bits(x)
	exponent, fraction := int(bits>>52), bits&(1<<52-1)
	if exponent >= 1023+7 { // 128 and more, negative, NaN
		return strconv.AppendFloat(buf, x, 'f', 2, 64)
	}
	n := uint64(0)
	if shift := 1075 - exponent; exponent > 0 && shift < 62 {
		n = (fraction | 1<<52) * 100
		rest, half := n&(1<<shift-1), uint64(1)<<(shift-1)
		if n >>= shift; rest > half || rest == half && n&1 == 1 {
			n++
		}
	}
	if n >= 1000 {
		buf = strconv.AppendUint(buf, n/1000, 10)
	}
	return append(buf, byte('0'+n/100%10), '.', byte('0'+n/10%10), byte('0'+n%10))
}

// readNumeral is a number as it stands there; any other value is skipped and gives "".
func readNumeral(d *jsontext.Decoder) (string, error) {
	if d.Next() != jsontext.Number {
		return "", d.Skip()
	}
	before := *d
	raw, err := d.Raw()
	if err == nil && !isFraction(view(raw)) {
		_, err = before.Float64() // that it is one of 64 bits
	}
	return view(raw), err
}

// isFraction tells that a numeral is 0. and digits: such ones are in the order of their texts.
func isFraction(numeral string) bool {
	if len(numeral) < 3 || numeral[0] != '0' || numeral[1] != '.' {
		return false
	}
	const letter = 0x40 // a bit of every letter, and of nothing else in a numeral
	n := len(numeral)
	if n < 8 {
		for i := range n {
			if numeral[i]&letter != 0 {
				return false
			}
		}
		return true
	}
	found := eight(numeral, n-8)
	for i := 0; i < n-8; i += 8 {
		found |= eight(numeral, i)
	}
	return found&(letter*each) == 0
}

// greater tells whether the number a is greater than b.
func greater(a, b string) bool {
	if same(a, b) {
		return false
	}
	if isFraction(a) && isFraction(b) {
		return a > b
	}
	return numeralValue(a) > numeralValue(b)
}

// numeralValue is the value of what readNumeral read.
func numeralValue(numeral string) float64 {
	x, _ := strconv.ParseFloat(numeral, 64) // it has been read before
	return x
}
