package sdk

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// Digest is a running SHA-256, for ids and inventories. The zero value is ready.
//
// It is here because crypto/sha256 brings the whole FIPS module into a guest: 70 KB, and self-tests at the start of every instance.
type Digest struct {
	state  [8]uint32
	block  [64]byte
	length uint64
}

// Digest256 is the SHA-256 of text, in hex.
func Digest256(text string) string {
	var d Digest
	d.Add(text)
	return d.Hex()
}

// Add continues with text.
func (d *Digest) Add(text string) {
	if d.length == 0 {
		d.state = sha256Initial
	}
	for len(text) > 0 {
		at := int(d.length % 64)
		n := copy(d.block[at:], text)
		d.length += uint64(n)
		text = text[n:]
		if at+n == 64 {
			d.compress()
		}
	}
}

// Hex is the hash of all that was added, in hex. Nothing may be added afterwards.
func (d *Digest) Hex() string {
	bitLength := d.length * 8
	d.Add("\x80")
	for d.length%64 != 56 {
		d.Add("\x00")
	}
	var sum [32]byte
	binary.BigEndian.PutUint64(sum[:], bitLength)
	d.Add(string(sum[:8]))
	for i, word := range d.state {
		binary.BigEndian.PutUint32(sum[4*i:], word)
	}
	return hex.EncodeToString(sum[:])
}

var sha256Initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

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

func (d *Digest) compress() {
	var w [64]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(d.block[4*i:])
	}
	for i := 16; i < 64; i++ {
		s0 := bits.RotateLeft32(w[i-15], -7) ^ bits.RotateLeft32(w[i-15], -18) ^ w[i-15]>>3
		s1 := bits.RotateLeft32(w[i-2], -17) ^ bits.RotateLeft32(w[i-2], -19) ^ w[i-2]>>10
		w[i] = w[i-16] + s0 + w[i-7] + s1
	}
	s := d.state
	for i, word := range w {
		s1 := bits.RotateLeft32(s[4], -6) ^ bits.RotateLeft32(s[4], -11) ^ bits.RotateLeft32(s[4], -25)
		t1 := s[7] + s1 + (s[4]&s[5] ^ ^s[4]&s[6]) + sha256Rounds[i] + word
		s0 := bits.RotateLeft32(s[0], -2) ^ bits.RotateLeft32(s[0], -13) ^ bits.RotateLeft32(s[0], -22)
		t2 := s0 + (s[0]&s[1] ^ s[0]&s[2] ^ s[1]&s[2])
		s = [8]uint32{t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]}
	}
	for i, word := range s {
		d.state[i] += word
	}
}
