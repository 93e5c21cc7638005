package nanobot

import (
	"strconv"

	"github.com/go-faster/jx"

	"github.com/memhost/memhost/sdk"
)

// field is one member of a small JSON object of the state: a number or a text.
type field struct {
	name string
	n    *int64
	text *string
}

func number(name string, n *int64) field   { return field{name: name, n: n} }
func word(name string, text *string) field { return field{name: name, text: text} }

// encodeFields leaves out zero numbers and empty texts.
func encodeFields(list []field) []byte {
	var e jx.Encoder
	e.ObjStart()
	for _, f := range list {
		switch {
		case f.n != nil && *f.n != 0:
			e.FieldStart(f.name)
			e.Int64(*f.n)
		case f.text != nil && *f.text != "":
			e.FieldStart(f.name)
			e.Str(*f.text)
		}
	}
	e.ObjEnd()
	return e.Bytes()
}

// decodeFields reads what it can: a member of another type, or a number that is not whole, is taken as absent.
func decodeFields(data []byte, list []field) error {
	return jx.DecodeBytes(data).Obj(func(d *jx.Decoder, key string) error {
		for _, f := range list {
			if f.name != key {
				continue
			}
			if f.n != nil && d.Next() == jx.Number {
				raw, err := d.Num()
				if n, bad := strconv.ParseInt(raw.String(), 10, 64); bad == nil {
					*f.n = n
				}
				return err
			}
			if f.text != nil && d.Next() == jx.String {
				text, err := d.Str()
				*f.text = text
				return err
			}
		}
		return d.Skip()
	})
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
