// Package unambiguous rejects JSON that two parsers could read differently: an object with a duplicate name, where some
// parsers take the first value and some the last; two names that differ only in case, which some parsers, including
// Go's, treat as equal; and half of a surrogate pair, which Go silently replaces with U+FFFD. In each case two ids, and
// so two scopes, could become one, and a text could change on its way.
package unambiguous

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Check checks a text that abi.Unmarshal has accepted as JSON.
//
// Errors: invalid_argument; the message begins with the path of the second of two names, or names the position of half
// a pair.
func Check(text []byte) error {
	if at := HalfPair(text); at >= 0 {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s at byte %d is half of a surrogate pair, which is no character",
				text[at:at+wirejson.EscapeLen], at)).
			WithHint("a text was cut inside a character; leave the half out, or write the whole of it")
	}
	var w walker
	if err := w.value(wirejson.DecodeBytes(text)); err != nil {
		return abi.AsError(err)
	}
	return nil
}

// HalfPair returns the position of the first \u escape of a surrogate without its other half; -1 if there is none. The
// text must be JSON, where backslashes only occur in strings.
func HalfPair(text []byte) int {
	for i := 0; ; {
		next := bytes.IndexByte(text[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		r, ok := wirejson.CodeUnit(text[i:])
		switch {
		case !ok:
			i += len(`\n`)
		case !utf16.IsSurrogate(r):
			i += wirejson.EscapeLen
		default:
			low, ok := wirejson.CodeUnit(text[i+wirejson.EscapeLen:])
			if !ok || utf16.DecodeRune(r, low) == '\uFFFD' {
				return i
			}
			i += 2 * wirejson.EscapeLen
		}
	}
}

// walker walks through a text; path is the present position.
type walker struct{ path []string }

func (w *walker) value(d *wirejson.Decoder) error {
	switch d.Next() {
	case wirejson.Object:
		return w.object(d)
	case wirejson.Array:
		i := 0
		return d.Arr(func(d *wirejson.Decoder) error {
			err := w.under("["+strconv.Itoa(i)+"]", d)
			i++
			return err
		})
	}
	return d.Skip()
}

func (w *walker) object(d *wirejson.Decoder) error {
	seen := map[string]string{} // by their form without regard to case
	return d.Obj(func(d *wirejson.Decoder, name string) error {
		if first, twice := seen[fold(name)]; twice {
			at := strings.TrimPrefix(strings.Join(append(w.path, step(name)), ""), ".")
			if first == name {
				return abi.NewError(abi.CodeInvalidArgument,
					at+": given twice, and which of the two counts would be a guess")
			}
			return abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("%s: differs from %q only in case, and some readers take the two for one", at,
					shortened(first)))
		}
		seen[fold(name)] = name
		return w.under(step(name), d)
	})
}

func (w *walker) under(step string, d *wirejson.Decoder) error {
	w.path = append(w.path, step)
	err := w.value(d)
	w.path = w.path[:len(w.path)-1]
	return err
}

// fold makes names equal that differ only in case, for every pair of letters that Unicode folds: the Kelvin sign is k.
func fold(name string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, name)
}

// step formats a name in a path, quoted if it would be ambiguous.
func step(name string) string {
	plain := func(r rune) bool {
		return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if name != "" && len(name) <= longestName && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return "." + name
	}
	return "[" + strconv.Quote(shortened(name)) + "]"
}

// longestName is how many bytes of a name are shown.
const longestName = 64

func shortened(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "..."
}
