package wirejson

import (
	"io"
	"strconv"
	"unsafe"
)

// MaxDepth is how deep arrays and objects may nest in a text unless Limit sets less.
const MaxDepth = 64

// Type is the kind of a value.
type Type uint8

// The types of values; Invalid is the end of the text, or what begins no value.
const (
	Invalid Type = iota
	String
	Number
	Null
	Bool
	Array
	Object
)

// String is the type's name: "string", "object", ...
func (t Type) String() string {
	return [...]string{"invalid", "string", "number", "null", "bool", "array", "object"}[t]
}

// Raw is one value as it is in the text.
type Raw []byte

// Type is the type of the value.
func (r Raw) Type() Type {
	d := Decoder{text: r}
	return d.Next()
}

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	// At is the offset of the byte that does not fit, or the length of the text where it ends too early.
	At int
	// What is the complaint, without the place.
	What string
}

// Error says what is wrong, and where: unexpected '}' at byte 14.
func (e *SyntaxError) Error() string { return e.What + " at byte " + strconv.Itoa(e.At) }

// Unwrap makes a text that ends too early an io.ErrUnexpectedEOF.
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

// DepthError reports whether err, as a Decoder returned it, says that a text nests deeper than the limit, and where.
func DepthError(err error) (at int, is bool) {
	e, ok := err.(*SyntaxError) //nolint:errorlint // errors.As brings reflection into a guest
	if !ok || e.What != nestedDeep {
		return 0, false
	}
	return e.At, true
}

// Decoder reads one text from its beginning to its end. After an error its place is of no use.
type Decoder struct {
	text   []byte
	at     int
	depth  int // how many arrays and objects it is in
	limit  int
	copies bool
}

// DecodeBytes reads text. Strings and names without escapes refer to it, so it must not change as long as they are in
// use; Copying is for a text that does.
func DecodeBytes(text []byte) *Decoder { return &Decoder{text: text, limit: MaxDepth} }

// DecodeStr reads text.
func DecodeStr(text string) *Decoder { return DecodeBytes([]byte(text)) }

// Valid reports whether text is one JSON value.
func Valid(text []byte) bool { return DecodeBytes(text).Validate() == nil }

// Limit sets how deep arrays and objects may nest, at most MaxDepth. It returns d.
func (d *Decoder) Limit(levels int) *Decoder {
	d.limit = min(levels, MaxDepth)
	return d
}

// Copying makes the strings that are read copies of the text. It returns d.
func (d *Decoder) Copying() *Decoder {
	d.copies = true
	return d
}

// Keep returns a part of the text as it may be kept: itself, or a copy where d is Copying.
func (d *Decoder) Keep(part Raw) Raw {
	if d.copies {
		return append(Raw(nil), part...)
	}
	return part[:len(part):len(part)]
}

// Next tells the type of the next value and reads nothing.
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

// AtEnd tells that nothing but blanks is left.
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

// Int64 reads a whole number, written without point and exponent.
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

// Int is Int64 for a number that fits an int.
func (d *Decoder) Int() (int, error) {
	n, err := d.Int64()
	if err == nil && int64(int(n)) != n {
		return 0, &SyntaxError{At: d.at, What: "a whole number too large"}
	}
	return int(n), err
}

// Float64 reads a number; one that is too large for the type is an error.
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

// Num reads a number and returns it as it is. The bytes are the text's.
func (d *Decoder) Num() (Raw, error) {
	d.peek()
	begin := d.at
	if err := d.skipNumber(); err != nil {
		return nil, err
	}
	return Raw(d.text[begin:d.at]), nil
}

// Raw reads a value of any type and returns it as it is. The bytes are the text's.
func (d *Decoder) Raw() (Raw, error) {
	raw, _, err := d.RawLevels()
	return raw, err
}

// RawLevels is Raw that also tells how many levels of arrays and objects the value has: none for a string, one for an
// array of strings.
func (d *Decoder) RawLevels() (raw Raw, levels int, err error) {
	d.peek()
	begin := d.at
	if levels, err = d.skip(); err != nil {
		return nil, 0, err
	}
	return Raw(d.text[begin:d.at]), levels, nil
}

// RawAppend is Raw, appended to dst.
func (d *Decoder) RawAppend(dst Raw) (Raw, error) {
	raw, err := d.Raw()
	return append(dst, raw...), err
}

// Skip reads a value of any type.
func (d *Decoder) Skip() error {
	_, err := d.skip()
	return err
}

// peek goes to the next byte that is no blank and returns it, or 0 at the end.
func (d *Decoder) peek() byte {
	if d.at < len(d.text) && d.text[d.at] > ' ' {
		return d.text[d.at]
	}
	if d.at = unblank(d.text, d.at); d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// unblank finds the first byte from i on that is no blank, or the end.
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

// skipDigits reads one digit or more.
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

// skip goes past a value and tells how many levels it has. It is where most of a large text passes, so it keeps its
// place in a variable and calls as little as it can: in a guest each call is counted.
func (d *Decoder) skip() (levels int, err error) {
	// Which of the levels below here are objects, a bit each: no recursion, since a guest's stack is small.
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
			// in ASCII each closing bracket stands two behind its opening one
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
		// What follows it: the next element, or the end of the levels that it is the last of.
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

// view is text as a string, without a copy.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
