package schema

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// Blanked replaces a credential.
const Blanked = "***"

// CredentialKey reports whether a value under this key is likely to be a credential: its last word is password, token,
// secret, authorization or the like, or it is an API key. Words are separated by anything but letters and digits, or by
// capitals (apiKey). The plural "tokens" is a number: max_tokens is no credential.
func CredentialKey(key string) bool {
	words := splitWords(key)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	switch last {
	case "password", "passwords", "passwd", "passphrase", "pwd", "pw", "token", "secret", "secrets", "credential",
		"credentials",
		"authorization", "bearer", "jwt", "apikey", "apikeys", "cookie":
		return true
	case "key", "keys":
		if len(words) > 1 {
			switch words[len(words)-2] {
			case "api", "access", "private", "secret", "auth", "admin", "signing", "encryption":
				return true
			}
		}
	}
	return false
}

func splitWords(key string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	lower := false
	for _, r := range key {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			lower = false
			continue
		}
		if unicode.IsUpper(r) && lower {
			end()
		}
		lower = unicode.IsLower(r)
		word.WriteRune(r)
	}
	end()
	return words
}

// SecretRef returns the name in {"secret": NAME}, the form in which a block names an operator's secret.
func SecretRef(v any) (name string, ok bool) {
	m, isMap := v.(map[string]any)
	if !isMap || len(m) != 1 {
		return "", false
	}
	name, ok = m["secret"].(string)
	return name, ok
}

// Blank returns a copy of a decoded value that is safe to show: strings and numbers under a credential's key become
// "***", and so do user names, passwords and credentials in the queries of URLs. {"secret": NAME} stays.
func Blank(v any) any { return blank(v, false) }

// BlankRaw is Blank for JSON text, in canonical form. Text that is not JSON becomes the string "***".
func BlankRaw(raw abi.Raw) abi.Raw {
	if len(raw) == 0 {
		return nil
	}
	v, err := Decode(raw, nil)
	if err != nil {
		return abi.Raw(`"` + Blanked + `"`)
	}
	return Canonical(Blank(v))
}

func blank(v any, credential bool) any {
	switch v := v.(type) {
	case string:
		if credential {
			return Blanked
		}
		return BlankText(v)
	case json.Number:
		if credential {
			return Blanked
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = blank(e, credential)
		}
		return out
	case map[string]any:
		if _, ok := SecretRef(v); ok {
			return map[string]any{"secret": v["secret"]}
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = blank(e, credential || CredentialKey(k))
		}
		return out
	}
	return v
}

// BlankText removes credentials from a text: scheme://user:password@host and ?api_key=... in URLs.
func BlankText(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	// Compiled at each use: packages have no mutable state, and this runs when a person reads a configuration.
	user := regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^/?#\s]*@`)
	query := regexp.MustCompile(`([?&])([^=&#\s]+)=([^&#\s]*)`)
	s = user.ReplaceAllString(s, "${1}"+Blanked+"@")
	return query.ReplaceAllStringFunc(s, func(pair string) string {
		name, _, _ := strings.Cut(pair[1:], "=")
		if !CredentialKey(name) {
			return pair
		}
		return pair[:1] + name + "=" + Blanked
	})
}

// Show describes the value at path in an error: short, and without possible credentials.
func Show(path []string, v any) string {
	credential := false
	for _, key := range path {
		credential = credential || CredentialKey(key)
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		if credential {
			return "a number (not shown)"
		}
		return cut(string(v), 40)
	case string:
		if credential {
			return "a string (not shown)"
		}
		return strconv.Quote(cut(BlankText(v), 60))
	case []any:
		return "a list of " + strconv.Itoa(len(v))
	case map[string]any:
		if len(v) == 0 {
			return "an empty object"
		}
		return "an object"
	}
	return "a value of another kind"
}

// Found is Show as part of a sentence: the number 7, the truth value true.
func Found(path []string, v any) string {
	switch v := v.(type) {
	case json.Number:
		if text := Show(path, v); !strings.HasPrefix(text, "a number") {
			return "the number " + text
		}
	case Odd:
		return "the number " + string(v)
	case bool:
		return "the truth value " + strconv.FormatBool(v)
	case string:
		if v == "" {
			return "an empty string"
		}
	}
	return Show(path, v)
}

// cut shortens s to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// Path writes a path the way people do: auth.mode, test_sessions[2], headers."x y". in is the value that the path leads
// into, which distinguishes a list's index from a key; with nil every step is a key.
func Path(path []string, in any) string {
	var b strings.Builder
	for _, step := range path {
		if list, ok := in.([]any); ok {
			b.WriteString("[" + step + "]")
			in = nil
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list) {
				in = list[i]
			}
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		if plainKey(step) {
			b.WriteString(step)
		} else {
			b.WriteString(strconv.Quote(step))
		}
		m, _ := in.(map[string]any)
		in = m[step]
	}
	return b.String()
}

func plainKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}
