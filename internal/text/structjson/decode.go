package structjson

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Decode reads one JSON value into the struct that x points to, over whatever it held: see abi.Decodable.
//
// Errors: invalid_argument, with the path of the field. If the input is not JSON, the error is the decoder's.
func Decode(d *wirejson.Decoder, m abi.Mode, x any) error {
	r := reader{d, m}
	err := r.structure(reflect.ValueOf(x).Elem())
	if wrong := (*fieldError)(nil); errors.As(err, &wrong) {
		return abi.NewError(abi.CodeInvalidArgument, wrong.text)
	}
	return err
}

// fieldError is a value that is not what its field wants.
type fieldError struct {
	text string
	// inside is true if the text begins with the path of the field.
	inside bool
}

func (e *fieldError) Error() string { return e.text }

// in puts a part of a path before that of a fieldError. Other errors are of the text, not of a field.
func in(part string, err error) error {
	e := (*fieldError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	between := ": "
	if e.inside {
		between = "."
		if e.text[0] == '[' {
			between = ""
		}
	}
	return &fieldError{part + between + e.text, true}
}

// keyPath returns a key as part of a path: unchanged if it looks like a field's name, otherwise quoted.
func keyPath(key string) string {
	const longest = 64
	if len(key) > longest {
		key = key[:longest] + "..."
	}
	for i := range len(key) {
		c := key[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "[" + wirejson.Quote(key) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return key
}

type reader struct {
	d *wirejson.Decoder
	m abi.Mode
}

// begins reports whether a value of a type follows. It reads null, which leaves a field zero.
func (r reader) begins(t wirejson.Type, what string) (bool, error) {
	switch got := r.d.Next(); got {
	case t:
		return true, nil
	case wirejson.Null:
		return false, r.d.Null()
	case wirejson.Invalid:
		return false, r.d.Skip()
	default:
		return false, &fieldError{text: "want " + what + ", got " + described[got]}
	}
}

var described = map[wirejson.Type]string{wirejson.String: "a string", wirejson.Number: "a number",
	wirejson.Bool: "a boolean", wirejson.Array: "an array", wirejson.Object: "an object"}

func (r reader) structure(v reflect.Value) error {
	v.SetZero()
	if is, err := r.begins(wirejson.Object, "an object"); !is {
		return err
	}
	return r.members(func(key string) error {
		known := make([]string, v.NumField())
		for i := range known {
			if known[i] = fieldOf(v.Type().Field(i)).name; known[i] == key {
				return r.value(v.Field(i))
			}
		}
		if r.m == abi.Strict {
			return &fieldError{text: "unknown field" + abi.Suggest(key, known)}
		}
		return r.d.Skip()
	})
}

// members reads the members of an object.
func (r reader) members(read func(key string) error) error {
	return r.d.Obj(func(_ *wirejson.Decoder, key string) error {
		if err := read(key); err != nil {
			return in(keyPath(key), err)
		}
		return nil
	})
}

// value reads over an addressable value.
func (r reader) value(v reflect.Value) error {
	switch x := v.Addr().Interface().(type) {
	case abi.Decodable:
		return r.coded(x, v)
	case *abi.Raw:
		return r.raw(x)
	}
	if v.Kind() == reflect.Struct {
		return r.structure(v)
	}
	v.SetZero()
	switch v.Kind() {
	case reflect.String:
		is, err := r.begins(wirejson.String, "a string")
		if is {
			var s string
			s, err = r.d.Str()
			v.SetString(s)
		}
		return err
	case reflect.Bool:
		is, err := r.begins(wirejson.Bool, "a boolean")
		if is {
			var b bool
			b, err = r.d.Bool()
			v.SetBool(b)
		}
		return err
	case reflect.Int64:
		return r.integer(v)
	case reflect.Float64:
		return r.float(v)
	case reflect.Pointer:
		if r.d.Next() == wirejson.Null {
			return r.d.Null()
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.value(v.Elem())
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.mapping(v)
	default:
		panic("structjson: no way to read a " + v.Type().String())
	}
}

// coded reads a struct by its own codec, whose errors begin with a path as soon as there is an object.
func (r reader) coded(x abi.Decodable, v reflect.Value) error {
	if is, err := r.begins(wirejson.Object, "an object"); !is {
		v.SetZero()
		return err
	}
	err := x.Decode(r.d, r.m)
	if wrong := (*abi.Error)(nil); errors.As(err, &wrong) {
		return &fieldError{wrong.Message, true}
	}
	return err
}

func (r reader) raw(x *abi.Raw) error {
	*x = nil
	if r.d.Next() == wirejson.Null {
		return r.d.Null()
	}
	raw, levels, err := r.d.RawLevels()
	if err != nil {
		return err
	}
	if levels > abi.MaxValueDepth {
		at, _ := wirejson.DepthError(wirejson.DecodeBytes(raw).Limit(abi.MaxValueDepth).Validate())
		return &fieldError{text: "nested too deep at byte " + strconv.Itoa(at) + ", want at most " +
			strconv.Itoa(abi.MaxDepth) + " levels, in a free value " + strconv.Itoa(abi.MaxValueDepth)}
	}
	*x = abi.Raw(r.d.Keep(raw))
	return nil
}

func (r reader) integer(v reflect.Value) error {
	is, err := r.begins(wirejson.Number, "a whole number")
	if !is {
		return err
	}
	number, err := r.d.Num()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax): // a point or an exponent
		return &fieldError{text: "want a whole number, got " + shorten(number)}
	case err != nil:
		return &fieldError{text: "want a whole number of 64 bits, got " + shorten(number)}
	}
	v.SetInt(n)
	return nil
}

func (r reader) float(v reflect.Value) error {
	is, err := r.begins(wirejson.Number, "a number")
	if !is {
		return err
	}
	number, err := r.d.Num()
	if err != nil {
		return err
	}
	n, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return &fieldError{text: "want a number of 64 bits, got " + shorten(number)}
	}
	v.SetFloat(n)
	return nil
}

func shorten(text []byte) string {
	const most = 40
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}

// slice reads an array. An empty one is not nil.
func (r reader) slice(v reflect.Value) error {
	if is, err := r.begins(wirejson.Array, "an array"); !is {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return r.d.Arr(func(*wirejson.Decoder) error {
		i := v.Len()
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if err := r.value(v.Index(i)); err != nil {
			return in("["+strconv.Itoa(i)+"]", err)
		}
		return nil
	})
}

// mapping reads an object with any keys. An empty one is not nil.
func (r reader) mapping(v reflect.Value) error {
	if is, err := r.begins(wirejson.Object, "an object"); !is {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	return r.members(func(key string) error {
		member := reflect.New(v.Type().Elem()).Elem()
		if err := r.value(member); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key), member)
		return nil
	})
}
