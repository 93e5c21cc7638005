// Package wirejson reads and writes JSON (RFC 8259) without reflection: what the codecs of package abi, and the
// modules, are made of.
//
// A Decoder takes one value after the other out of a text that is in memory as a whole. A read goes past the value, and
// past blanks before it:
//
//	d := DecodeBytes([]byte(`{"id": "m1", "score": 0.81}`))
//	d.Next()                     Object; nothing is read
//	d.Obj(func(d *Decoder, key string) error {
//		...                  "id": d.Str() gives "m1"; "score": d.Float64() gives 0.81; others: d.Skip()
//	})
//	d.AtEnd()                    true
//
// An Encoder appends one value after the other to a buffer and puts the commas:
//
//	var e Encoder
//	e.ObjStart()
//	e.FieldStart("id")
//	e.Str("m1")
//	e.ObjEnd()
//	e.Bytes()                    {"id":"m1"}
//
// It takes for JSON what encoding/json takes for it; tests and fuzzing hold the two to each other. Beyond that: a text
// nests at most MaxDepth levels, strings that are not UTF-8 are read as they are (the Encoder writes U+FFFD for each
// bad byte), and half of a surrogate pair is read as U+FFFD.
package wirejson
