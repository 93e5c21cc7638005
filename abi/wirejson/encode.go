package wirejson

import (
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Quote returns s as a JSON string, for messages. strconv.Quote would bring Unicode's tables of what can be printed,
// some 8 KB, into a guest.
func Quote(s string) string {
	var e Encoder
	e.Str(s)
	return e.String()
}

// Encoder appends JSON to a buffer and puts the commas. That values and names come in turn, and that every start has
// its end, is the caller's business. The zero value is ready.
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

// begin makes room for n bytes, and for a comma, which it puts where one belongs: before a value or a name, except at
// the beginning of what it is in. What was written last tells: no value ends with one of these bytes.
func (e *Encoder) begin(n int) {
	end := len(e.buf)
	if cap(e.buf)-end <= n {
		e.buf = append(make([]byte, 0, max(2*cap(e.buf), end+n+1, 64)), e.buf...)
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

// put writes a byte for which there is room. In a guest an append costs a call.
func (e *Encoder) put(c byte) {
	n := len(e.buf)
	e.buf = e.buf[:n+1]
	e.buf[n] = c
}

// ObjStart begins an object.
func (e *Encoder) ObjStart() { e.start('{') }

// FieldStart writes a field's name; its value follows.
func (e *Encoder) FieldStart(name string) {
	e.Str(name)
	e.buf = append(e.buf, ':')
}

// ObjEnd ends an object.
func (e *Encoder) ObjEnd() { e.end('}') }

// ArrStart begins an array.
func (e *Encoder) ArrStart() { e.start('[') }

// ArrEnd ends an array.
func (e *Encoder) ArrEnd() { e.end(']') }

func (e *Encoder) start(bracket byte) {
	e.begin(1)
	e.put(bracket)
	e.depth++
}

func (e *Encoder) end(bracket byte) {
	e.buf = append(e.buf, bracket)
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
	e.buf = strconv.AppendInt(e.buf, v, 10)
}

// Float64 writes a number in the shortest form that reads back as v, as ECMAScript and encoding/json do: 81, 0.81,
// 1e-7. NaN and the infinities, for which JSON has nothing, are written as null.
func (e *Encoder) Float64(v float64) {
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

// Str writes a string; for each byte that is not UTF-8 it writes U+FFFD.
func (e *Encoder) Str(v string) {
	if !utf8.ValidString(v) {
		v = mended(v)
	}
	e.begin(len(v) + 3) // with its quotes, and a colon
	e.put('"')
	text := unsafe.Slice(unsafe.StringData(v), len(v))
	for i := 0; ; i++ {
		begin := i
		i = special(text, i)
		e.buf = append(e.buf, text[begin:i]...)
		if i == len(text) {
			break
		}
		e.buf = appendEscape(e.buf, text[i])
	}
	e.buf = append(e.buf, '"')
}

// mended puts U+FFFD for every byte that is not UTF-8.
func mended(text string) string {
	var clean []byte
	for _, r := range text {
		clean = utf8.AppendRune(clean, r)
	}
	return string(clean)
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
