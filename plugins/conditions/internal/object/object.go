// Package object reads and writes small JSON objects by a list of their members. One list serves both ways:
//
//	func (b *branch) members() []object.Member {
//		return []object.Member{object.Always("name", &b.Name), object.OrNull("head", &b.Head), object.Optional("n", &b.N)}
//	}
//
// A member is a pointer to a string, int64, float64, bool, []string or abi.Raw, or a Value. One codec for all objects
// keeps a module small.
package object

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Member is one member of an object.
type Member struct {
	name  string
	to    any
	empty emptyForm
}

// Value is a member with its own encoding.
type Value interface {
	EncodeJSON(e *wirejson.Encoder)
	DecodeJSON(d *wirejson.Decoder) error
	IsZero() bool
}

// emptyForm says what is written for 0, an empty text or list, and false.
type emptyForm byte

const (
	leftOut emptyForm = iota
	written
	null
)

// Optional is a member that is left out if it is empty.
func Optional(name string, to any) Member { return Member{name, to, leftOut} }

// Always is a member that is always written.
func Always(name string, to any) Member { return Member{name, to, written} }

// OrNull is a member that is written as null if it is empty.
func OrNull(name string, to any) Member { return Member{name, to, null} }

// Constant is a member that always has the same JSON value. Reading skips it.
func Constant(name, value string) Member { return Always(name, abi.Raw(value)) }

// Encode writes an object.
func Encode(members ...Member) []byte {
	var e wirejson.Encoder
	Write(&e, members...)
	return e.Bytes()
}

// Write writes an object after what an encoder has written.
func Write(e *wirejson.Encoder, members ...Member) {
	e.ObjStart()
	writeMembers(e, members)
	e.ObjEnd()
}

func writeMembers(e *wirejson.Encoder, members []Member) {
	for i := range members {
		m := &members[i]
		zero := m.isZero()
		if zero && m.empty == leftOut {
			continue
		}
		e.FieldStart(m.name)
		if zero && m.empty == null {
			e.Null()
		} else {
			m.write(e)
		}
	}
}

func (m *Member) isZero() bool {
	switch to := m.to.(type) {
	case *string:
		return *to == ""
	case *int64:
		return *to == 0
	case *float64:
		return *to == 0
	case *bool:
		return !*to
	case *[]string:
		return len(*to) == 0
	case *abi.Raw:
		return len(*to) == 0
	case Value:
		return to.IsZero()
	}
	return true
}

func (m *Member) write(e *wirejson.Encoder) {
	switch to := m.to.(type) {
	case *string:
		e.Str(*to)
	case *int64:
		e.Int64(*to)
	case *float64:
		e.Float64(*to)
	case *bool:
		e.Bool(*to)
	case *[]string:
		WriteTexts(e, *to)
	case *abi.Raw:
		e.Raw(*to)
	case abi.Raw:
		e.Raw(to)
	case Value:
		to.EncodeJSON(e)
	}
}

// Patch returns an object with changed values: change returns the new value of each member. more are appended.
func Patch(was []byte, change func(name string, value abi.Raw) abi.Raw, more func() []Member) []byte {
	var e wirejson.Encoder
	e.ObjStart()
	// An unreadable object is copied as far as it can be read.
	_ = wirejson.DecodeBytes(was).Obj(func(d *wirejson.Decoder, name string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		e.FieldStart(name)
		e.Raw(change(name, abi.Raw(raw)))
		return nil
	})
	writeMembers(&e, more())
	e.ObjEnd()
	return e.Bytes()
}

// Decode reads leniently: it treats null, a value of another type, and a number that is not an integer as absent.
func Decode(data []byte, members ...Member) error {
	return Read(wirejson.DecodeBytes(data), nil, members...)
}

// Read is Decode at a decoder's position. other reads the members that are not in the list and not null; nil skips
// them.
func Read(d *wirejson.Decoder, other func(d *wirejson.Decoder, name string) error, members ...Member) error {
	return read(d, false, other, members)
}

// DecodeStrictly is Decode, but a member of another type is an error.
func DecodeStrictly(data []byte, members ...Member) error {
	d := wirejson.DecodeBytes(data)
	if d.Next() != wirejson.Object {
		return abi.NewError(abi.CodeInvalidArgument, "want a JSON object")
	}
	return read(d, true, nil, members)
}

func read(d *wirejson.Decoder, strict bool, other func(d *wirejson.Decoder, name string) error,
	members []Member) error {
	return d.Obj(func(d *wirejson.Decoder, name string) error {
		if d.Next() == wirejson.Null {
			return d.Null()
		}
		for i := range members {
			if members[i].name == name {
				return members[i].read(d, strict)
			}
		}
		if other != nil {
			return other(d, name)
		}
		return d.Skip()
	})
}

func (m *Member) read(d *wirejson.Decoder, strict bool) (err error) {
	kind := d.Next()
	switch to := m.to.(type) {
	case *string:
		if kind == wirejson.String {
			*to, err = d.Str()
			return err
		}
	case *int64:
		if kind == wirejson.Number {
			return readInt(d, to, strict)
		}
	case *float64:
		if kind == wirejson.Number {
			*to, err = d.Float64()
			return err
		}
	case *bool:
		if kind == wirejson.Bool {
			*to, err = d.Bool()
			return err
		}
	case *[]string:
		if kind == wirejson.Array {
			return readTexts(d, to, strict)
		}
	case *abi.Raw:
		raw, err := d.RawAppend(nil)
		*to = abi.Raw(raw)
		return err
	case abi.Raw:
		return d.Skip()
	case Value:
		return to.DecodeJSON(d)
	}
	if strict {
		return m.wrong(kind)
	}
	return d.Skip()
}

func (m *Member) wrong(found wirejson.Type) error {
	return abi.NewError(abi.CodeInvalidArgument, m.name+": its value is of another type: "+found.String())
}

func readInt(d *wirejson.Decoder, to *int64, strict bool) error {
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		*to = n
	} else if !strict {
		err = nil
	}
	return err
}

// readTexts reads a list of texts. Other values are converted to text, unless strict.
func readTexts(d *wirejson.Decoder, to *[]string, strict bool) error {
	return d.Arr(func(d *wirejson.Decoder) (err error) {
		var text string
		if strict {
			text, err = d.Str()
		} else {
			text, err = Text(d)
		}
		*to = append(*to, text)
		return err
	})
}

// WriteTexts writes a list of texts.
func WriteTexts(e *wirejson.Encoder, texts []string) {
	e.ArrStart()
	for _, text := range texts {
		e.Str(text)
	}
	e.ArrEnd()
}

// Texts returns a list of texts as JSON.
func Texts(texts []string) abi.Raw {
	var e wirejson.Encoder
	WriteTexts(&e, texts)
	return e.Bytes()
}
