package abi

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"
)

// What the generated code calls to write a field.

func writeString(v string, e *jsontext.Encoder) { e.Str(v) }

func writeBool(v bool, e *jsontext.Encoder) { e.Bool(v) }

func writeInt(v int64, e *jsontext.Encoder) { e.Int64(v) }

func writeFloat(v float64, e *jsontext.Encoder) { e.Float64(v) }

func writeRaw(v Raw, e *jsontext.Encoder) {
	if len(v) == 0 {
		e.Null()
		return
	}
	e.Raw(v)
}

func writeIntPtr(v *int64, e *jsontext.Encoder) { writePtr(v, e, writeInt) }

func writePtr[T any](v *T, e *jsontext.Encoder, elem func(T, *jsontext.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(*v, e)
}

func writeStructPtr[T any](v *T, e *jsontext.Encoder, elem func(*T, *jsontext.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(v, e)
}

func writeSlice[T any](v []T, e *jsontext.Encoder, elem func(T, *jsontext.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(v[i], e)
	}
	e.ArrEnd()
}

func writeStructs[T any](v []T, e *jsontext.Encoder, elem func(*T, *jsontext.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(&v[i], e)
	}
	e.ArrEnd()
}

func writeMap[T any](v map[string]T, e *jsontext.Encoder, elem func(T, *jsontext.Encoder)) {
	var few [16]string
	e.ObjStart()
	for _, key := range sortedKeys(few[:0], v) {
		e.FieldStart(key)
		elem(v[key], e)
	}
	e.ObjEnd()
}

func writeStructMap[T any](v map[string]T, e *jsontext.Encoder, elem func(*T, *jsontext.Encoder)) {
	var few [16]string
	var t T
	e.ObjStart()
	for _, key := range sortedKeys(few[:0], v) {
		e.FieldStart(key)
		t = v[key]
		elem(&t, e)
	}
	e.ObjEnd()
}

func sortedKeys[T any](keys []string, m map[string]T) []string {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
