package main

import "github.com/memhost/memhost/sdk"

// Canonical JSON as RFC 8785 has it, for what the ledger hashes: objects of strings, lists of strings and null.
// An encoder that escapes "<" or U+2028 would give other ids.

// idLength is how many hex digits of the SHA-256 are an id.
const idLength = 16

// idOf is the id of an object: the beginning of the SHA-256 of its canonical text.
func idOf(canonical []byte) string { return sdk.Digest256(string(canonical))[:idLength] }

// isID tells whether s is written as an id.
func isID(s string) bool { return len(s) == idLength && isHex(s) }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// appendString writes a string with the escapes that RFC 8785 section 3.2.2.2 asks for, and no others.
func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// appendField writes a field of an object that is open; sep is "{" or ",".
func appendField(b []byte, sep byte, name, value string) []byte {
	b = append(appendString(append(b, sep), name), ':')
	return appendString(b, value)
}

// appendOptional is appendField for a field that is null where it is empty.
func appendOptional(b []byte, sep byte, name, value string) []byte {
	if value != "" {
		return appendField(b, sep, name, value)
	}
	return append(append(appendString(append(b, sep), name), ':'), "null"...)
}
