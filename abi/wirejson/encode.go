package wirejson

import (
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Quote returns s as a JSON string, for messages. strconv.Quote would add Unicode's tables of printable characters,
// some 8 KB, to a guest.
func Quote(s string) string {
	var e Encoder
	e.Str(s)
	return e.String()
}

// Encoder appends JSON to a buffer and writes the commas. It does not check that names and values alternate, or that
// every start has an end; that is up to the caller. The zero value is ready to use.
type Encoder struct {
	buf   []byte
	depth int
}

// Bytes returns the buffer itself, not a copy.
func (e *Encoder) Bytes() []byte { return e.buf }

// SetBytes sets the buffer. Encoding appends to what it contains.
func (e *Encoder) SetBytes(buf []byte) { e.buf, e.depth = buf, 0 }

// String returns a copy of the buffer.
func (e *Encoder) String() string { return string(e.buf) }

// begin makes room for n bytes and a comma, and writes the comma before every value or name but the first of its array
// or object. The last byte written decides: no value ends with one of these bytes.
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

// put writes a byte for which begin made room. In a guest an append would cost a call.
func (e *Encoder) put(c byte) {
	n := len(e.buf)
	e.buf = e.buf[:n+1]
	e.buf[n] = c
}

// ObjStart begins an object.
func (e *Encoder) ObjStart() { e.start('{') }

// FieldStart writes a field's name. The caller writes its value next.
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

// Int writes an integer.
func (e *Encoder) Int(v int) { e.Int64(int64(v)) }

// Int64 writes an integer.
func (e *Encoder) Int64(v int64) {
	e.begin(24)
	e.buf = strconv.AppendInt(e.buf, v, 10)
}

// Float64 writes a number in the shortest form that reads back as v, as ECMAScript and encoding/json do: 81, 0.81,
// 1e-7. NaN and infinities, which JSON cannot represent, are written as null.
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
	if n := len(e.buf); format == 'e' && e.buf[n-4] == 'e' && e.buf[n-3] == '-' && e.buf[n-2] == '0' { // e-09 becomes e-9
		e.buf[n-2] = e.buf[n-1]
		e.buf = e.buf[:n-1]
	}
}

// Raw writes a value that is JSON already, unchanged.
func (e *Encoder) Raw(v []byte) {
	e.begin(len(v))
	e.buf = append(e.buf, v...)
}

// Str writes a string. Each byte that is not UTF-8 is written as U+FFFD.
func (e *Encoder) Str(v string) {
	if !utf8.ValidString(v) {
		v = replaceInvalidUTF8(v)
	}
	e.begin(len(v) + 3) // plus quotes and a colon
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

// replaceInvalidUTF8 replaces every byte that is not UTF-8 by U+FFFD.
func replaceInvalidUTF8(text string) string {
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
