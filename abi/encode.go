package abi

import (
	"github.com/memhost/memhost/abi/wirejson"
)

// The generated codecs call these functions to write fields.

func writeString(v string, e *wirejson.Encoder) { e.Str(v) }

// Each of these functions writes a name and a value; those with Some in their name write nothing for an empty value.

func writeStringField(name string, v *string, e *wirejson.Encoder) {
	e.FieldStart(name)
	e.Str(*v)
}

func writeSomeString(name string, v *string, e *wirejson.Encoder) {
	if *v != "" {
		writeStringField(name, v, e)
	}
}

func writeBoolField(name string, v bool, e *wirejson.Encoder) {
	e.FieldStart(name)
	e.Bool(v)
}

func writeIntField(name string, v int64, e *wirejson.Encoder) {
	e.FieldStart(name)
	e.Int64(v)
}

func writeFloatField(name string, v float64, e *wirejson.Encoder) {
	e.FieldStart(name)
	e.Float64(v)
}

func writeSome[T comparable](name string, v T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	var none T
	if v != none {
		e.FieldStart(name)
		elem(v, e)
	}
}

func writeSomeRaw(name string, v Raw, e *wirejson.Encoder) {
	if len(v) > 0 {
		e.FieldStart(name)
		e.Raw(v)
	}
}

func writeSomePtr[T any](name string, v *T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	if v != nil {
		e.FieldStart(name)
		elem(*v, e)
	}
}

func writeSomeSlice[T any](name string, v []T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	if len(v) > 0 {
		e.FieldStart(name)
		writeSlice(v, e, elem)
	}
}

func writeSomeMap[T any](name string, v map[string]T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	if len(v) > 0 {
		e.FieldStart(name)
		writeMap(v, e, elem)
	}
}

func writeBool(v bool, e *wirejson.Encoder) { e.Bool(v) }

func writeInt(v int64, e *wirejson.Encoder) { e.Int64(v) }

func writeFloat(v float64, e *wirejson.Encoder) { e.Float64(v) }

func writeRaw(v Raw, e *wirejson.Encoder) {
	if len(v) == 0 {
		e.Null()
		return
	}
	e.Raw(v)
}

func writeIntPtr(v *int64, e *wirejson.Encoder) { writePtr(v, e, writeInt) }

func writePtr[T any](v *T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(*v, e)
}

func writeStructPtr[T any](v *T, e *wirejson.Encoder, elem func(*T, *wirejson.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(v, e)
}

func writeSlice[T any](v []T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(v[i], e)
	}
	e.ArrEnd()
}

func writeTexts(v []string, e *wirejson.Encoder) { writeSlice(v, e, writeString) }

func writeStructs[T any](v []T, e *wirejson.Encoder, elem func(*T, *wirejson.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(&v[i], e)
	}
	e.ArrEnd()
}

// writeMap writes the members in the byte order of their keys.
func writeMap[T any](v map[string]T, e *wirejson.Encoder, elem func(T, *wirejson.Encoder)) {
	e.ObjStart()
	for _, key := range SortedKeys(v) {
		e.FieldStart(key)
		elem(v[key], e)
	}
	e.ObjEnd()
}

func writeStructMap[T any](v map[string]T, e *wirejson.Encoder, elem func(*T, *wirejson.Encoder)) {
	writeMap(v, e, func(value T, e *wirejson.Encoder) { elem(&value, e) })
}

// SortedKeys returns a map's keys in byte order, or nil if it has none.
func SortedKeys[T any](m map[string]T) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	SortTexts(keys)
	return keys
}

// SortTexts sorts in byte order, by heap: slices.Sort would add 5 KB to every guest.
func SortTexts(list []string) {
	down := func(i, n int) {
		for child := 2*i + 1; child < n; child = 2*i + 1 {
			if child+1 < n && list[child] < list[child+1] {
				child++
			}
			if list[i] >= list[child] {
				return
			}
			list[i], list[child] = list[child], list[i]
			i = child
		}
	}
	for i := len(list)/2 - 1; i >= 0; i-- {
		down(i, len(list))
	}
	for n := len(list) - 1; n > 0; n-- {
		list[0], list[n] = list[n], list[0]
		down(0, n)
	}
}
