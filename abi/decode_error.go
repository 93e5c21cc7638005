package abi

import (
	"strconv"

	"github.com/memhost/memhost/abi/wirejson"
)

// fieldError reports a value that its field does not accept. The callers build its path as they return it.
type fieldError struct{ path, what string }

func (e *fieldError) Error() string {
	if e.path == "" {
		return e.what
	}
	return e.path + ": " + e.what
}

// As converts the error to an Error, for code that called Decode without Unmarshal.
func (e *fieldError) As(target any) bool {
	t, ok := target.(**Error)
	if ok {
		*t = NewError(CodeInvalidArgument, e.Error())
	}
	return ok
}

// inField prepends a name to the path of a fieldError. Other errors concern the text and have no path.
func inField(name string, err error) error {
	if f, ok := find[*fieldError](err); ok {
		f.path = joinPath(name, f.path)
	}
	return err
}

// mismatch reports a value of the wrong type.
func mismatch(d *wirejson.Decoder, what string) error {
	var got string
	switch d.Next() {
	case wirejson.String:
		got = "a string"
	case wirejson.Number:
		got = "a number"
	case wirejson.Bool:
		got = "a boolean"
	case wirejson.Array:
		got = "an array"
	case wirejson.Object:
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

// keyPath returns a map's key as part of a path: unquoted if it could be a field name, otherwise quoted.
func keyPath(key string) string {
	const longest = 64
	if len(key) > longest {
		key = key[:longest] + "..."
	}
	for i := range len(key) {
		c := key[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "[" + wirejson.Quote(key) + "]"
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

// notJSON returns "" if data is one JSON value of at most levels levels, else what is wrong with it.
func notJSON(data []byte, levels int) string {
	err := wirejson.DecodeBytes(data).Limit(levels).Validate()
	if err == nil {
		return ""
	}
	if at, deep := wirejson.DepthError(err); deep {
		return "nested too deep at byte " + itoa(at) + ", want at most " + itoa(MaxDepth) +
			" levels, in a free value " +
			itoa(MaxValueDepth)
	}
	return "not JSON: " + err.Error()
}
