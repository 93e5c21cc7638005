package wire

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Check returns the problem of a body that should be one JSON value: it is not UTF-8, not JSON, or nests deeper than
// abi.MaxDepth. The functions below require values that Check, or the host, has checked.
func Check(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("it is not UTF-8")
	}
	return wirejson.DecodeBytes(body).Limit(abi.MaxDepth).Validate()
}

// Open combines Check and Pick for a body that should be an object, such as an answer.
func Open(body []byte, places ...any) error {
	if !utf8.Valid(body) {
		return errors.New("it is not UTF-8")
	}
	d := wirejson.DecodeBytes(body).Limit(abi.MaxDepth)
	if d.Next() != wirejson.Object {
		return errors.New("it is not an object")
	}
	if err := members(d, places, false); err != nil {
		return err
	}
	if !d.AtEnd() {
		return errors.New("there is more than one value")
	}
	return nil
}

// Kind returns the type of a value; for an absent one, wirejson.Invalid.
func Kind(value abi.Raw) wirejson.Type { return wirejson.Raw(value).Type() }

// Fields are names and places for the members of a nested object, as Pick and Read take them.
type Fields []any

// Each is a place for a list: it is called for each element and returns the places for the members of an object. If it
// returns nil, the element is skipped.
type Each func(e Element) Fields

// Typed is a place that also keeps the value's type. It distinguishes an empty list from another value.
type Typed struct {
	Type  *wirejson.Type
	Place any
}

// Element is an element of a list that has not been read yet.
type Element struct {
	// Index counts from 0.
	Index int
	d     wirejson.Decoder
}

// ElementOf returns a value as an element.
func ElementOf(value abi.Raw) Element { return Element{d: *wirejson.DecodeBytes(value)} }

// Kind returns the element's type.
func (e Element) Kind() wirejson.Type { return e.d.Next() }

// Raw returns the whole element. It parses the element once more, so use it for few elements.
func (e Element) Raw() abi.Raw {
	raw, _ := e.d.Raw() // already checked
	return abi.Raw(raw)
}

// Pick reads members of an object: names and places in turn. If a member is absent, null or of another type, its place
// keeps its value; if a name occurs twice, the last one counts. Strings refer to object.
//
//	var id string
//	var score *float64
//	wire.Pick(item, "id", &id, "score", &score, "metadata", wire.Fields{"mh_event_id", &event})
//
// A place is Fields, Each, Typed, or a pointer to a string, bool, int64 or float64, to a pointer to one of these, which
// stays nil if there is no such value, to a []string, to a []abi.Raw (the elements of a list) or to an abi.Raw (any
// value). Pick takes a single string for a list of one.
func Pick(object abi.Raw, places ...any) {
	// a checked value causes no error
	_ = members(wirejson.DecodeBytes(object), places, false)
}

// Decode is Pick at a decoder's position. The object need not have been checked.
func Decode(d *wirejson.Decoder, places ...any) error { return members(d, places, false) }

// Read is Pick for an object of a fixed form: a member of another type than its place is an error, and so is a value
// that is not an object.
func Read(object abi.Raw, places ...any) error {
	return members(wirejson.DecodeBytes(object), places, true)
}

func members(d *wirejson.Decoder, places []any, strict bool) error {
	if d.Next() != wirejson.Object {
		return skip(d, strict, "an object")
	}
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		if at := find(places, fields.Name()); at < 0 {
			err = d.Skip()
		} else if err = member(d, places[at+1], strict); err != nil {
			err = errors.New(places[at].(string) + ": " + err.Error())
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

// find returns the index of a name among names and places, or -1.
func find(places []any, name string) int {
	for i := 0; i+1 < len(places); i += 2 {
		if places[i].(string) == name {
			return i
		}
	}
	return -1
}

func member(d *wirejson.Decoder, place any, strict bool) error {
	want, err := put(d, place, strict)
	if want != "" {
		return skip(d, strict, want)
	}
	var unfit rangeError
	if errors.As(err, &unfit) && !strict {
		return nil
	}
	return err
}

// rangeError is the error for a number that does not fit its place.
type rangeError struct{ error }

// skip skips a value of an unexpected type. Null counts as absent.
func skip(d *wirejson.Decoder, strict bool, want string) error {
	if kind := d.Next(); strict && kind != wirejson.Null {
		return errors.New("want " + want + ", got " + kind.String())
	}
	return d.Skip()
}

// put reads a value into its place. A value of another type is not read, and want says what the place takes. It has no
// closures: TinyGo would allocate what they capture with every call.
func put(d *wirejson.Decoder, place any, strict bool) (want string, err error) {
	kind := d.Next()
	switch p := place.(type) {
	case *string:
		if kind != wirejson.String {
			return "a string", nil
		}
		*p, err = d.Str()
	case *bool:
		if kind != wirejson.Bool {
			return "true or false", nil
		}
		*p, err = d.Bool()
	case *int64:
		if kind != wirejson.Number {
			return "an integer", nil
		}
		err = number(d, p, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
	case *float64:
		if kind != wirejson.Number {
			return "a number", nil
		}
		err = number(d, p, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	case **string:
		return putNew(d, p, strict)
	case **bool:
		return putNew(d, p, strict)
	case **int64:
		return putNew(d, p, strict)
	case **float64:
		return putNew(d, p, strict)
	case *[]string:
		if kind != wirejson.Array && (strict || kind != wirejson.String) {
			return "a list of strings", nil
		}
		*p, err = texts(d, strict)
	case *[]abi.Raw:
		if kind != wirejson.Array && (strict || kind != wirejson.String) {
			return "a list", nil
		}
		*p, err = elements(d)
	case *abi.Raw:
		if kind == wirejson.Null {
			return "any value", nil
		}
		var raw wirejson.Raw
		raw, err = d.Raw()
		*p = abi.Raw(raw)
	case Each:
		if kind != wirejson.Array && (strict || kind != wirejson.String) {
			return "a list", nil
		}
		err = p.read(d, strict)
	case Typed:
		*p.Type = kind
		return put(d, p.Place, strict)
	case Fields:
		err = members(d, p, strict)
	default:
		panic("wire: a place of a type that is not read")
	}
	return "", err
}

// putNew is put for a pointer that stays nil if there is no suitable value.
func putNew[T any](d *wirejson.Decoder, place **T, strict bool) (want string, err error) {
	value := new(T)
	if want, err = put(d, value, strict); want == "" && err == nil {
		*place = value
	}
	return want, err
}

func number[T any](d *wirejson.Decoder, place *T, parse func(string) (T, error)) error {
	raw, err := d.Num()
	if err != nil {
		return err
	}
	n, err := parse(string(raw))
	if err != nil {
		return rangeError{err}
	}
	*place = n
	return nil
}

// list iterates over the elements of a list, or over a single value.
type list struct {
	items wirejson.ArrIter
	array bool
	begun bool
	err   error
}

func openList(d *wirejson.Decoder) (l list) {
	if l.array = d.Next() == wirejson.Array; l.array {
		l.items, l.err = d.ArrIter()
	}
	return l
}

// next advances to the next element, unless reading the previous one failed.
func (l *list) next() bool {
	first := !l.begun
	l.begun = true
	switch {
	case l.err != nil:
		return false
	case !l.array:
		return first
	case l.items.Next():
		return true
	}
	l.err = l.items.Err()
	return false
}

// read reads a list, or a single element.
func (p Each) read(d *wirejson.Decoder, strict bool) error {
	l := openList(d)
	for i := 0; l.next(); i++ {
		if fields := p(Element{i, *d}); fields == nil {
			l.err = d.Skip()
		} else {
			l.err = members(d, fields, strict)
		}
	}
	return l.err
}

// texts returns the strings of a list, or a single one.
func texts(d *wirejson.Decoder, strict bool) (found []string, err error) {
	l := openList(d)
	for l.next() {
		if d.Next() != wirejson.String {
			l.err = skip(d, strict, "a string")
			continue
		}
		var text string
		text, l.err = d.Str()
		found = append(found, text)
	}
	return found, l.err
}

// elements returns the values of a list, or a single one.
func elements(d *wirejson.Decoder) ([]abi.Raw, error) {
	found := []abi.Raw{}
	l := openList(d)
	for l.next() {
		var raw wirejson.Raw
		raw, l.err = d.Raw()
		found = append(found, abi.Raw(raw))
	}
	return found, l.err
}

// Items returns the elements of a list; none for any other value.
func Items(list abi.Raw) []abi.Raw {
	if Kind(list) != wirejson.Array {
		return nil
	}
	items, _ := elements(wirejson.DecodeBytes(list)) // already checked
	return items
}

// Member is one name of an object and its value.
type Member struct {
	Name  string
	Value abi.Raw
}

// Map returns the members of an object by name, nil for any other value. If a name occurs twice, the last one counts.
func Map(object abi.Raw) map[string]abi.Raw {
	list := Members(object)
	if list == nil {
		return nil
	}
	members := make(map[string]abi.Raw, len(list))
	for _, m := range list {
		members[m.Name] = m.Value
	}
	return members
}

// Members returns the members of an object in order, nil for any other value and for an empty object.
func Members(object abi.Raw) (list []Member) {
	if Kind(object) != wirejson.Object {
		return nil
	}
	// Already checked.
	_ = wirejson.DecodeBytes(object).Obj(func(d *wirejson.Decoder, name string) error {
		raw, err := d.Raw()
		list = append(list, Member{Name: name, Value: abi.Raw(raw)})
		return err
	})
	return list
}

// At returns the value at a path of names in an object, nil if it is absent or null.
func At(object abi.Raw, path ...string) abi.Raw {
	for _, name := range path {
		var value abi.Raw
		Pick(object, name, &value)
		object = value
	}
	return object
}

// Text returns the text of a string, "" for any other value and for invalid JSON.
func Text(value abi.Raw) string {
	d := wirejson.DecodeBytes(value)
	if d.Next() != wirejson.String {
		return ""
	}
	text, err := d.Str()
	if err != nil || !d.AtEnd() {
		return ""
	}
	return text
}
