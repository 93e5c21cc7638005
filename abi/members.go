package abi

import (
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"
)

// Members is a JSON object in the order in which it stands. It is for what guests make and read with every call: those are a few names each, for which a map is more
// code than all the rest of a request's head or a trace.
type Members[T any] []Member[T]

// Member is one name and its value.
type Member[T any] struct {
	Name  string
	Value T
}

// Get gives the value of that name, the zero value if there is none.
func (m Members[T]) Get(name string) T {
	value, _ := m.Find(name)
	return value
}

// Find is Get that tells whether there is one.
func (m Members[T]) Find(name string) (value T, ok bool) {
	if i := m.at(name); i >= 0 {
		return m[i].Value, true
	}
	return value, false
}

// Set gives that name a value, and adds it where there is none: an object has a name once.
//
//go:noinline
func (m *Members[T]) Set(name string, value T) {
	if i := m.at(name); i >= 0 {
		(*m)[i].Value = value
		return
	}
	*m = append(*m, Member[T]{name, value})
}

func (m Members[T]) at(name string) int {
	for i := range m {
		if m[i].Name == name {
			return i
		}
	}
	return -1
}

// searched is how many members are looked through one by one.
const searched = 16

// once leaves of the members of a name, which a hostile guest may repeat, one with the last value.
func (m Members[T]) once() Members[T] {
	seen, known := map[string]int(nil), m[:0]
	if len(m) > searched {
		seen = make(map[string]int, len(m))
	}
	for _, x := range m {
		i := -1
		if seen == nil {
			i = known.at(x.Name)
		} else if n, ok := seen[x.Name]; ok {
			i = n
		}
		if i >= 0 {
			known[i].Value = x.Value
			continue
		}
		if seen != nil {
			seen[x.Name] = len(known)
		}
		known = append(known, x)
	}
	return known
}

func writeMembers[T any](m Members[T], e *jsontext.Encoder, elem func(T, *jsontext.Encoder)) {
	e.ObjStart()
	for i := range m {
		e.FieldStart(m[i].Name)
		elem(m[i].Value, e)
	}
	e.ObjEnd()
}

//go:noinline
func writeSomeMembers[T any](name string, m Members[T], e *jsontext.Encoder, elem func(T, *jsontext.Encoder)) {
	if len(m) > 0 {
		e.FieldStart(name)
		writeMembers(m, e, elem)
	}
}

func writeStructMembers[T any](m Members[T], e *jsontext.Encoder, elem func(*T, *jsontext.Encoder)) {
	e.ObjStart()
	for i := range m {
		e.FieldStart(m[i].Name)
		elem(&m[i].Value, e)
	}
	e.ObjEnd()
}

func readMembers[T any](v *Members[T], d *jsontext.Decoder, m Mode, elem func(*T, *jsontext.Decoder, Mode) error) error {
	*v = nil
	o := openObject(d)
	if o.none {
		return o.err
	}
	members := Members[T]{}
	for o.next() {
		members = append(members, Member[T]{Name: words.View(d.Keep(o.fields.Key()))})
		o.err = elem(&members[len(members)-1].Value, d, m)
	}
	if *v = members; !inGuest { // the host writes a name once
		*v = members.once()
	}
	return o.err
}

// MarshalJSON writes the object for encoding/json.
func (m Members[T]) MarshalJSON() ([]byte, error) {
	var e jsontext.Encoder
	var err error
	writeStructMembers(m, &e, func(v *T, e *jsontext.Encoder) {
		switch v := any(v).(type) {
		case *string:
			e.Str(*v)
		case *Raw:
			writeRaw(*v, e)
		case Encodable:
			v.Encode(e)
		default:
			err = errNoCodec
		}
	})
	return e.Bytes(), err
}

// UnmarshalJSON reads the object for encoding/json.
func (m *Members[T]) UnmarshalJSON(text []byte) error {
	d := bounded(text).Copying()
	return finish(d, text, readMembers(m, d, Lenient, func(v *T, d *jsontext.Decoder, mode Mode) error {
		switch v := any(v).(type) {
		case *string:
			return readString(v, d, mode)
		case *Raw:
			return readRaw(v, d, mode)
		case Decodable:
			return v.Decode(d, mode)
		}
		return errNoCodec
	}))
}

// errNoCodec is of values that no struct of this package has as members.
var errNoCodec = NewError(CodeInternal, "members have values of a type that has no codec")
