package abi

import (
	"unicode/utf8"

	"github.com/go-faster/jx"
)

// What the generated code calls to write a field.

func writeString(v string, e *jx.Encoder) {
	if !utf8.ValidString(v) {
		v = validUTF8(v)
	}
	e.Str(v)
}

// validUTF8 puts U+FFFD for every byte that is not UTF-8.
func validUTF8(s string) string {
	b := make([]byte, 0, len(s)+8)
	for _, r := range s {
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

func writeBool(v bool, e *jx.Encoder) { e.Bool(v) }

func writeInt(v int64, e *jx.Encoder) { e.Int64(v) }

func writeFloat(v float64, e *jx.Encoder) { e.Float64(v) }

func writeRaw(v Raw, e *jx.Encoder) {
	if len(v) == 0 {
		e.Null()
		return
	}
	e.Raw(v)
}

func writeIntPtr(v *int64, e *jx.Encoder) { writePtr(v, e, writeInt) }

func writePtr[T any](v *T, e *jx.Encoder, elem func(T, *jx.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(*v, e)
}

func writeStructPtr[T any](v *T, e *jx.Encoder, elem func(*T, *jx.Encoder)) {
	if v == nil {
		e.Null()
		return
	}
	elem(v, e)
}

func writeSlice[T any](v []T, e *jx.Encoder, elem func(T, *jx.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(v[i], e)
	}
	e.ArrEnd()
}

func writeStructs[T any](v []T, e *jx.Encoder, elem func(*T, *jx.Encoder)) {
	e.ArrStart()
	for i := range v {
		elem(&v[i], e)
	}
	e.ArrEnd()
}

func writeMap[T any](v map[string]T, e *jx.Encoder, elem func(T, *jx.Encoder)) {
	var few [16]string
	e.ObjStart()
	for _, key := range sortedKeys(few[:0], v) {
		startField(key, e)
		elem(v[key], e)
	}
	e.ObjEnd()
}

func writeStructMap[T any](v map[string]T, e *jx.Encoder, elem func(*T, *jx.Encoder)) {
	var few [16]string
	var t T
	e.ObjStart()
	for _, key := range sortedKeys(few[:0], v) {
		startField(key, e)
		t = v[key]
		elem(&t, e)
	}
	e.ObjEnd()
}

func startField(key string, e *jx.Encoder) {
	if !utf8.ValidString(key) {
		key = validUTF8(key)
	}
	e.FieldStart(key)
}

func sortedKeys[T any](keys []string, m map[string]T) []string {
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
