package abi

import (
	"errors"
	"io"
	"strconv"

	"github.com/go-faster/jx"
)

// fieldError is a value that is not what its field wants. The path is put together by the callers on the way back.
type fieldError struct{ path, what string }

func (e *fieldError) Error() string {
	if e.path == "" {
		return e.what
	}
	return e.path + ": " + e.what
}

// As makes it an Error where Decode was called without Unmarshal.
func (e *fieldError) As(target any) bool {
	t, ok := target.(**Error)
	if ok {
		*t = NewError(CodeInvalidArgument, e.Error())
	}
	return ok
}

// inField puts a name before the path of a fieldError. Other errors are of the text, not of a field.
func inField(name string, err error) error {
	if f, ok := find[*fieldError](err); ok {
		f.path = joinPath(name, f.path)
	}
	return err
}

// mismatch reports a value of another type than the field's.
func mismatch(d *jx.Decoder, what string) error {
	var got string
	switch d.Next() {
	case jx.String:
		got = "a string"
	case jx.Number:
		got = "a number"
	case jx.Bool:
		got = "a boolean"
	case jx.Array:
		got = "an array"
	case jx.Object:
		got = "an object"
	default:
		return d.Skip() // no value at all
	}
	return &fieldError{what: "want " + what + ", got " + got}
}

func joinPath(name, rest string) string {
	if rest == "" || rest[0] == '[' {
		return name + rest
	}
	return name + "." + rest
}

func indexPath(i int) string { return "[" + itoa(i) + "]" }

// keyPath is a map's key in a path: as it is when it reads like a field, else quoted.
func keyPath(key string) string {
	const longest = 64
	if len(key) > longest {
		key = key[:longest] + "..."
	}
	for i := range len(key) {
		c := key[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "[" + strconv.Quote(key) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return key
}

func itoa(i int) string { return strconv.Itoa(i) }

func shorten(text []byte) string {
	const most = 40
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}

// atEnd tells that nothing but blanks is left. It reads on where it is not.
func atEnd(d *jx.Decoder) bool {
	// Wrapped, it would be the end of input inside a further value.
	return d.Skip() == io.EOF
}

// notJSON says why data is not one JSON value; it returns "" where it is.
func notJSON(data []byte) string {
	d := jx.DecodeBytes(data)
	if err := d.Skip(); err != nil {
		return "not JSON: " + complaint(d, len(data), err)
	}
	if !atEnd(d) {
		return "not JSON: there is more after the end of the value"
	}
	return ""
}

// complaint is what the decoder found wrong, without the names of its own functions around it.
func complaint(d *jx.Decoder, length int, err error) string {
	if isEnd(err) { // or a number that ends with its point, for which the decoder has the same error
		further := d.Skip()
		if further == nil {
			return "a number ends with its point"
		}
		err = further
	}
	if isEnd(err) {
		return "unexpected end of input at byte " + itoa(length)
	}
	return innermost(err).Error()
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
