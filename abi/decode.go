package abi

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// The generated codecs call these functions to read fields. Each reads null as the zero value.

// object iterates over the fields of a JSON object; null has no fields. The code that reads a field stores its error in
// err.
type object struct {
	fields wirejson.ObjIter
	none   bool // there is no object, or it is null
	key    string
	err    error
}

func openObject(d *wirejson.Decoder) (o object) {
	switch d.Next() {
	case wirejson.Object:
		o.fields, o.err = d.ObjIter()
		o.none = o.err != nil
	case wirejson.Null:
		o.none, o.err = true, d.Null()
	default:
		o.none, o.err = true, mismatch(d, "an object")
	}
	return o
}

// next advances to the next field. It returns false at the first error, and then prepends the field's name to the
// error's path.
func (o *object) next() bool {
	if o.none {
		return false
	}
	if o.err != nil {
		o.err = inField(keyPath(o.key), o.err)
		return false
	}
	if !o.fields.Next() {
		o.err = o.fields.Err()
		return false
	}
	o.key = o.fields.Name()
	return true
}

// unknown handles a field that the type does not have. known lists the type's fields, separated by blanks.
func (o *object) unknown(d *wirejson.Decoder, m Mode, known string) {
	if m != Strict {
		o.err = d.Skip()
		return
	}
	o.err = &fieldError{what: "unknown field" + Suggest(o.key, strings.Fields(known))}
}

// hasField reports whether an object has a field that is not null.
func hasField(raw wirejson.Raw, field string) (has bool, err error) {
	d := wirejson.DecodeBytes(raw)
	o := openObject(d)
	for o.next() {
		if o.key == field {
			has = d.Next() != wirejson.Null
		}
		o.err = d.Skip()
	}
	return has, o.err
}

// array iterates over the elements of an array, as object does over fields.
type array struct {
	elements wirejson.ArrIter
	none     bool
	n        int // number of elements started
	err      error
}

func openArray(d *wirejson.Decoder) (a array) {
	switch d.Next() {
	case wirejson.Array:
		a.elements, a.err = d.ArrIter()
		a.none = a.err != nil
	case wirejson.Null:
		a.none, a.err = true, d.Null()
	default:
		a.none, a.err = true, mismatch(d, "an array")
	}
	return a
}

func (a *array) next() bool {
	if a.err != nil {
		a.err = inField(indexPath(a.n-1), a.err)
		return false
	}
	if !a.elements.Next() {
		a.err = a.elements.Err()
		return false
	}
	a.n++
	return true
}

// readValue reads a value of the given type and returns its bytes, which belong to the decoder. It returns nil for null
// and on errors.
func readValue(d *wirejson.Decoder, t wirejson.Type, what string) (wirejson.Raw, error) {
	switch d.Next() {
	case wirejson.Null:
		return nil, d.Null()
	case t:
		if t == wirejson.Number {
			return d.Num()
		}
		return d.Raw()
	default:
		return nil, mismatch(d, what)
	}
}

func readString(v *string, d *wirejson.Decoder, _ Mode) error {
	*v = ""
	switch d.Next() {
	case wirejson.String:
		var err error
		*v, err = d.Str()
		return err
	case wirejson.Null:
		return d.Null()
	}
	return mismatch(d, "a string")
}

func readBool(v *bool, d *wirejson.Decoder, _ Mode) (err error) {
	*v = false
	switch d.Next() {
	case wirejson.Bool:
		*v, err = d.Bool()
		return err
	case wirejson.Null:
		return d.Null()
	}
	return mismatch(d, "a boolean")
}

func readInt(v *int64, d *wirejson.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, wirejson.Number, "a whole number")
	if raw == nil {
		return err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		what := "want a whole number of 64 bits, got "
		if !allDigits(raw) { // a point or an exponent
			what = "want a whole number, got "
		}
		return &fieldError{what: what + shorten(raw)}
	}
	*v = n
	return nil
}

func allDigits(number []byte) bool {
	for i, c := range number {
		if !isDigit(c) && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

func readFloat(v *float64, d *wirejson.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, wirejson.Number, "a number")
	if raw == nil {
		return err
	}
	if *v, err = strconv.ParseFloat(string(raw), 64); err != nil {
		*v = 0
		return &fieldError{what: "want a number of 64 bits, got " + shorten(raw)}
	}
	return nil
}

func readRaw(v *Raw, d *wirejson.Decoder, _ Mode) error {
	*v = nil
	if d.Next() == wirejson.Null {
		return d.Null()
	}
	raw, levels, err := d.RawLevels()
	if err != nil {
		return err
	}
	if levels > MaxValueDepth {
		return &fieldError{what: notJSON(raw, MaxValueDepth)}
	}
	*v = Raw(d.Keep(raw))
	return nil
}

// readDocument is readRaw for a field tagged `codec:"document"`: a value that may be as deep as the document around it.
func readDocument(v *Raw, d *wirejson.Decoder, _ Mode) error {
	*v = nil
	if d.Next() == wirejson.Null {
		return d.Null()
	}
	raw, err := d.Raw()
	*v = append(Raw(nil), raw...)
	return err
}

func readPtr[T any](v **T, d *wirejson.Decoder, m Mode, elem func(*T, *wirejson.Decoder, Mode) error) error {
	*v = nil
	if d.Next() == wirejson.Null {
		return d.Null()
	}
	*v = new(T)
	return elem(*v, d, m)
}

func readIntPtr(v **int64, d *wirejson.Decoder, m Mode) error { return readPtr(v, d, m, readInt) }

func readSlice[T any](v *[]T, d *wirejson.Decoder, m Mode, elem func(*T, *wirejson.Decoder, Mode) error) error {
	*v = nil
	a := openArray(d)
	if a.none {
		return a.err
	}
	s := []T{}
	for a.next() {
		var zero T
		s = append(s, zero)
		a.err = elem(&s[len(s)-1], d, m)
	}
	*v = s
	return a.err
}

func readTexts(v *[]string, d *wirejson.Decoder, m Mode) error { return readSlice(v, d, m, readString) }

func readMap[T any](v *map[string]T, d *wirejson.Decoder, m Mode, elem func(*T, *wirejson.Decoder, Mode) error) error {
	*v = nil
	o := openObject(d)
	if o.none {
		return o.err
	}
	members := map[string]T{}
	var value T
	for o.next() {
		if o.err = elem(&value, d, m); o.err == nil {
			members[o.fields.Key()] = value
		}
	}
	*v = members
	return o.err
}
