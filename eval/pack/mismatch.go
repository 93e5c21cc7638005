package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Mismatch explains why JSON does not fit, in the terms of the file: "a number in question_id, want a string". Other
// errors are returned unchanged.
func Mismatch(err error) string {
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	where := ""
	if other.Field != "" {
		where = " in " + other.Field
	}
	value := "a " + other.Value
	switch {
	case other.Value == "bool":
		value = "true or false"
	case strings.HasPrefix(other.Value, "a"), strings.HasPrefix(other.Value, "o"):
		value = "an " + other.Value
	}
	return fmt.Sprintf("%s%s, want %s", value, where, kindOf(other.Type))
}

// kindOf is the JSON type that a field accepts.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Slice:
		return "an array of " + strings.NewReplacer("an array", "arrays", "a string", "strings", "an object", "objects",
			"a whole number", "whole numbers", "a number", "numbers").Replace(kindOf(t.Elem()))
	}
	return "an object"
}
