package conformance

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// decode reads one JSON value, numbers as they are written.
func decode(text []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b []byte) bool {
	x, ok := decode(a)
	y, also := decode(b)
	return ok && also && sameValue(x, y)
}

// sameValue compares decoded values; numbers by what they are worth.
func sameValue(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameValue(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key := range x {
			other, ok := y[key]
			if !ok || !sameValue(x[key], other) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err := a.Float64()
	y, err2 := b.Float64()
	return err == nil && err2 == nil && x == y
}

// anywhere reports whether ok holds of a value or of any value inside it.
func anywhere(value any, ok func(any) bool) bool {
	if ok(value) {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if anywhere(inner, ok) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if anywhere(inner, ok) {
				return true
			}
		}
	}
	return false
}

// anywhereInside is anywhere, also in JSON inside a text.
func anywhereInside(value any, ok func(any) bool) bool {
	return anywhere(value, func(v any) bool {
		if text, isText := v.(string); isText && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
			if inner, isJSON := decode([]byte(text)); isJSON && anywhereInside(inner, ok) {
				return true
			}
		}
		return ok(v)
	})
}

// bodyValue is a body as a value: JSON, or else a text, as a form is.
func bodyValue(body []byte) any {
	if v, ok := decode(body); ok {
		return v
	}
	return string(body)
}
