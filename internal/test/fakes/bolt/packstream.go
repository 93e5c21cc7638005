package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Struct is a structure of PackStream: a message, or a value of a type that the format itself does not know.
type Struct struct {
	Tag    byte
	Fields []any
}

// Packed is a value that is packed already: what Pack takes as it is.
type Packed []byte

// maxDepth bounds how deep values nest in what Unpack reads.
const maxDepth = 64

// Pack appends a value: nil, bool, int, int64, float64, string, []byte, []any, []string, map[string]any, Struct or
// Packed. It panics on any other type, and on more than 15 fields: a fake's own mistake.
//
// Source: PackStream, https://neo4j.com/docs/bolt/current/packstream/.
func Pack(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, 0xC0)
	case bool:
		if v {
			return append(dst, 0xC3)
		}
		return append(dst, 0xC2)
	case int:
		return packInt(dst, int64(v))
	case int64:
		return packInt(dst, v)
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xC1), math.Float64bits(v))
	case string:
		return append(packHead(dst, 0x80, 0xD0, len(v)), v...)
	case []byte:
		return append(packHead(dst, 0, 0xCC, len(v)), v...)
	case []string:
		dst = packHead(dst, 0x90, 0xD4, len(v))
		for _, s := range v {
			dst = Pack(dst, s)
		}
		return dst
	case []any:
		dst = packHead(dst, 0x90, 0xD4, len(v))
		for _, x := range v {
			dst = Pack(dst, x)
		}
		return dst
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = packHead(dst, 0xA0, 0xD8, len(v))
		for _, k := range keys {
			dst = Pack(Pack(dst, k), v[k])
		}
		return dst
	case Packed:
		return append(dst, v...)
	case Struct:
		if len(v.Fields) > 15 {
			panic(fmt.Sprintf("bolt: a structure of %d fields", len(v.Fields)))
		}
		dst = append(dst, 0xB0|byte(len(v.Fields)), v.Tag)
		for _, x := range v.Fields {
			dst = Pack(dst, x)
		}
		return dst
	}
	panic(fmt.Sprintf("bolt: PackStream has no %T", value))
}

// packHead writes a marker with a length: tiny (up to 15, if the type has that form), then of 8, 16 and 32 bits.
func packHead(dst []byte, tiny, marker byte, n int) []byte {
	switch {
	case n < 16 && tiny != 0:
		return append(dst, tiny|byte(n))
	case n <= math.MaxUint8:
		return append(dst, marker, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, marker+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, marker+2), uint32(n))
}

func packInt(dst []byte, i int64) []byte {
	switch {
	case i >= -16 && i <= math.MaxInt8:
		return append(dst, byte(i))
	case i >= math.MinInt8 && i < -16:
		return append(dst, 0xC8, byte(i))
	case i >= math.MinInt16 && i <= math.MaxInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xC9), uint16(i))
	case i >= math.MinInt32 && i <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xCA), uint32(i))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xCB), uint64(i))
}

var (
	errShort = errors.New("the message ends inside a value")
	errDeep  = errors.New("a value nests too deep")
)

// Unpack reads one value and returns what follows it. Strings are taken as they come, UTF-8 or not; of a key that
// occurs twice the last one counts.
func Unpack(data []byte) (value any, rest []byte, err error) {
	r := reader{data}
	value, err = r.value(0)
	return value, r.rest, err
}

type reader struct{ rest []byte }

func (r *reader) take(n uint32) ([]byte, error) {
	if uint64(n) > uint64(len(r.rest)) {
		return nil, errShort
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// number reads a big-endian number of 1, 2, 4 or 8 bytes, unsigned and with its sign.
func (r *reader) number(size uint32) (u uint64, i int64, err error) {
	b, err := r.take(size)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range b {
		u = u<<8 | uint64(c)
	}
	shift := 64 - 8*size
	return u, int64(u<<shift) >> shift, nil
}

func (r *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	head, err := r.take(1)
	if err != nil {
		return nil, err
	}
	marker := head[0]
	switch marker >> 4 {
	case 0x8:
		return r.text(uint32(marker & 0xF))
	case 0x9:
		return r.list(uint32(marker&0xF), depth)
	case 0xA:
		return r.dictionary(uint32(marker&0xF), depth)
	case 0xB:
		return r.structure(uint32(marker&0xF), depth)
	case 0xF, 0, 1, 2, 3, 4, 5, 6, 7:
		return int64(int8(marker)), nil
	}
	switch marker {
	case 0xC0:
		return nil, nil
	case 0xC1:
		u, _, err := r.number(8)
		return math.Float64frombits(u), err
	case 0xC2, 0xC3:
		return marker == 0xC3, nil
	case 0xC8, 0xC9, 0xCA, 0xCB:
		_, i, err := r.number(1 << (marker - 0xC8))
		return i, err
	}
	if marker < 0xCC || marker > 0xDA || marker&3 == 3 {
		return nil, fmt.Errorf("0x%02X is no marker", marker)
	}
	n, _, err := r.number(1 << (marker & 3))
	if err != nil {
		return nil, err
	}
	switch size := uint32(n); marker &^ 3 {
	case 0xCC:
		b, err := r.take(size)
		return slices.Clone(b), err
	case 0xD0:
		return r.text(size)
	case 0xD4:
		return r.list(size, depth)
	default:
		return r.dictionary(size, depth)
	}
}

func (r *reader) text(n uint32) (any, error) {
	b, err := r.take(n)
	return string(b), err
}

// list reads n values. Each has a byte at least, so n cannot make it take more memory than the message has.
func (r *reader) list(n uint32, depth int) (any, error) {
	if uint64(n) > uint64(len(r.rest)) {
		return nil, errShort
	}
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *reader) dictionary(n uint32, depth int) (any, error) {
	if uint64(n)*2 > uint64(len(r.rest)) {
		return nil, errShort
	}
	m := make(map[string]any, n)
	for range n {
		key, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("a key of type %T", key)
		}
		if m[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *reader) structure(n uint32, depth int) (any, error) {
	tag, err := r.take(1)
	if err != nil {
		return nil, err
	}
	fields, err := r.list(n, depth)
	if err != nil {
		return nil, err
	}
	list, _ := fields.([]any)
	return Struct{tag[0], list}, nil
}
