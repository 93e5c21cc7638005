package jsontext

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/words"
)

// Quote returns s as a JSON string, for messages. strconv.Quote would bring Unicode's tables of what can be printed, some 8 KB, into a guest.
func Quote(s string) string {
	var e Encoder
	e.Str(s)
	return words.View(e.buf)
}

// Encoder appends JSON to a buffer and puts the commas. That values and names come in turn, and that every start has its end, is the caller's business. The
// zero value is ready.
type Encoder struct {
	buf   []byte
	depth int
}

// Bytes returns what was written; it is the buffer itself.
func (e *Encoder) Bytes() []byte { return e.buf }

// SetBytes sets the buffer; what it holds stays before what is written.
func (e *Encoder) SetBytes(buf []byte) { e.buf, e.depth = buf, 0 }

// String returns a copy of what was written.
func (e *Encoder) String() string { return string(e.buf) }

// begin makes room for n bytes and a comma, and puts the comma where one belongs: before a value or a name, except at the beginning of what it is in. What was
// written last tells: no value ends with one of these bytes.
//
// Every value begins here, so it is one call, and what it does not need each time stands elsewhere: in a guest a call and an append cost more than the bytes that
// they are about.
func (e *Encoder) begin(n int) {
	end := len(e.buf)
	if cap(e.buf)-end <= n {
		e.grow(n + 1)
	}
	if e.depth == 0 {
		return
	}
	switch e.buf[end-1] {
	case '{', '[', ':':
	default:
		e.put(',')
	}
}

//go:noinline
func (e *Encoder) grow(n int) {
	e.buf = append(make([]byte, 0, max(2*cap(e.buf), len(e.buf)+n, 64)), e.buf...)
}

// put writes a byte for which there is room.
func (e *Encoder) put(c byte) {
	n := len(e.buf)
	e.buf = e.buf[:n+1]
	e.buf[n] = c
}

// ObjStart begins an object.
func (e *Encoder) ObjStart() { e.start('{') }

// FieldStart writes a field's name; its value follows. It is called from hundreds of places in a module: inlined, it weighs kilobytes.
//
//go:noinline
func (e *Encoder) FieldStart(name string) {
	e.str(name, 1)
	e.put(':')
}

// ObjEnd ends an object.
func (e *Encoder) ObjEnd() { e.end('}') }

// ArrStart begins an array.
func (e *Encoder) ArrStart() { e.start('[') }

// ArrEnd ends an array.
func (e *Encoder) ArrEnd() { e.end(']') }

//go:noinline
func (e *Encoder) start(bracket byte) {
	e.begin(1)
	e.put(bracket)
	e.depth++
}

//go:noinline
func (e *Encoder) end(bracket byte) {
	if len(e.buf) == cap(e.buf) {
		e.grow(1)
	}
	e.put(bracket)
	e.depth--
}

// Null writes null.
func (e *Encoder) Null() {
	e.begin(24)
	e.buf = append(e.buf, "null"...)
}

// Bool writes true or false.
func (e *Encoder) Bool(v bool) {
	e.begin(24)
	e.buf = strconv.AppendBool(e.buf, v)
}

// Int writes a whole number.
func (e *Encoder) Int(v int) { e.Int64(int64(v)) }

// Int64 writes a whole number.
func (e *Encoder) Int64(v int64) {
	e.begin(24)
	if v < 0 || v >= 1000 {
		e.buf = AppendInt(e.buf, v)
		return
	}
	small := int32(v) // most are: a status, a count, milliseconds
	if small >= 100 {
		e.put('0' + byte(small/100))
	}
	if small >= 10 {
		e.put('0' + byte(small/10%10))
	}
	e.put('0' + byte(small%10))
}

// AppendInt appends a whole number as JSON has it: what strconv.AppendInt does, in a quarter of the code, for guests.
//
//go:noinline
func AppendInt(buf []byte, v int64) []byte {
	var digits [20]byte
	at, rest := len(digits), uint64(v)
	if v < 0 {
		rest = -rest
	}
	for first := true; first || rest > 0; first = false {
		at--
		digits[at] = '0' + byte(rest%10)
		rest /= 10
	}
	if v < 0 {
		at--
		digits[at] = '-'
	}
	return append(buf, digits[at:]...)
}

// Float64 writes a number in the shortest form that reads back as v, as ECMAScript and encoding/json do. NaN and the infinities, for which JSON has nothing,
// are written as null.
func (e *Encoder) Float64(v float64) {
	if math.Float64bits(v) < math.Float64bits(1<<53) && v == math.Trunc(v) { // neither negative nor NaN: those have higher bits
		e.Int64(int64(v))
		return
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.Null()
		return
	}
	e.begin(24)
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	e.buf = strconv.AppendFloat(e.buf, v, format, -1, 64)
	if n := len(e.buf); format == 'e' && e.buf[n-4] == 'e' && e.buf[n-3] == '-' && e.buf[n-2] == '0' { // e-09 is e-9
		e.buf[n-2] = e.buf[n-1]
		e.buf = e.buf[:n-1]
	}
}

// Raw writes one value that is JSON already, as it is.
func (e *Encoder) Raw(v []byte) {
	e.begin(len(v))
	e.buf = append(e.buf, v...)
}

// ByteStr writes a string.
func (e *Encoder) ByteStr(v []byte) { e.Str(words.View(v)) }

// Str writes a string; for bytes that are not UTF-8 it writes U+FFFD.
func (e *Encoder) Str(v string) { e.str(v, 0) }

// str writes a string and leaves room for more bytes behind it.
//
//go:noinline
func (e *Encoder) str(v string, more int) {
	e.begin(len(v) + 2 + more)
	n := len(e.buf)
	to := e.buf[n : n+2+len(v)]
	to[0] = '"'
	if !copyPlain(to[1:], v) {
		e.strSlowly(words.Bytes(v), more)
		return
	}
	to[1+len(v)] = '"'
	e.buf = e.buf[:n+len(to)]
}

// strSlowly is str for what needs escapes, or is not ASCII.
//
//go:noinline
func (e *Encoder) strSlowly(text []byte, more int) {
	if !ValidUTF8(text) {
		text = mended(text)
	}
	const most = len(`\u0007`) // that a byte becomes
	e.buf = append(e.buf, '"')
	for i := 0; ; i++ {
		if left := len(text) - i + most + 1 + more; cap(e.buf)-len(e.buf) < left {
			e.grow(left)
		}
		next := special(text, i)
		n := len(e.buf)
		e.buf = e.buf[:n+next-i]
		copy(e.buf[n:], text[i:next])
		if i = next; i == len(text) {
			break
		}
		e.buf = appendEscape(e.buf, text[i])
	}
	e.put('"')
}

const digits = "0123456789abcdef"

func appendEscape(buf []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\n':
		return append(buf, '\\', 'n')
	case '\r':
		return append(buf, '\\', 'r')
	case '\t':
		return append(buf, '\\', 't')
	}
	return append(buf, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xF])
}

// mended puts U+FFFD for every byte that is not UTF-8.
func mended(text []byte) []byte {
	clean := make([]byte, 0, len(text)+8)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		clean = utf8.AppendRune(clean, r)
		text = text[n:]
	}
	return clean
}
