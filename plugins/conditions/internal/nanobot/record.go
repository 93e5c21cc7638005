package nanobot

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/sdk"
)

// Field is one member of a small JSON object: a number, a text, a truth, or a list of texts. One codec for all of them keeps a module small.
type Field struct {
	name string
	n    *int64
	text *string
	flag *bool
	list *[]string
	real *float64
}

type field = Field

func number(name string, n *int64) field   { return field{name: name, n: n} }
func word(name string, text *string) field { return field{name: name, text: text} }

// Number is a whole number.
func Number(name string, n *int64) Field { return field{name: name, n: n} }

// Word is a text.
func Word(name string, text *string) Field { return field{name: name, text: text} }

// Flag is a truth.
func Flag(name string, flag *bool) Field { return field{name: name, flag: flag} }

// List is a list of texts.
func List(name string, list *[]string) Field { return field{name: name, list: list} }

// Real is a number with a fraction.
func Real(name string, real *float64) Field { return field{name: name, real: real} }

// Encode writes an object; it leaves out zero numbers, empty texts and lists, and what is false.
func Encode(list ...Field) []byte { return encodeFields(list) }

func encodeFields(list []field) []byte {
	var e jsontext.Encoder
	e.ObjStart()
	for i := range list {
		f := &list[i]
		if f.zero() {
			continue
		}
		e.FieldStart(f.name)
		switch {
		case f.n != nil:
			e.Int64(*f.n)
		case f.text != nil:
			e.Str(*f.text)
		case f.flag != nil:
			e.Bool(true)
		case f.list != nil:
			WriteList(&e, *f.list)
		}
	}
	e.ObjEnd()
	return e.Bytes()
}

func (f *field) zero() bool {
	switch {
	case f.n != nil:
		return *f.n == 0
	case f.text != nil:
		return *f.text == ""
	case f.flag != nil:
		return !*f.flag
	case f.list != nil:
		return len(*f.list) == 0
	}
	return true
}

// Decode reads what it can: a member of another type, or a number that is not whole, is taken as absent.
func Decode(data []byte, list ...Field) error { return decodeFields(data, list) }

func decodeFields(data []byte, list []field) error {
	return DecodeFrom(jsontext.DecodeBytes(data), list, nil)
}

// DecodeFrom is Decode for an object that a decoder stands before. other reads members that are not in the list; nil skips them.
func DecodeFrom(d *jsontext.Decoder, list []Field, other func(d *jsontext.Decoder, key string) error) error {
	return d.Obj(func(d *jsontext.Decoder, key string) error {
		for i := range list {
			if list[i].name == key {
				return list[i].read(d)
			}
		}
		if other != nil && d.Next() != jsontext.Null {
			return other(d, key)
		}
		return d.Skip()
	})
}

func (f *field) read(d *jsontext.Decoder) (err error) {
	switch kind := d.Next(); {
	case f.n != nil && kind == jsontext.Number:
		raw, err := d.Raw()
		if n, bad := strconv.ParseInt(string(raw), 10, 64); bad == nil {
			*f.n = n
		}
		return err
	case f.real != nil && kind == jsontext.Number:
		*f.real, err = d.Float64()
	case f.text != nil && kind == jsontext.String:
		*f.text, err = d.Str()
	case f.flag != nil && kind == jsontext.Bool:
		*f.flag, err = d.Bool()
	case f.list != nil && kind == jsontext.Array:
		err = d.Arr(func(d *jsontext.Decoder) error {
			text, err := FlatContent(d)
			*f.list = append(*f.list, text)
			return err
		})
	default:
		err = d.Skip()
	}
	return err
}

// load reads a small object under a key and returns its version, 0 where there is none.
func load(c *sdk.Call, key string, list []field) (int64, error) {
	data, version, err := c.Get(key)
	if err != nil || version == 0 {
		return 0, err
	}
	if err := decodeFields(data, list); err != nil {
		return 0, unreadable(key)
	}
	return version, nil
}
