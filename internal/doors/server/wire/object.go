package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// member decodes one field of an object.
type member struct {
	name string
	read func(d *wirejson.Decoder) error
}

// readObject decodes an object with the given members, as the codecs of package abi do: null means absent, of a
// repeated field the last one wins, and in strict mode an unknown field is an error that suggests the nearest or lists
// all. abi.Unmarshal has already checked that the bytes are JSON.
func readObject(d *wirejson.Decoder, m abi.Mode, members []member) error {
	if d.Next() == wirejson.Null {
		return d.Null()
	}
	if err := want(d, wirejson.Object, "an object"); err != nil {
		return err
	}
	err := d.Obj(func(d *wirejson.Decoder, key string) error {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == key })
		switch {
		case i >= 0:
			return under(members[i].name, members[i].read(d))
		case m == abi.Strict:
			return unknown(key, members)
		default:
			return d.Skip()
		}
	})
	if err == nil {
		return nil
	}
	e := *abi.AsError(err) // the error is inside a nested value
	e.Code = abi.CodeInvalidArgument
	return &e
}

func unknown(key string, members []member) error {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return abi.NewError(abi.CodeInvalidArgument, keyPath(key)+": unknown field"+abi.Suggest(key, names))
}

// keyPath is a field's name as part of a path, quoted if necessary.
func keyPath(key string) string {
	const longest = 64
	if len(key) > longest {
		key = key[:longest] + "..."
	}
	plain := func(r rune) bool {
		return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if key != "" && strings.IndexFunc(key, func(r rune) bool { return !plain(r) }) < 0 {
		return key
	}
	return "[" + strconv.Quote(key) + "]"
}

// under adds a field's name to the message of an error inside it.
func under(name string, err error) error {
	if err == nil {
		return nil
	}
	e := *abi.AsError(err)
	e.Code = abi.CodeInvalidArgument
	e.Message = name + ": " + e.Message
	return &e
}

func want(d *wirejson.Decoder, t wirejson.Type, what string) error {
	if got := d.Next(); got != t {
		return abi.NewError(abi.CodeInvalidArgument, "want "+what+", got "+described(got))
	}
	return nil
}

func described(t wirejson.Type) string {
	switch t {
	case wirejson.String:
		return "a string"
	case wirejson.Number:
		return "a number"
	case wirejson.Bool:
		return "a boolean"
	case wirejson.Array:
		return "an array"
	case wirejson.Object:
		return "an object"
	default:
		return "null"
	}
}

// text reads a string; null is the empty one.
func text(to *string) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) (err error) {
		if d.Next() == wirejson.Null {
			*to = ""
			return d.Null()
		}
		if err := want(d, wirejson.String, "a string"); err != nil {
			return err
		}
		*to, err = d.Str()
		return err
	}
}

// flag reads true or false; null is false.
func flag(to *bool) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) (err error) {
		if d.Next() == wirejson.Null {
			*to = false
			return d.Null()
		}
		if err := want(d, wirejson.Bool, "true or false"); err != nil {
			return err
		}
		*to, err = d.Bool()
		return err
	}
}

// raw reads any value; null is nil.
func raw(to *abi.Raw) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) error {
		if d.Next() == wirejson.Null {
			*to = nil
			return d.Null()
		}
		v, err := d.RawAppend(nil)
		*to = abi.Raw(v)
		return err
	}
}
