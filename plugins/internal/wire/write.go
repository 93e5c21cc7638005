// Package wire writes the bodies of native requests and reads the answers, for the plugins of backends that speak JSON
// over HTTP.
package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Object is a JSON object to be written: names and values in turn.
//
//	wire.Object{"query", "tea", "top_k", 5, "filters", wire.Object{"run_id", "r-1"}}.JSON()
//	{"query":"tea","top_k":5,"filters":{"run_id":"r-1"}}
//
// A value is a string, bool, int, int64 or float64, a []string, an Object or a []Object, or an abi.Raw, which is
// written as it is. A value that is nil is left out together with its name, and so is an abi.Raw without bytes.
type Object []any

// JSON returns the object as text.
func (o Object) JSON() []byte {
	var e wirejson.Encoder
	o.write(&e)
	return e.Bytes()
}

// Map returns the object for the free fields of a trace, effective and details.
func (o Object) Map() map[string]abi.Raw { return Map(o.JSON()) }

func (o Object) write(e *wirejson.Encoder) {
	e.ObjStart()
	for i := 0; i+1 < len(o); i += 2 {
		raw, isRaw := o[i+1].(abi.Raw)
		if o[i+1] == nil || isRaw && len(raw) == 0 {
			continue
		}
		e.FieldStart(o[i].(string))
		write(e, o[i+1])
	}
	e.ObjEnd()
}

func write(e *wirejson.Encoder, value any) {
	switch v := value.(type) {
	case string:
		e.Str(v)
	case bool:
		e.Bool(v)
	case int:
		e.Int(v)
	case int64:
		e.Int64(v)
	case float64:
		e.Float64(v)
	case abi.Raw:
		e.Raw(v)
	case Object:
		v.write(e)
	case []Object:
		writeList(e, v, func(o Object) { o.write(e) })
	case []string:
		writeList(e, v, e.Str)
	default:
		panic("wire: a value of a type that is not written")
	}
}

func writeList[T any](e *wirejson.Encoder, list []T, element func(T)) {
	e.ArrStart()
	for _, v := range list {
		element(v)
	}
	e.ArrEnd()
}

// Some returns text as a value of an Object, or nil for "", which leaves the member out.
func Some(text string) any { return If(text != "", text) }

// If returns value if it applies, else nil, which leaves the member out.
func If(applies bool, value any) any {
	if !applies {
		return nil
	}
	return value
}

// FromMap returns an Object with a map's members, in byte order of their names.
func FromMap(members map[string]abi.Raw) (o Object) {
	for _, name := range abi.SortedKeys(members) {
		o = append(o, name, members[name])
	}
	return o
}
