package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// text reads a string; null is the empty one.
func text(d *jsontext.Decoder) (string, error) {
	if d.Next() == jsontext.Null {
		return "", d.Null()
	}
	return d.Str()
}

// texts reads a list of strings; null is an empty one.
func texts(d *jsontext.Decoder) ([]string, error) {
	list := []string{}
	if d.Next() == jsontext.Null {
		return list, d.Null()
	}
	err := d.Arr(func(d *jsontext.Decoder) error {
		s, err := text(d)
		list = append(list, s)
		return err
	})
	return list, err
}

// fields goes through an object of an answer. What is not JSON, or nests too deep for this guest's stack, is refused before.
func fields(route string, body []byte, each func(d *jsontext.Decoder, key string) error) error {
	if !abi.ValidJSON(body) {
		return unusable(route, "no JSON that can be read", body)
	}
	return walk(route, body, each)
}

// walk is fields for JSON that is known to be valid.
func walk(route string, body []byte, each func(d *jsontext.Decoder, key string) error) error {
	d := jsontext.DecodeBytes(body)
	if d.Next() != jsontext.Object {
		return unusable(route, "no JSON object", body)
	}
	if err := d.Obj(each); err != nil {
		return unusable(route, err.Error(), body)
	}
	return nil
}

// list goes through an array of an answer.
func list(route string, body []byte, each func(d *jsontext.Decoder) error) error {
	if !abi.ValidJSON(body) {
		return unusable(route, "no JSON that can be read", body)
	}
	d := jsontext.DecodeBytes(body)
	if d.Next() != jsontext.Array {
		return unusable(route, "no JSON array", body)
	}
	if err := d.Arr(each); err != nil {
		return unusable(route, err.Error(), body)
	}
	return nil
}

// lower folds ASCII letters: all that headers and the servers' English need. strings.ToLower brings tables of Unicode.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// shallow tells whether arrays and objects nest no deeper than this guest's stack holds; it is cheap, and no check of anything else.
func shallow(data []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case inText:
			switch b {
			case '\\':
				i++
			case '"':
				inText = false
			}
		case b == '"':
			inText = true
		case b == '{' || b == '[':
			if depth++; depth > abi.MaxDepth {
				return false
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return true
}
