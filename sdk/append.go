package sdk

import (
	"math"
	"strconv"
	"strings"
)

// Append is append(buf, text...). TinyGo calls a function for every append, and two for every write to a strings.Builder: where there is room this calls none.
func Append(buf []byte, text string) []byte {
	n := len(buf)
	if n+len(text) > cap(buf) {
		return append(buf, text...)
	}
	buf = buf[:n+len(text)]
	copy(buf[n:], text)
	return buf
}

// AppendHundredths appends a number with two digits behind its point, as strconv.AppendFloat(buf, x, 'f', 2, 64) does: rounded by its exact value, half to even. Of
// most numbers AppendFloat makes a large decimal first. But up to some 2^53 a float is a whole number shifted down, and a hundred times that number fits 64 bits.
func AppendHundredths(buf []byte, x float64) []byte {
	bits := math.Float64bits(x)
	shift := 1075 - int(bits>>52) // of a number below 0 it is far below 1
	if shift < 1 || shift > 63 {
		return strconv.AppendFloat(buf, x, 'f', 2, 64)
	}
	hundredfold := (bits&(1<<52-1) | 1<<52) * 100
	n, rest, half := hundredfold>>shift, hundredfold&(1<<shift-1), uint64(1)<<(shift-1)
	if rest > half || rest == half && n&1 == 1 {
		n++
	}
	if n >= 1000 { // scores are less
		buf = strconv.AppendUint(buf, n/1000, 10)
	}
	return append(buf, byte('0'+n/100%10), '.', byte('0'+n/10%10), byte('0'+n%10))
}

// TrimSpace is strings.TrimSpace, without its calls where neither end can be a space, as of nearly every text.
func TrimSpace(text string) string {
	if n := len(text); n == 0 || isGraphic(text[0]) && isGraphic(text[n-1]) {
		return text
	}
	return strings.TrimSpace(text)
}

func isGraphic(c byte) bool { return c > ' ' && c < 0x7f }
