package sdk

// IDRules describe the ids that a backend accepts. NativeID maps onto them injectively: two different lists of parts
// never give the same id.
type IDRules struct {
	// Plain tells which bytes stand for themselves. Escape and Separator are never plain, whatever it says.
	Plain func(byte) bool
	// Escape begins an escaped byte: Escape and two lower-case hex digits. It must be allowed by the backend.
	Escape byte
	// Separator stands between parts. It must be allowed by the backend and differ from Escape.
	Separator byte
	// Max is the longest id, in bytes; 0 means no bound. A longer id becomes Escape, "h" and the hex SHA-256 of the
	// whole id, so Max is at least 66.
	Max int
}

// AlphaNumeric is a Plain for backends that keep upper and lower case apart.
func AlphaNumeric(b byte) bool { return LowerNumeric(b) || b >= 'A' && b <= 'Z' }

// LowerNumeric is a Plain for backends that fold case: upper-case letters are escaped.
func LowerNumeric(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// NativeID joins parts to one id within the rules. An empty part stays recognisable, since the separators around it
// remain; a single empty part is Escape alone, and only no parts at all give the empty string.
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
