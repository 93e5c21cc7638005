// Package wirejson reads and writes JSON (RFC 8259) without reflection. The codecs of package abi and the modules use
// it.
//
// A Decoder reads one value after the other from a text in memory. Each read skips blanks and then consumes the value:
//
//	d := DecodeBytes([]byte(`{"id": "m1", "score": 0.81}`))
//	d.Next()                     Object; nothing is read
//	d.Obj(func(d *Decoder, key string) error {
//		...                  "id": d.Str() returns "m1"; "score": d.Float64() returns 0.81; others: d.Skip()
//	})
//	d.AtEnd()                    true
//
// An Encoder appends one value after the other to a buffer and writes the commas:
//
//	var e Encoder
//	e.ObjStart()
//	e.FieldStart("id")
//	e.Str("m1")
//	e.ObjEnd()
//	e.Bytes()                    {"id":"m1"}
//
// It accepts the same texts as encoding/json; tests and fuzzing compare the two. There are two differences: a text
// nests at most MaxDepth levels, and strings that are not UTF-8 are read unchanged (the Encoder writes U+FFFD for each
// bad byte). Half of a surrogate pair is read as U+FFFD.
package wirejson
