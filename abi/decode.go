package abi

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"
)

// What the generated code calls to read a field. Each reads null as the zero value.

// object goes through the fields of an object; null has none. Whoever reads a field leaves the outcome in err.
type object struct {
	fields jsontext.ObjIter
	none   bool   // there is no object, or it is null
	key    string // valid until the next one: TinyGo copies a []byte that a switch takes as a string
	err    error
	// at is where in the list of a type's fields the search for the next one begins, and number is of the field there.
	at, number int
}

func openObject(d *jsontext.Decoder) (o object) {
	switch d.Next() {
	case jsontext.Object:
		o.fields, o.err = d.ObjIter()
		o.none = o.err != nil
	case jsontext.Null:
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
	o.key = o.fields.Name()
	return true
}

// field tells which of a type's fields, which known lists with blanks between them, this one is: -1 for none. A switch over the names would compare each of them in line,
// in every decoder. Objects have their fields in the order of the type, mostly, so the search begins behind the last one; a field that is none costs one look at each.
//
//go:noinline
func (o *object) field(known string) int {
	key := o.key
	for whole := o.at == 0; ; whole = true {
		for o.at < len(known) {
			at, number := o.at, o.number
			end := at + len(key)
			o.at, o.number = words.First(known, at, ' ', ' ', ' ')+1, number+1
			if o.at-1 == end && known[at:end] == key {
				return number
			}
		}
		if o.at, o.number = 0, 0; whole {
			return -1
		}
	}
}

// unknown deals with a field that the type does not have. Known lists the type's fields, separated by blanks.
func (o *object) unknown(d *jsontext.Decoder, m Mode, known string) {
	if m != Strict {
		o.err = d.Skip()
		return
	}
	o.err = &fieldError{what: "unknown field" + didYouMean(o.key, strings.Fields(known))}
}

// hasField looks through an object for a field that is not null.
func hasField(raw jsontext.Raw, field string) (has bool, err error) {
	d := jsontext.DecodeBytes(raw)
	o := openObject(d)
	for o.next() {
		if o.key == field {
			has = d.Next() != jsontext.Null
		}
		o.err = d.Skip()
	}
	return has, o.err
}

// array is to the elements of an array what object is to fields.
type array struct {
	elements jsontext.ArrIter
	none     bool
	n        int // how many elements were begun
	err      error
}

func openArray(d *jsontext.Decoder) (a array) {
	switch d.Next() {
	case jsontext.Array:
		a.elements, a.err = d.ArrIter()
		a.none = a.err != nil
	case jsontext.Null:
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
func readValue(d *jsontext.Decoder, t jsontext.Type, what string) (jsontext.Raw, error) {
	switch d.Next() {
	case jsontext.Null:
		return nil, d.Null()
	case t:
		if t == jsontext.Number {
			return d.Num()
		}
		return d.Raw()
	default:
		return nil, mismatch(d, what)
	}
}

func readString(v *string, d *jsontext.Decoder, _ Mode) error {
	*v = ""
	switch d.Next() {
	case jsontext.String:
		var err error
		*v, err = d.Str()
		return err
	case jsontext.Null:
		return d.Null()
	}
	return mismatch(d, "a string")
}

func readBool(v *bool, d *jsontext.Decoder, _ Mode) (err error) {
	*v = false
	switch d.Next() {
	case jsontext.Bool:
		*v, err = d.Bool()
		return err
	case jsontext.Null:
		return d.Null()
	}
	return mismatch(d, "a boolean")
}

func readInt(v *int64, d *jsontext.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, jsontext.Number, "a whole number")
	if raw == nil {
		return err
	}
	n, ok := fewDigits(raw)
	if !ok {
		if n, err = strconv.ParseInt(words.View(raw), 10, 64); err != nil {
			what := "want a whole number of 64 bits, got "
			if !allDigits(raw) { // a point or an exponent
				what = "want a whole number, got "
			}
			return &fieldError{what: what + shorten(raw)}
		}
	}
	*v = n
	return nil
}

// fewDigits reads a whole number of 15 digits at most, which any type of number holds. Most are: then none of strconv's code runs.
//
//go:noinline
func fewDigits(number []byte) (n int64, ok bool) {
	if len(number) > 15 {
		return 0, false
	}
	for _, c := range number {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func allDigits(number []byte) bool {
	for i, c := range number {
		if !isDigit(c) && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

func readFloat(v *float64, d *jsontext.Decoder, _ Mode) error {
	*v = 0
	raw, err := readValue(d, jsontext.Number, "a number")
	if raw == nil {
		return err
	}
	if n, ok := fewDigits(raw); ok {
		*v = float64(n)
		return nil
	}
	if *v, err = strconv.ParseFloat(words.View(raw), 64); err != nil {
		*v = 0
		return &fieldError{what: "want a number of 64 bits, got " + shorten(raw)}
	}
	return nil
}

func readRaw(v *Raw, d *jsontext.Decoder, _ Mode) error {
	*v = nil
	if d.Next() == jsontext.Null {
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
func readDocument(v *Raw, d *jsontext.Decoder, m Mode) error {
	*v = nil
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	if m == viewing {
		if rest := d.Last(); rest != nil {
			*v = Raw(rest)
			return nil
		}
	}
	raw, err := d.Raw()
	*v = append(Raw(nil), raw...)
	return err
}

func readPtr[T any](v **T, d *jsontext.Decoder, m Mode, elem func(*T, *jsontext.Decoder, Mode) error) error {
	*v = nil
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	*v = new(T)
	return elem(*v, d, m)
}

func readIntPtr(v **int64, d *jsontext.Decoder, m Mode) error { return readPtr(v, d, m, readInt) }

// A list's memory holds fewElements at first, and is made as many times larger until it holds manyElements.
const (
	fewElements  = 4
	manyElements = 64
)

func readSlice[T any](v *[]T, d *jsontext.Decoder, m Mode, elem func(*T, *jsontext.Decoder, Mode) error) error {
	*v = nil
	a := openArray(d)
	if a.none {
		return a.err
	}
	s := []T{}
	for a.next() {
		if len(s) == cap(s) && cap(s) < manyElements { // append alone makes five lists on the way to ten elements, each in memory that has not been used lately
			s = append(make([]T, 0, max(fewElements, fewElements*cap(s))), s...)
		}
		var zero T
		s = append(s, zero)
		a.err = elem(&s[len(s)-1], d, m)
	}
	*v = s
	return a.err
}

func readTexts(v *[]string, d *jsontext.Decoder, m Mode) error { return readSlice(v, d, m, readString) }

func readMap[T any](v *map[string]T, d *jsontext.Decoder, m Mode, elem func(*T, *jsontext.Decoder, Mode) error) error {
	*v = nil
	o := openObject(d)
	if o.none {
		return o.err
	}
	members := map[string]T{}
	var value T
	for o.next() {
		if o.err = elem(&value, d, m); o.err == nil {
			members[words.View(d.Keep(o.fields.Key()))] = value
		}
	}
	*v = members
	return o.err
}
