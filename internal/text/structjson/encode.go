// Package structjson writes and reads structs by their json tags. Bytes, values and errors are those of the generated
// codecs of package abi, which modules need for their size; what only a host says has too little to do for these.
//
// A field is of the type string, bool, int64, float64 or abi.Raw, a named string, a struct, or a pointer, slice or map of
// these. Its tag is a name, and may have omitempty. A struct with codecs of its own is written and read by them.
package structjson

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Encode writes the struct that x points to as one JSON object.
func Encode(e *wirejson.Encoder, x any) { writeStruct(e, reflect.ValueOf(x).Elem()) }

// field is a field of a struct in JSON.
type field struct {
	name      string
	omitEmpty bool
}

func fieldOf(f reflect.StructField) field {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || option != "" && option != "omitempty" {
		panic(fmt.Sprintf("structjson: field %s has the tag %q", f.Name, f.Tag))
	}
	return field{name, option == "omitempty"}
}

func writeStruct(e *wirejson.Encoder, v reflect.Value) {
	e.ObjStart()
	for i := range v.NumField() {
		if f := fieldOf(v.Type().Field(i)); !f.omitEmpty || !isEmpty(v.Field(i)) {
			e.FieldStart(f.name)
			write(e, v.Field(i))
		}
	}
	e.ObjEnd()
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// write writes an addressable value.
func write(e *wirejson.Encoder, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case abi.Encodable:
		x.Encode(e)
		return
	case *abi.Raw:
		if len(*x) == 0 {
			e.Null()
		} else {
			e.Raw(*x)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		e.Str(v.String())
	case reflect.Bool:
		e.Bool(v.Bool())
	case reflect.Int64:
		e.Int64(v.Int())
	case reflect.Float64:
		e.Float64(v.Float())
	case reflect.Struct:
		writeStruct(e, v)
	case reflect.Pointer:
		if v.IsNil() {
			e.Null()
		} else {
			write(e, v.Elem())
		}
	case reflect.Slice:
		e.ArrStart()
		for i := range v.Len() {
			write(e, v.Index(i))
		}
		e.ArrEnd()
	case reflect.Map:
		writeMap(e, v)
	default:
		panic("structjson: no way to write a " + v.Type().String())
	}
}

// writeMap writes the members in the byte order of their keys.
func writeMap(e *wirejson.Encoder, v reflect.Value) {
	e.ObjStart()
	keys := make(map[string]struct{}, v.Len())
	for _, key := range v.MapKeys() {
		keys[key.String()] = struct{}{}
	}
	for _, key := range abi.SortedKeys(keys) {
		e.FieldStart(key)
		member := reflect.New(v.Type().Elem()).Elem()
		member.Set(v.MapIndex(reflect.ValueOf(key)))
		write(e, member)
	}
	e.ObjEnd()
}
