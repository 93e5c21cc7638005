package wirejson

import (
	"io"
	"strconv"
	"unsafe"
)

// MaxDepth is the limit of nested arrays and objects unless Limit sets a lower one.
const MaxDepth = 64

// Type is the kind of a value.
type Type uint8

// The types of values. Invalid means the end of the text, or a byte that cannot start a value.
const (
	Invalid Type = iota
	String
	Number
	Null
	Bool
	Array
	Object
)

// String returns the type's name: "string", "object", ...
func (t Type) String() string {
	return [...]string{"invalid", "string", "number", "null", "bool", "array", "object"}[t]
}

// Raw is one value as it appears in the text.
type Raw []byte

// Type returns the type of the value.
func (r Raw) Type() Type {
	d := Decoder{text: r}
	return d.Next()
}

// SyntaxError says where and why a text is not JSON.
type SyntaxError struct {
	// At is the offset of the unexpected byte, or the length of a text that ends too early.
	At int
	// What describes the problem, without the position.
	What string
}

// Error describes the problem and its position: unexpected '}' at byte 14.
func (e *SyntaxError) Error() string { return e.What + " at byte " + strconv.Itoa(e.At) }

// Unwrap returns io.ErrUnexpectedEOF for a text that ends too early.
func (e *SyntaxError) Unwrap() error {
	if e.What == endOfInput {
		return io.ErrUnexpectedEOF
	}
	return nil
}

const (
	endOfInput = "unexpected end of input"
	nestedDeep = "nested too deep"
)

// DepthError reports whether a Decoder returned err because a text nests too deeply, and the offset where it does.
func DepthError(err error) (at int, is bool) {
	e, ok := err.(*SyntaxError) //nolint:errorlint // errors.As brings reflection into a guest
	if !ok || e.What != nestedDeep {
		return 0, false
	}
	return e.At, true
}

// Decoder reads one text from start to end. It must not be used after an error.
type Decoder struct {
	text   []byte
	at     int
	depth  int // number of open arrays and objects
	limit  int
	copies bool
}

// DecodeBytes returns a decoder of text. Strings and names without escapes refer to text, so it must not change while
// they are in use; if it may change, use Copying.
func DecodeBytes(text []byte) *Decoder { return &Decoder{text: text, limit: MaxDepth} }

// DecodeStr returns a decoder of text.
func DecodeStr(text string) *Decoder { return DecodeBytes([]byte(text)) }

// Valid reports whether text is one JSON value.
func Valid(text []byte) bool { return DecodeBytes(text).Validate() == nil }

// Limit sets the maximum nesting of arrays and objects, at most MaxDepth. It returns d.
func (d *Decoder) Limit(levels int) *Decoder {
	d.limit = min(levels, MaxDepth)
	return d
}

// Copying makes d copy the strings that it returns. It returns d.
func (d *Decoder) Copying() *Decoder {
	d.copies = true
	return d
}

// Keep returns a part of the text in a form that may be kept: a copy if d is Copying, otherwise the part itself.
func (d *Decoder) Keep(part Raw) Raw {
	if d.copies {
		return append(Raw(nil), part...)
	}
	return part[:len(part):len(part)]
}

// Next returns the type of the next value without reading it.
func (d *Decoder) Next() Type {
	switch c := d.peek(); c {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || isDigit(c) {
			return Number
		}
		return Invalid
	}
}

// AtEnd reports whether only blanks are left.
func (d *Decoder) AtEnd() bool {
	d.peek()
	return d.at == len(d.text)
}

// Validate reads the rest of the text, which must be one value.
func (d *Decoder) Validate() error {
	if err := d.Skip(); err != nil {
		return err
	}
	if !d.AtEnd() {
		return &SyntaxError{At: d.at, What: "more after the end of the value"}
	}
	return nil
}

// Str reads a string.
func (d *Decoder) Str() (string, error) {
	inner, escaped, err := d.span()
	if err != nil {
		return "", err
	}
	switch {
	case escaped:
		inner = unescape(nil, inner)
	case d.copies:
		return string(inner), nil
	}
	return view(inner), nil
}

// Null reads null.
func (d *Decoder) Null() error { return d.literal("null") }

// Bool reads true or false.
func (d *Decoder) Bool() (bool, error) {
	if d.peek() == 't' {
		return true, d.literal("true")
	}
	return false, d.literal("false")
}

// Int64 reads an integer, written without point and exponent.
func (d *Decoder) Int64() (int64, error) {
	raw, err := d.Num()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, &SyntaxError{At: d.at - len(raw), What: "not a whole number of 64 bits"}
	}
	return n, nil
}

// Int reads an integer that fits an int; see Int64.
func (d *Decoder) Int() (int, error) {
	n, err := d.Int64()
	if err == nil && int64(int(n)) != n {
		return 0, &SyntaxError{At: d.at, What: "a whole number too large"}
	}
	return int(n), err
}

// Float64 reads a number. A number that is too large for the type is an error.
func (d *Decoder) Float64() (float64, error) {
	raw, err := d.Num()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, &SyntaxError{At: d.at - len(raw), What: "not a number of 64 bits"}
	}
	return x, nil
}

// Num reads a number and returns its bytes, which are part of the text.
func (d *Decoder) Num() (Raw, error) {
	d.peek()
	begin := d.at
	if err := d.skipNumber(); err != nil {
		return nil, err
	}
	return Raw(d.text[begin:d.at]), nil
}

// Raw reads a value of any type and returns its bytes, which are part of the text.
func (d *Decoder) Raw() (Raw, error) {
	raw, _, err := d.RawLevels()
	return raw, err
}

// RawLevels is Raw that also returns the number of levels of arrays and objects in the value: 0 for a string, 1 for an
// array of strings.
func (d *Decoder) RawLevels() (raw Raw, levels int, err error) {
	d.peek()
	begin := d.at
	if levels, err = d.skip(); err != nil {
		return nil, 0, err
	}
	return Raw(d.text[begin:d.at]), levels, nil
}

// RawAppend appends a value of any type to dst.
func (d *Decoder) RawAppend(dst Raw) (Raw, error) {
	raw, err := d.Raw()
	return append(dst, raw...), err
}

// Skip reads a value of any type.
func (d *Decoder) Skip() error {
	_, err := d.skip()
	return err
}

// peek advances to the next byte that is not blank and returns it, or 0 at the end.
func (d *Decoder) peek() byte {
	if d.at < len(d.text) && d.text[d.at] > ' ' {
		return d.text[d.at]
	}
	if d.at = unblank(d.text, d.at); d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// unblank returns the index of the first byte from i on that is not blank, or the length of the text.
func unblank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

func (d *Decoder) unexpected() error {
	if d.at >= len(d.text) {
		return &SyntaxError{At: len(d.text), What: endOfInput}
	}
	c := d.text[d.at]
	if c < ' ' || c > '~' {
		return &SyntaxError{At: d.at, What: "unexpected 0x" + string([]byte{digits[c>>4], digits[c&0xF]})}
	}
	return &SyntaxError{At: d.at, What: "unexpected '" + string(rune(c)) + "'"}
}

func (d *Decoder) consume(c byte) error {
	if d.peek() != c {
		return d.unexpected()
	}
	d.at++
	return nil
}

func (d *Decoder) literal(want string) error {
	d.peek()
	for i := range len(want) {
		if d.at >= len(d.text) || d.text[d.at] != want[i] {
			return d.unexpected()
		}
		d.at++
	}
	return nil
}

func (d *Decoder) skipNumber() error {
	if d.at < len(d.text) && d.text[d.at] == '-' {
		d.at++
	}
	if d.at < len(d.text) && d.text[d.at] == '0' {
		d.at++
	} else if err := d.skipDigits(); err != nil {
		return err
	}
	if d.at < len(d.text) && d.text[d.at] == '.' {
		d.at++
		if err := d.skipDigits(); err != nil {
			return err
		}
	}
	if d.at < len(d.text) && d.text[d.at]|0x20 == 'e' {
		d.at++
		if d.at < len(d.text) && (d.text[d.at] == '+' || d.text[d.at] == '-') {
			d.at++
		}
		return d.skipDigits()
	}
	return nil
}

// skipDigits skips one or more digits.
func (d *Decoder) skipDigits() error {
	begin := d.at
	for d.at < len(d.text) && isDigit(d.text[d.at]) {
		d.at++
	}
	if d.at == begin {
		return d.unexpected()
	}
	return nil
}

// skip skips a value and returns its number of levels. Most of a large text is read here, so it keeps its position in a
// variable and calls as few functions as it can: in a guest each call is counted.
func (d *Decoder) skip() (levels int, err error) {
	// One bit per level: whether it is an object. This replaces recursion, because a guest's stack is small.
	var objects uint64
	text, outside, deepest := d.text, d.depth, d.depth
	i, key := d.at, false
	for {
		// A value, or a field's name.
		if i >= len(text) || text[i] <= ' ' {
			if i = unblank(text, i); i == len(text) {
				return 0, d.fail(i)
			}
		}
		switch c := text[i]; {
		case c == '"':
			if i = special(text, i+1); i < len(text) && text[i] == '"' {
				i++
			} else if i, err = d.endString(i); err != nil {
				return 0, err
			}
			if key {
				if i >= len(text) || text[i] != ':' {
					if i = unblank(text, i); i == len(text) || text[i] != ':' {
						return 0, d.fail(i)
					}
				}
				i, key = i+1, false
				continue
			}
		case key:
			return 0, d.fail(i)
		case c == '{' || c == '[':
			if d.depth++; d.depth > d.limit {
				return 0, &SyntaxError{At: i, What: nestedDeep}
			}
			deepest = max(deepest, d.depth)
			level := d.depth - 1
			objects &^= 1 << level
			if c == '{' {
				objects |= 1 << level
			}
			// in ASCII each closing bracket is two after its opening one
			if i = unblank(text, i+1); i == len(text) || text[i] != c+2 {
				key = c == '{'
				continue
			}
			i++
			d.depth--
		default:
			d.at = i
			switch c {
			case 't':
				err = d.literal("true")
			case 'f':
				err = d.literal("false")
			case 'n':
				err = d.literal("null")
			default:
				err = d.skipNumber()
			}
			if err != nil {
				return 0, err
			}
			i = d.at
		}
		// After a value: the next element, or the end of the levels that this value closes.
		for {
			if d.depth == outside {
				d.at = i
				return deepest - outside, nil
			}
			if i >= len(text) || text[i] <= ' ' {
				if i = unblank(text, i); i == len(text) {
					return 0, d.fail(i)
				}
			}
			level := d.depth - 1
			isObject := objects>>level&1 == 1
			c := text[i]
			i++
			if c == ',' {
				key = isObject
				break
			}
			if c != '}' && c != ']' || (c == '}') != isObject {
				return 0, d.fail(i - 1)
			}
			d.depth--
		}
	}
}

func (d *Decoder) fail(at int) error {
	d.at = at
	return d.unexpected()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// view returns text as a string without copying it.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
