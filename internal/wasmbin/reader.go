package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// reader walks over one stretch of a module. base is the stretch's offset in the
// whole module and what names it, so that errors point into the file.
type reader struct {
	data []byte
	pos  int
	base int
	what string
}

func (r *reader) rest() int { return len(r.data) - r.pos }

func (r *reader) errorf(format string, args ...any) error {
	return fmt.Errorf("wasm: %s at byte %d: %s", r.what, r.base+r.pos, fmt.Sprintf(format, args...))
}

func (r *reader) byte(field string) (byte, error) {
	if r.rest() == 0 {
		return 0, r.errorf("truncated %s: want 1 byte, have 0", field)
	}
	c := r.data[r.pos]
	r.pos++
	return c, nil
}

// u32 reads an unsigned LEB128 number of at most 32 bits and five bytes.
func (r *reader) u32(field string) (uint32, error) {
	var value uint64
	for i := range 5 {
		if r.pos+i >= len(r.data) {
			return 0, r.errorf("truncated %s: the number does not end", field)
		}
		c := r.data[r.pos+i]
		value |= uint64(c&0x7f) << (7 * i)
		if c&0x80 != 0 {
			continue
		}
		if value > 0xffffffff {
			return 0, r.errorf("%s is %d, want at most %d", field, value, uint32(0xffffffff))
		}
		r.pos += i + 1
		return uint32(value), nil
	}
	return 0, r.errorf("%s is longer than 5 bytes", field)
}

func (r *reader) bytes(n uint32, field string) ([]byte, error) {
	if uint64(n) > uint64(r.rest()) {
		return nil, r.errorf("truncated %s: want %d bytes, have %d", field, n, r.rest())
	}
	out := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return out, nil
}

func (r *reader) name(field string) (string, error) {
	n, err := r.u32("length of " + field)
	if err != nil {
		return "", err
	}
	start := r.pos
	b, err := r.bytes(n, field)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		r.pos = start
		return "", r.errorf("%s is not UTF-8", field)
	}
	return string(b), nil
}

// count reads the length of a vector whose items take at least one byte each,
// and refuses a length that the remaining bytes cannot hold.
func (r *reader) count(field string) (int, error) {
	start := r.pos
	n, err := r.u32("number of " + field)
	if err != nil {
		return 0, err
	}
	if uint64(n) > uint64(r.rest()) {
		have := r.rest()
		r.pos = start
		return 0, r.errorf("%d %s announced, but only %d bytes follow", n, field, have)
	}
	return int(n), nil
}

// end reports bytes left over after everything announced was read.
func (r *reader) end() error {
	if r.rest() > 0 {
		return r.errorf("%d bytes left over at its end", r.rest())
	}
	return nil
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
