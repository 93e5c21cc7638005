package sdk

// IDRules describe the ids that a backend accepts. NativeID maps lists of parts to ids so that two different lists
// never get the same id.
type IDRules struct {
	// Plain reports which bytes are copied unescaped. Escape and Separator are always escaped, whatever it returns.
	Plain func(byte) bool
	// Escape begins an escaped byte: Escape and two lower-case hex digits. The backend must allow it.
	Escape byte
	// Separator separates parts. The backend must allow it, and it must differ from Escape.
	Separator byte
	// Max is the maximum length of an id, in bytes; 0 means no limit. A longer id is replaced by Escape, "h" and the
	// hex SHA-256 of the whole id, so Max must be at least 66.
	Max int
}

// AlphaNumeric is a Plain for backends that distinguish upper and lower case.
func AlphaNumeric(b byte) bool { return LowerNumeric(b) || b >= 'A' && b <= 'Z' }

// LowerNumeric is a Plain for backends that ignore case: upper-case letters are escaped.
func LowerNumeric(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// NativeID joins parts to one id within the rules. Empty parts are preserved by their separators; a single empty part
// becomes Escape alone. Only an empty list gives "".
func NativeID(r IDRules, parts ...string) string {
	const digits = "0123456789abcdef"
	if len(parts) == 1 && parts[0] == "" {
		return string(rune(r.Escape))
	}
	var id []byte
	for i, part := range parts {
		if i > 0 {
			id = append(id, r.Separator)
		}
		for j := 0; j < len(part); j++ {
			b := part[j]
			if b != r.Escape && b != r.Separator && r.Plain(b) {
				id = append(id, b)
			} else {
				id = append(id, r.Escape, digits[b>>4], digits[b&15])
			}
		}
	}
	if r.Max > 0 && len(id) > r.Max {
		return string(rune(r.Escape)) + "h" + Digest256(string(id))
	}
	return string(id)
}
