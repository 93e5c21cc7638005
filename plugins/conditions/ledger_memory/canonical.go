package main

import "github.com/memhost/memhost/sdk"

// Canonical JSON as RFC 8785 has it, for what the ledger hashes: objects of strings, lists of strings and null.
// An encoder that escapes "<" or U+2028 would give other ids.

// idLength is how many hex digits of the SHA-256 are an id.
const idLength = 16

// idOf is the id of an object: the beginning of the SHA-256 of its canonical text.
func idOf(canonical []byte) string { return sdk.DigestBytes(canonical)[:idLength] }

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

// appendString writes a string with the escapes that RFC 8785 section 3.2.2.2 asks for, and no others. What needs none is appended at once: an append for
// each byte is a call in a guest.
func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(b, s[done:]...), '"')
}

// appendName writes the name of a field of an object that is open; sep is "{" or ",". Names need no escapes.
func appendName(b []byte, sep byte, name string) []byte {
	return append(append(append(b, sep, '"'), name...), '"', ':')
}

// appendField is appendName with a text behind it. What fits is put into its place: in a guest every append is a call.
func appendField(b []byte, sep byte, name, value string) []byte {
	from, at := len(b), len(b)+len(name)+5
	end := at + len(value)
	if !plain(value) || end+1 > cap(b) {
		return appendString(appendName(b, sep, name), value)
	}
	b = b[:end+1]
	b[from], b[from+1] = sep, '"'
	copy(b[from+2:], name)
	b[at-3], b[at-2], b[at-1] = '"', ':', '"'
	copy(b[at:], value)
	b[end] = '"'
	return b
}

// plain tells of a text that it needs no escapes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendOptional is appendField for a field that is null where it is empty.
func appendOptional(b []byte, sep byte, name, value string) []byte {
	if value != "" {
		return appendField(b, sep, name, value)
	}
	return append(appendName(b, sep, name), "null"...)
}
