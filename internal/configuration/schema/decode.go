package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/unambiguous"
)

const (
	// maxExponent and maxLiteral bound a number: programs do not read larger ones, and exact arithmetic on 1e999999999
	// would use up all memory.
	maxExponent = 400
	maxLiteral  = 400
)

// Decode reads one JSON value: objects as map[string]any, lists as []any, numbers as json.Number.
//
// It refuses what encoding/json accepts or silently repairs: a key that occurs twice, invalid UTF-8, half a surrogate
// pair, text after the value, nesting deeper than abi.MaxDepth and numbers beyond the range of a double.
//
// In:     at, unless nil, is told the path and the line of every value in the order of the text; it must not keep path.
// Errors: plain ones that begin with the line; callers add where the text came from.
func Decode(raw []byte, at func(path []string, line int)) (any, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("line %d: not valid UTF-8", lineAt(raw, badUTF8(raw)))
	}
	d := decoder{json: json.NewDecoder(bytes.NewReader(raw)), raw: raw, line: 1, at: at}
	d.json.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, d.explain(err)
	}
	if _, err := d.json.Token(); err != io.EOF {
		return nil, fmt.Errorf("line %d: more than one JSON value", d.line)
	}
	if i := unambiguous.HalfPair(raw); i >= 0 {
		return nil, fmt.Errorf("line %d: %s is half a character (a lone surrogate)", lineAt(raw, i), raw[i:i+6])
	}
	return v, nil
}

type decoder struct {
	json *json.Decoder
	raw  []byte
	off  int64 // lines are counted up to here
	line int
	path []string
	at   func(path []string, line int)
}

func (d *decoder) token() (json.Token, error) {
	t, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	end := d.json.InputOffset()
	d.line += bytes.Count(d.raw[d.off:end], []byte("\n"))
	d.off = end
	return t, nil
}

func (d *decoder) value(depth int) (any, error) {
	t, err := d.token()
	if err != nil {
		return nil, err
	}
	if d.at != nil {
		d.at(d.path, d.line)
	}
	switch t := t.(type) {
	case json.Delim:
		if depth == abi.MaxDepth {
			return nil, d.errorf("nested deeper than %d levels", abi.MaxDepth)
		}
		if t == '[' {
			return d.list(depth + 1)
		}
		return d.object(depth + 1)
	case json.Number:
		if !readable(string(t)) {
			return nil, d.errorf("the number %s is out of range", cut(string(t), 40))
		}
	}
	return t, nil
}

func (d *decoder) list(depth int) (any, error) {
	list := []any{}
	for d.json.More() {
		d.path = append(d.path, strconv.Itoa(len(list)))
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		list = append(list, v)
	}
	_, err := d.token()
	return list, err
}

func (d *decoder) object(depth int) (any, error) {
	object := map[string]any{}
	for d.json.More() {
		t, err := d.token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // for a key, Token returns nothing else
		if _, twice := object[key]; twice {
			return nil, d.errorf("key %q stands twice", key)
		}
		d.path = append(d.path, key)
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		object[key] = v
	}
	_, err := d.token()
	return object, err
}

func (d *decoder) errorf(format string, args ...any) error {
	return &lineError{fmt.Sprintf("line %d: ", d.line) + fmt.Sprintf(format, args...)}
}

// lineError is an error that already names its line.
type lineError struct{ text string }

func (e *lineError) Error() string { return e.text }

func (d *decoder) explain(err error) error {
	var ours *lineError
	if errors.As(err, &ours) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("line %d: the JSON text ends too early", lineAt(d.raw, len(d.raw)))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: not JSON: %w", lineAt(d.raw, int(syntax.Offset)), err)
	}
	return fmt.Errorf("line %d: not JSON: %w", d.line, err)
}

// readable reports whether a double can hold a JSON number, within its precision.
func readable(literal string) bool {
	if len(literal) > maxLiteral {
		return false
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		if e, err := strconv.Atoi(literal[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return false
		}
	}
	_, err := strconv.ParseFloat(literal, 64)
	return err == nil
}

func lineAt(raw []byte, offset int) int {
	return 1 + bytes.Count(raw[:min(max(offset, 0), len(raw))], []byte("\n"))
}

func badUTF8(raw []byte) int {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(raw)
}

// Odd is a YAML number that is not a JSON number: 007 and 1_000, which readers interpret differently, or .nan. It fits
// no schema.
type Odd string

// Why explains what is wrong with an odd number.
func (o Odd) Why() string {
	if strings.Contains(strings.ToLower(string(o)), "n") {
		return fmt.Sprintf("found %s, but JSON has no such number; in quotes it is a text", string(o))
	}
	return fmt.Sprintf("found %s without quotes, which not everyone reads as the same number: put it in quotes if it "+
		"is a text, or write it plainly", string(o))
}

// withoutUnusual returns a copy of v with null in place of odd numbers.
func withoutUnusual(v any) any {
	switch v := v.(type) {
	case Odd:
		return nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutUnusual(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = withoutUnusual(e)
		}
		return out
	}
	return v
}
