// Package jsonpointer resolves RFC 6901 JSON Pointers in values that encoding/json has decoded.
package jsonpointer

import (
	"strconv"
	"strings"
)

// Find returns the value at a pointer, and false if there is none or the pointer is invalid. The empty pointer means
// the whole value.
func Find(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = Unescape(token)
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Set sets the value at a pointer, which may only lead through objects; missing ones are created. It returns false and
// changes nothing if something else is in the way, or if the pointer is empty or invalid.
func Set(object map[string]any, pointer string, value any) bool {
	if !strings.HasPrefix(pointer, "/") {
		return false
	}
	token, rest, deeper := strings.Cut(pointer[1:], "/")
	token = Unescape(token)
	if !deeper {
		object[token] = value
		return true
	}
	if object[token] == nil {
		next := map[string]any{}
		if !Set(next, "/"+rest, value) {
			return false
		}
		object[token] = next
		return true
	}
	next, ok := object[token].(map[string]any)
	return ok && Set(next, "/"+rest, value)
}

// Unescape decodes a token of a pointer: "a~1b~0c" becomes "a/b~c".
func Unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
