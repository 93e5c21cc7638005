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
//
//go:noinline
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

// fields goes through an object of an answer. What is not JSON, or nests too deep for this guest's stack, is refused by reading it: to look for that before would
// be to go through all of it twice.
func fields(route string, body []byte, each func(d *jsontext.Decoder, key string) error) error {
	d := jsontext.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != jsontext.Object {
		return unreadable(route, "no JSON object", body)
	}
	return outcome(route, body, d, d.Obj(each))
}

// list goes through an array of an answer.
func list(route string, body []byte, each func(d *jsontext.Decoder) error) error {
	d := jsontext.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != jsontext.Array {
		return unreadable(route, "no JSON array", body)
	}
	return outcome(route, body, d, d.Arr(each))
}

// outcome is what comes of reading an answer: nothing may follow, and that it is no JSON goes before what else was found wrong.
func outcome(route string, body []byte, d *jsontext.Decoder, err error) error {
	switch {
	case err != nil:
		return unreadable(route, err.Error(), body)
	case !d.AtEnd():
		return unreadable(route, "", body)
	}
	return nil
}

// unreadable is the error of an answer in which something stands that was not expected.
//
//go:noinline
func unreadable(route, what string, body []byte) error {
	if !abi.ValidJSON(body) {
		what = "no JSON that can be read"
	}
	return unusable(route, what, body)
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
