package wire

import (
	"errors"
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// Check says what is wrong with a body that should be one JSON value: it is not UTF-8, not JSON, or nests deeper than
// abi.MaxDepth. The functions below are for values that Check, or the host, found good.
func Check(body []byte) error {
	if !jsontext.ValidUTF8(body) {
		return errors.New("it is not UTF-8")
	}
	return jsontext.DecodeBytes(body).Limit(abi.MaxDepth).Validate()
}

// Kind is the type of a value; an absent one is jsontext.Invalid.
func Kind(value abi.Raw) jsontext.Type { return jsontext.Raw(value).Type() }

// Fields are places for the members of an object within an object, as Pick and Read take them.
type Fields []any

// Pick reads members of an object: names and places in turn. What is absent, null or of another type than its place
// leaves the place as it was; of a name that occurs twice the last one counts. Strings refer to object.
//
//	var id string
//	var score *float64
//	wire.Pick(item, "id", &id, "score", &score, "metadata", wire.Fields{"mh_event_id", &event})
//
// A place is Fields, or a pointer to a string, bool, int64 or float64, to a pointer to one of these, which stays nil
// where there is no such value, to a []string, to a []abi.Raw (the elements of a list) or to an abi.Raw (any value).
// Pick takes a single string for a []string of one.
func Pick(object abi.Raw, places ...any) {
	// Of a value that was found good nothing fails.
	_ = members(jsontext.DecodeBytes(object), places, false)
}

// Read is Pick for an object of a fixed shape: a member of another type than its place is an error, and so is what is
// no object.
func Read(object abi.Raw, places ...any) error {
	return members(jsontext.DecodeBytes(object), places, true)
}

func members(d *jsontext.Decoder, places []any, strict bool) error {
	if d.Next() != jsontext.Object {
		return skip(d, strict, "an object")
	}
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		err = member(d, fields.Name(), places, strict)
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

func member(d *jsontext.Decoder, name string, places []any, strict bool) error {
	for i := 0; i+1 < len(places); i += 2 {
		if places[i].(string) != name {
			continue
		}
		want, err := put(d, places[i+1], strict)
		if want != "" {
			err = skip(d, strict, want)
		}
		_, unfit := err.(misfit)
		if unfit && !strict {
			return nil
		}
		if err != nil {
			return errors.New(name + ": " + err.Error())
		}
		return nil
	}
	return d.Skip()
}

// misfit is the error of a number that was read and does not fit its place.
type misfit struct{ error }

// skip passes over a value that is not what is wanted. Null is the same as absent.
func skip(d *jsontext.Decoder, strict bool, want string) error {
	if kind := d.Next(); strict && kind != jsontext.Null {
		return errors.New("want " + want + ", got " + kind.String())
	}
	return d.Skip()
}

// put reads a value into its place. Of a value of another type nothing is read, and want says what the place takes.
func put(d *jsontext.Decoder, place any, strict bool) (want string, err error) {
	kind := d.Next()
	switch p := place.(type) {
	case *string:
		if kind != jsontext.String {
			return "a string", nil
		}
		*p, err = d.Str()
	case *bool:
		if kind != jsontext.Bool {
			return "true or false", nil
		}
		*p, err = d.Bool()
	case *int64:
		if kind != jsontext.Number {
			return "an integer", nil
		}
		err = number(d, p, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
	case *float64:
		if kind != jsontext.Number {
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
		if kind != jsontext.Array && (strict || kind != jsontext.String) {
			return "a list of strings", nil
		}
		*p, err = texts(d, strict)
	case *[]abi.Raw:
		if kind != jsontext.Array {
			return "a list", nil
		}
		*p, err = elements(d)
	case *abi.Raw:
		if kind == jsontext.Null {
			return "any value", nil
		}
		var raw jsontext.Raw
		raw, err = d.Raw()
		*p = abi.Raw(raw)
	case Fields:
		err = members(d, p, strict)
	default:
		panic("wire: a place of a type that is not read")
	}
	return "", err
}

// putNew is put for a place that stays nil where there is no such value.
func putNew[T any](d *jsontext.Decoder, place **T, strict bool) (want string, err error) {
	value := new(T)
	if want, err = put(d, value, strict); want == "" && err == nil {
		*place = value
	}
	return want, err
}

func number[T any](d *jsontext.Decoder, place *T, parse func(string) (T, error)) error {
	raw, err := d.Num()
	if err != nil {
		return err
	}
	n, err := parse(string(raw))
	if err != nil {
		return misfit{err}
	}
	*place = n
	return nil
}

// texts are the strings of a list, or a single one.
func texts(d *jsontext.Decoder, strict bool) (list []string, err error) {
	add := func(d *jsontext.Decoder) error {
		if d.Next() != jsontext.String {
			return skip(d, strict, "a string")
		}
		text, err := d.Str()
		list = append(list, text)
		return err
	}
	if d.Next() == jsontext.String {
		return list, add(d)
	}
	err = d.Arr(add)
	return list, err
}

func elements(d *jsontext.Decoder) ([]abi.Raw, error) {
	list := []abi.Raw{}
	err := d.Arr(func(d *jsontext.Decoder) error {
		raw, err := d.Raw()
		list = append(list, abi.Raw(raw))
		return err
	})
	return list, err
}

// Items are the elements of a list; of another value there are none.
func Items(list abi.Raw) []abi.Raw {
	if Kind(list) != jsontext.Array {
		return nil
	}
	items, _ := elements(jsontext.DecodeBytes(list)) // found good
	return items
}

// Members are the members of an object in its order; of another value there are none.
func Members(object abi.Raw) (list abi.Members[abi.Raw]) {
	if Kind(object) != jsontext.Object {
		return nil
	}
	// Found good.
	_ = jsontext.DecodeBytes(object).Obj(func(d *jsontext.Decoder, name string) error {
		raw, err := d.Raw()
		list = append(list, abi.Member[abi.Raw]{Name: name, Value: abi.Raw(raw)})
		return err
	})
	return list
}

// At is the value at a path of names in an object, nil where there is none or where it is null.
func At(object abi.Raw, path ...string) abi.Raw {
	for _, name := range path {
		var value abi.Raw
		Pick(object, name, &value)
		object = value
	}
	return object
}

// Text is the text of a string, "" of another value.
func Text(value abi.Raw) (text string) {
	if Kind(value) == jsontext.String {
		text, _ = jsontext.DecodeBytes(value).Str() // found good
	}
	return text
}
