package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// field is a field of an object to write: its name, and its value as JSON.
type field struct {
	name  string
	value abi.Raw
}

// object writes an object. A field without a value is left out.
func object(list ...field) abi.Raw {
	var e wirejson.Encoder
	e.ObjStart()
	for _, f := range list {
		if len(f.value) > 0 {
			e.FieldStart(f.name)
			e.Raw(f.value)
		}
	}
	e.ObjEnd()
	return e.Bytes()
}

// array writes an array.
func array(values ...abi.Raw) abi.Raw {
	var e wirejson.Encoder
	e.ArrStart()
	for _, value := range values {
		e.Raw(value)
	}
	e.ArrEnd()
	return e.Bytes()
}

// textList writes an array of strings.
func textList(list ...string) abi.Raw {
	values := make([]abi.Raw, len(list))
	for i, text := range list {
		values[i] = sdk.Text(text)
	}
	return array(values...)
}

// optional returns a string value, or no value for "", so that object leaves the field out.
func optional(text string) abi.Raw {
	if text == "" {
		return nil
	}
	return sdk.Text(text)
}

// fields lists the fields to read from an object, each with the place for its value: a *string, *bool, *int64,
// *[]string, *abi.Raw (a copy), *wirejson.Raw (a part of the text), *[]field, *item, *[]item, the fields of a nested
// object, or a function. Other fields are skipped. null leaves a place unchanged.
type fields []struct {
	name string
	to   any
}

// read reads an object.
func (f fields) read(d *wirejson.Decoder) error { return d.Obj(f.readField) }

func (f fields) readField(d *wirejson.Decoder, key string) error {
	for i := range f {
		if f[i].name == key {
			return readInto(d, f[i].to)
		}
	}
	return d.Skip()
}

func readInto(d *wirejson.Decoder, to any) (err error) {
	if d.Next() == wirejson.Null {
		return d.Null()
	}
	switch to := to.(type) {
	case *string:
		*to, err = d.Str()
	case *bool:
		*to, err = d.Bool()
	case *int64:
		*to, err = d.Int64()
	case *[]string:
		*to, err = texts(d)
	case *abi.Raw:
		*to, err = verbatim(d)
	case *wirejson.Raw:
		*to, err = d.Raw()
	case *[]field:
		*to, err = fieldsOf(d)
	case *item:
		err = d.Obj(to.readField)
	case *[]item:
		*to, err = items(d)
	case fields:
		err = to.read(d)
	case func(*wirejson.Decoder) error:
		err = to(d)
	}
	return err
}

// texts reads an array of strings; null, as the array or in it, is empty.
func texts(d *wirejson.Decoder) ([]string, error) {
	list := []string{}
	if d.Next() == wirejson.Null {
		return list, d.Null()
	}
	err := d.Arr(func(d *wirejson.Decoder) error {
		text := ""
		err := readInto(d, &text)
		list = append(list, text)
		return err
	})
	return list, err
}

// fieldsOf returns an object's fields as a copy; fields that are null are left out.
func fieldsOf(d *wirejson.Decoder) (list []field, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) error {
		if d.Next() == wirejson.Null {
			return d.Null()
		}
		name := string([]byte(key))
		value, err := verbatim(d)
		list = append(list, field{name, value})
		return err
	})
	return list, err
}

// verbatim returns a copy of a value of any type.
func verbatim(d *wirejson.Decoder) (abi.Raw, error) {
	value, err := d.RawAppend(nil)
	return abi.Raw(value), err
}

// answer reads an answer, one JSON object, in one pass. required are fields that it must have, not null, so that an
// unrelated answer does not look empty.
//
// Errors: backend, also for text that is not JSON, a value of another type, or nesting deeper than this guest's stack
// allows.
func answer(route string, body []byte, f fields, required ...string) error {
	d := wirejson.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != wirejson.Object {
		return unreadable(route, "no JSON object", body)
	}
	missing := append([]string(nil), required...)
	err := d.Obj(func(d *wirejson.Decoder, key string) error {
		for i, name := range missing {
			if name == key && d.Next() != wirejson.Null {
				missing[i] = ""
			}
		}
		return f.readField(d, key)
	})
	switch {
	case err != nil:
		return unreadable(route, err.Error(), body)
	case !d.AtEnd():
		return unreadable(route, "", body)
	}
	for _, name := range missing {
		if name != "" {
			return unusable(route, "one without "+name, body)
		}
	}
	return nil
}

// list reads an answer that is one JSON array.
func list(route string, body []byte, each func(d *wirejson.Decoder) error) error {
	d := wirejson.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != wirejson.Array {
		return unreadable(route, "no JSON array", body)
	}
	err := d.Arr(each)
	switch {
	case err != nil:
		return unreadable(route, err.Error(), body)
	case !d.AtEnd():
		return unreadable(route, "", body)
	}
	return nil
}

// unreadable returns the error for an answer that is cut off or has unexpected content.
func unreadable(route, what string, body []byte) error {
	if !abi.ValidJSON(body) {
		what = "no JSON that can be read"
	}
	return unusable(route, what, body)
}

// stringOf reads a JSON string; false for anything else.
func stringOf(value abi.Raw) (text string, ok bool) {
	text, err := wirejson.DecodeBytes(value).Str()
	return text, err == nil
}

func contains(list []string, text string) bool {
	for _, t := range list {
		if t == text {
			return true
		}
	}
	return false
}

// lower lower-cases ASCII letters, which is enough for headers and the servers' English. strings.ToLower would add
// tables of Unicode.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
