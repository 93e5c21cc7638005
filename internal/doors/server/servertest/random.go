package servertest

import (
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

// Random draws a *T with every exported field set to something that survives encoding as JSON: fields with omitempty
// may be nil or zero, others are never nil.
func Random[T any](t *rapid.T, label string) *T {
	v := new(T)
	fill(t, reflect.ValueOf(v).Elem(), label, false)
	return v
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", "*", "..", "é\"", "\u2028<b>",
		"\U0001F600 x", "line\nline"}))
}

func raw() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{`1`, `-0.5e+3`, `"a\u0000\ud83d\ude00"`, `{"a": [1, {"b":null}],"c":2}`, `[]`,
		"[ true,\tfalse ]", `""`})
}

func fill(t *rapid.T, v reflect.Value, label string, omit bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text().Draw(t, label))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, label))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, label))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, label))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, label) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), label, false)
		}
	case reflect.Struct:
		fillStruct(t, v, label)
	case reflect.Slice:
		fillSlice(t, v, label, omit)
	case reflect.Map:
		if n := rapid.IntRange(0, 2).Draw(t, label); n > 0 || !omit {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				elem := reflect.New(v.Type().Elem()).Elem()
				fill(t, elem, label, false)
				setNew(v, text().Draw(t, "key"), elem)
			}
		}
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

// setNew sets a key of a map, unless it contains a key that differs only in case: the doors reject such a pair.
func setNew(m reflect.Value, key string, elem reflect.Value) {
	for _, known := range m.MapKeys() {
		if strings.EqualFold(known.String(), key) {
			return
		}
	}
	m.SetMapIndex(reflect.ValueOf(key), elem)
}

func fillStruct(t *rapid.T, v reflect.Value, label string) {
	if r, ok := v.Addr().Interface().(*abi.ReceiptOrError); ok {
		if rapid.Bool().Draw(t, label) {
			r.Receipt = Random[abi.WriteReceipt](t, label)
			return
		}
		r.EventID, r.Error = text().Draw(t, label), Random[abi.Error](t, label)
		return
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			fill(t, v.Field(i), f.Name, strings.HasSuffix(f.Tag.Get("json"), ",omitempty"))
		}
	}
}

func fillSlice(t *rapid.T, v reflect.Value, label string, omit bool) {
	if v.Type() == reflect.TypeFor[abi.Raw]() {
		if rapid.Bool().Draw(t, label) {
			v.Set(reflect.ValueOf(abi.Raw(raw().Draw(t, label))))
		}
		return
	}
	if n := rapid.IntRange(0, 2).Draw(t, label); n > 0 || !omit {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), label, false)
		}
	}
}
