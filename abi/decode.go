package abi

import (
	"bytes"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-faster/jx"
)

// What the generated code calls to read a field. Each reads null as the zero value.

// object goes through the fields of an object; null has none. Whoever reads a field leaves the outcome in err.
type object struct {
	fields jx.ObjIter
	none   bool   // there is no object, or it is null
	key    string // valid until the next one: TinyGo copies a []byte that a switch takes as a string
	err    error
}

func openObject(d *jx.Decoder) (o object) {
	switch d.Next() {
	case jx.Object:
		o.fields, o.err = d.ObjIter()
		o.none = o.err != nil
	case jx.Null:
		o.none, o.err = true, d.Null()
	default:
		o.none, o.err = true, mismatch(d, "an object")
	}
	return o
}

// next goes to the next field. It ends at the first error, and puts the field's name before its path.
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
	key := o.fields.Key()
	o.key = unsafe.String(unsafe.SliceData(key), len(key))
	return true
}

// unknown deals with a field that the type does not have. Known lists the type's fields, separated by blanks.
func (o *object) unknown(d *jx.Decoder, m Mode, known string) {
	if m != Strict {
		o.err = d.Skip()
		return
	}
	o.err = &fieldError{what: "unknown field" + didYouMean(o.key, strings.Fields(known))}
}

// hasField looks through an object for a field that is not null.
func hasField(raw jx.Raw, field string) (has bool, err error) {
	d := jx.DecodeBytes(raw)
	o := openObject(d)
	for o.next() {
		if o.key == field {
			has = d.Next() != jx.Null
		}
		o.err = d.Skip()
	}
	return has, o.err
}

// array is to the elements of an array what object is to fields.
type array struct {
	elements jx.ArrIter
	none     bool
	n        int // how many elements were begun
	err      error
}

func openArray(d *jx.Decoder) (a array) {
	switch d.Next() {
	case jx.Array:
		a.elements, a.err = d.ArrIter()
		a.none = a.err != nil
	case jx.Null:
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

// readValue reads a value of a type. For null, as for an error, it returns nil. The bytes are the decoder's.
func readValue(d *jx.Decoder, t jx.Type, what string) (jx.Raw, error) {
	switch d.Next() {
	case jx.Null:
		return nil, d.Null()
	case t:
		return d.Raw()
	default:
		return nil, mismatch(d, what)
	}
}

func readString(v *string, d *jx.Decoder, _ Mode) error {
	*v = ""
	raw, err := readValue(d, jx.String, "a string")
	switch {
	case raw == nil:
		return err
	case bytes.IndexByte(raw, '\\') < 0:
		*v = string(raw[1 : len(raw)-1])
		return nil
	}
	// In one allocation: Str would grow its buffer from escape to escape, and copy it at the end.
	raw, _ = mended(raw)
	text, err := jx.DecodeBytes(raw).StrAppend(make([]byte, 0, len(raw)))
	*v = unsafe.String(unsafe.SliceData(text), len(text))
	return err
}

func readBool(v *bool, d *jx.Decoder, _ Mode) error {
	raw, err := readValue(d, jx.Bool, "a boolean")
	*v = len(raw) > 0 && raw[0] == 't'
	return err
}

func readInt(v *int64, d *jx.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, jx.Number, "a whole number")
	if raw == nil {
		return err
	}
	if bytes.ContainsAny(raw, ".eE") {
		return &fieldError{what: "want a whole number, got " + shorten(raw)}
	}
	if *v, err = strconv.ParseInt(viewOf(raw), 10, 64); err != nil {
		return &fieldError{what: "want a whole number of 64 bits, got " + shorten(raw)}
	}
	return nil
}

// readFloat leaves the arithmetic to strconv: the decoder's Float64 is off by one bit for some numbers of 17 digits.
func readFloat(v *float64, d *jx.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, jx.Number, "a number")
	if raw == nil {
		return err
	}
	if *v, err = strconv.ParseFloat(viewOf(raw), 64); err != nil {
		*v = 0
		return &fieldError{what: "want a number of 64 bits, got " + shorten(raw)}
	}
	return nil
}

func viewOf(raw jx.Raw) string { return unsafe.String(unsafe.SliceData(raw), len(raw)) }

func readRaw(v *Raw, d *jx.Decoder, _ Mode) error {
	*v = nil
	raw, err := readValue(d, d.Next(), "")
	if raw == nil {
		return err
	}
	if what := tooDeep(raw, MaxValueDepth); what != "" {
		return &fieldError{what: what}
	}
	*v = append(Raw(nil), raw...)
	return nil
}

// readDocument is readRaw for a field tagged `codec:"document"`: a value that may be as deep as the document around it.
func readDocument(v *Raw, d *jx.Decoder, m Mode) error {
	raw, err := readValue(d, d.Next(), "")
	*v = Raw(raw[:len(raw):len(raw)])
	if m != viewing {
		*v = append(Raw(nil), raw...)
	}
	return err
}

func readPtr[T any](v **T, d *jx.Decoder, m Mode, elem func(*T, *jx.Decoder, Mode) error) error {
	*v = nil
	if d.Next() == jx.Null {
		return d.Null()
	}
	*v = new(T)
	return elem(*v, d, m)
}

func readIntPtr(v **int64, d *jx.Decoder, m Mode) error { return readPtr(v, d, m, readInt) }

func readSlice[T any](v *[]T, d *jx.Decoder, m Mode, elem func(*T, *jx.Decoder, Mode) error) error {
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

func readMap[T any](v *map[string]T, d *jx.Decoder, m Mode, elem func(*T, *jx.Decoder, Mode) error) error {
	*v = nil
	raw, err := readValue(d, jx.Object, "an object")
	if raw == nil {
		return err
	}
	d = jx.DecodeBytes(raw)
	o := openObject(d)
	// The keys come from the mended text, the values from the one that was sent.
	var keys *jx.Decoder
	var names object
	if clean, differs := mended(raw); differs {
		keys = jx.DecodeBytes(clean)
		names = openObject(keys)
	}
	members := map[string]T{}
	var value T
	for o.next() {
		if keys != nil && names.next() {
			o.key, names.err = names.key, keys.Skip()
		}
		if o.err = elem(&value, d, m); o.err == nil {
			members[strings.Clone(o.key)] = value
		}
	}
	*v = members
	return o.err
}
