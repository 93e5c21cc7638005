package sdk

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// Digest is a running SHA-256, for ids and inventories. The zero value is ready to use.
//
// It exists because crypto/sha256 adds the whole FIPS module to a guest: 70 KB, and self-tests at the start of every
// instance.
type Digest struct {
	state  [8]uint32
	block  [64]byte
	length uint64
}

// Digest256 returns the SHA-256 of text, in hex.
func Digest256(text string) string {
	var d Digest
	d.Add(text)
	return d.Hex()
}

// DigestBytes is Digest256 of bytes, without a copy.
func DigestBytes(data []byte) string {
	var d Digest
	d.AddBytes(data)
	return d.Hex()
}

// Add adds text to the hash.
func (d *Digest) Add(text string) { d.AddBytes([]byte(text)) }

// AddBytes adds text to the hash.
func (d *Digest) AddBytes(text []byte) {
	if d.length == 0 {
		d.state = sha256Initial
	}
	at := int(d.length % 64)
	d.length += uint64(len(text))
	if at > 0 {
		n := copy(d.block[at:], text)
		if text = text[n:]; at+n < 64 {
			return
		}
		d.compress(d.block[:])
	}
	for ; len(text) >= 64; text = text[64:] {
		d.compress(text)
	}
	copy(d.block[:], text)
}

// Hex returns the hash of everything added, in hex. Nothing may be added afterwards.
func (d *Digest) Hex() string {
	bitLength := d.length * 8
	// Padding: a one bit, zeros up to the last 8 bytes of a block, and the length.
	var tail [72]byte
	tail[0] = 0x80
	n := 64 - int((d.length+8)%64)
	binary.BigEndian.PutUint64(tail[n:], bitLength)
	d.AddBytes(tail[:n+8])
	var sum [32]byte
	for i, word := range d.state {
		binary.BigEndian.PutUint32(sum[4*i:], word)
	}
	return hex.EncodeToString(sum[:])
}

var sha256Initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
	0x5be0cd19}

var sha256Rounds = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

// compress hashes the first 64 bytes of p. Eight rounds are written out, each with its variables rotated by one, so
// that no values need to be moved.
func (d *Digest) compress(p []byte) {
	var w [64]uint32
	p = p[:64]
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(p[4*i:])
	}
	for i := 16; i < 64; i++ {
		s0 := bits.RotateLeft32(w[i-15], -7) ^ bits.RotateLeft32(w[i-15], -18) ^ w[i-15]>>3
		s1 := bits.RotateLeft32(w[i-2], -17) ^ bits.RotateLeft32(w[i-2], -19) ^ w[i-2]>>10
		w[i] = w[i-16] + s0 + w[i-7] + s1
	}
	a, b, c, e, f, g, h := d.state[0], d.state[1], d.state[2], d.state[4], d.state[5], d.state[6], d.state[7]
	x := d.state[3]
	for i := 0; i < 64; i += 8 {
		h += (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (e&(f^g) ^ g) +
			sha256Rounds[i] + w[i]
		x += h
		h += (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b ^ a&c ^ b&c)
		g += (bits.RotateLeft32(x, -6) ^ bits.RotateLeft32(x, -11) ^ bits.RotateLeft32(x, -25)) + (x&(e^f) ^ f) +
			sha256Rounds[i+1] + w[i+1]
		c += g
		g += (bits.RotateLeft32(h, -2) ^ bits.RotateLeft32(h, -13) ^ bits.RotateLeft32(h, -22)) + (h&a ^ h&b ^ a&b)
		f += (bits.RotateLeft32(c, -6) ^ bits.RotateLeft32(c, -11) ^ bits.RotateLeft32(c, -25)) + (c&(x^e) ^ e) +
			sha256Rounds[i+2] + w[i+2]
		b += f
		f += (bits.RotateLeft32(g, -2) ^ bits.RotateLeft32(g, -13) ^ bits.RotateLeft32(g, -22)) + (g&h ^ g&a ^ h&a)
		e += (bits.RotateLeft32(b, -6) ^ bits.RotateLeft32(b, -11) ^ bits.RotateLeft32(b, -25)) + (b&(c^x) ^ x) +
			sha256Rounds[i+3] + w[i+3]
		a += e
		e += (bits.RotateLeft32(f, -2) ^ bits.RotateLeft32(f, -13) ^ bits.RotateLeft32(f, -22)) + (f&g ^ f&h ^ g&h)
		x += (bits.RotateLeft32(a, -6) ^ bits.RotateLeft32(a, -11) ^ bits.RotateLeft32(a, -25)) + (a&(b^c) ^ c) +
			sha256Rounds[i+4] + w[i+4]
		h += x
		x += (bits.RotateLeft32(e, -2) ^ bits.RotateLeft32(e, -13) ^ bits.RotateLeft32(e, -22)) + (e&f ^ e&g ^ f&g)
		c += (bits.RotateLeft32(h, -6) ^ bits.RotateLeft32(h, -11) ^ bits.RotateLeft32(h, -25)) + (h&(a^b) ^ b) +
			sha256Rounds[i+5] + w[i+5]
		g += c
		c += (bits.RotateLeft32(x, -2) ^ bits.RotateLeft32(x, -13) ^ bits.RotateLeft32(x, -22)) + (x&e ^ x&f ^ e&f)
		b += (bits.RotateLeft32(g, -6) ^ bits.RotateLeft32(g, -11) ^ bits.RotateLeft32(g, -25)) + (g&(h^a) ^ a) +
			sha256Rounds[i+6] + w[i+6]
		f += b
		b += (bits.RotateLeft32(c, -2) ^ bits.RotateLeft32(c, -13) ^ bits.RotateLeft32(c, -22)) + (c&x ^ c&e ^ x&e)
		a += (bits.RotateLeft32(f, -6) ^ bits.RotateLeft32(f, -11) ^ bits.RotateLeft32(f, -25)) + (f&(g^h) ^ h) +
			sha256Rounds[i+7] + w[i+7]
		e += a
		a += (bits.RotateLeft32(b, -2) ^ bits.RotateLeft32(b, -13) ^ bits.RotateLeft32(b, -22)) + (b&c ^ b&x ^ c&x)
	}
	for i, word := range [8]uint32{a, b, c, x, e, f, g, h} {
		d.state[i] += word
	}
}
