package schema

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/memhost/memhost/abi"
)

// CanonicalJSON writes a JSON value in the form that all equal values share: RFC 8785 (keys sorted by UTF-16 code unit,
// no spaces, the fewest escapes, numbers as ECMAScript prints them), except that a number with more digits than a
// double holds keeps them all: 9007199254740993 must not become 9007199254740992. Nil is null.
//
// Errors: invalid_argument for input that Decode rejects.
func CanonicalJSON(raw abi.Raw) (abi.Raw, error) {
	if len(raw) == 0 {
		return abi.Raw("null"), nil
	}
	v, err := Decode(raw, nil)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, err.Error(), err)
	}
	return Canonical(v), nil
}

// Canonical is CanonicalJSON of a value in the form that Decode returns. Other Go types are a mistake of the caller and
// panic.
func Canonical(v any) abi.Raw { return appendCanonical(nil, v) }

// Hash is the SHA-256, in hex, of the canonical JSON of raw, or of the bytes themselves if they are not JSON.
func Hash(raw abi.Raw) string {
	c, err := CanonicalJSON(raw)
	if err != nil {
		c = raw
	}
	return fmt.Sprintf("%x", sha256.Sum256(c))
}

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendString(b, v)
	case json.Number:
		return append(b, canonicalNumber(string(v))...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, e)
		}
		return append(b, ']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, compareUTF16)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k), ':')
			b = appendCanonical(b, v[k])
		}
		return append(b, '}')
	}
	panic("schema: not a decoded JSON value")
}

func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(b, '"')
}

// canonicalNumber writes a JSON number as ECMAScript's Number::toString would with unlimited digits.
func canonicalNumber(literal string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(literal, "-"); ok {
		sign, literal = "-", rest
	}
	exponent := 0
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(literal[i+1:]) // Decode has bounded it
		literal = literal[:i]
	}
	whole, fraction, _ := strings.Cut(literal, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	// point is the position of the decimal point, counted from the first digit.
	point := len(digits) - len(fraction) + exponent
	digits = strings.TrimRight(digits, "0")
	n := len(digits)
	switch {
	case n == 0:
		return "0"
	case n <= point && point <= 21:
		return sign + digits + strings.Repeat("0", point-n)
	case 0 < point && point <= 21:
		return sign + digits[:point] + "." + digits[point:]
	case -6 < point && point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	}
	mantissa := digits[:1]
	if n > 1 {
		mantissa += "." + digits[1:]
	}
	mark := "e+"
	if point-1 < 0 {
		mark = "e"
	}
	return sign + mantissa + mark + strconv.Itoa(point-1)
}
