package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// Reader reads a stretch of a module. base is the stretch's offset in the module and what its name, for errors. After
// an error the Reader stays at the position of the problem.
type Reader struct {
	data []byte
	pos  int
	base int
	what string
}

// Rest is the number of bytes not read yet.
func (r *Reader) Rest() int { return len(r.data) - r.pos }

// Pos is the number of bytes read.
func (r *Reader) Pos() int { return r.pos }

// Since returns the bytes read since the reader was at pos.
func (r *Reader) Since(pos int) []byte { return r.data[pos:r.pos:r.pos] }

// Errorf returns an error with the reader's position.
func (r *Reader) Errorf(format string, args ...any) error {
	return fmt.Errorf("wasm: %s at byte %d: %s", r.what, r.base+r.pos, fmt.Sprintf(format, args...))
}

// Byte reads one byte. Here and below, field is its name in errors.
func (r *Reader) Byte(field string) (byte, error) {
	if r.Rest() == 0 {
		return 0, r.Errorf("truncated %s: want 1 byte, have 0", field)
	}
	c := r.data[r.pos]
	r.pos++
	return c, nil
}

// U32 reads an unsigned LEB128 number of at most 32 bits and five bytes.
func (r *Reader) U32(field string) (uint32, error) {
	if r.pos < len(r.data) && r.data[r.pos] < 0x80 { // most have one byte
		r.pos++
		return uint32(r.data[r.pos-1]), nil
	}
	var value uint64
	for i := range 5 {
		if r.pos+i >= len(r.data) {
			return 0, r.Errorf("truncated %s: the number does not end", field)
		}
		c := r.data[r.pos+i]
		value |= uint64(c&0x7f) << (7 * i)
		if c&0x80 != 0 {
			continue
		}
		if value > 0xffffffff {
			return 0, r.Errorf("%s is %d, want at most %d", field, value, uint32(0xffffffff))
		}
		r.pos += i + 1
		return uint32(value), nil
	}
	return 0, r.Errorf("%s is longer than 5 bytes", field)
}

// Bytes reads n bytes, as a view into the input.
func (r *Reader) Bytes(n uint32, field string) ([]byte, error) {
	if uint64(n) > uint64(r.Rest()) {
		return nil, r.Errorf("truncated %s: want %d bytes, have %d", field, n, r.Rest())
	}
	out := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return out, nil
}

// Name reads a length and that many bytes of UTF-8.
func (r *Reader) Name(field string) (string, error) {
	n, err := r.U32("length of " + field)
	if err != nil {
		return "", err
	}
	start := r.pos
	b, err := r.Bytes(n, field)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		r.pos = start
		return "", r.Errorf("%s is not UTF-8", field)
	}
	return string(b), nil
}

// Count reads the length of a vector whose items take at least one byte each, and rejects a length that the remaining
// bytes cannot hold.
func (r *Reader) Count(field string) (int, error) {
	start := r.pos
	n, err := r.U32("number of " + field)
	if err != nil {
		return 0, err
	}
	if uint64(n) > uint64(r.Rest()) {
		have := r.Rest()
		r.pos = start
		return 0, r.Errorf("%d %s announced, but only %d bytes follow", n, field, have)
	}
	return int(n), nil
}

// End returns an error if bytes are left over.
func (r *Reader) End() error {
	if r.Rest() > 0 {
		return r.Errorf("%d bytes left over at its end", r.Rest())
	}
	return nil
}

// Sub reads a length and returns a reader for that many bytes.
func (r *Reader) Sub(field string) (*Reader, error) {
	n, err := r.U32("length of " + field)
	if err != nil {
		return nil, err
	}
	start := r.pos
	b, err := r.Bytes(n, field)
	if err != nil {
		r.pos = start
		return nil, err
	}
	return &Reader{data: b, base: r.base + start, what: r.what}, nil
}

// AppendU32 appends v as an unsigned LEB128 number in its shortest encoding.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
