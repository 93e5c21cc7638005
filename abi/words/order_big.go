//go:build mips || mips64 || ppc64 || s390x

package words

// bigEndian: the machine has the first byte of a number in its highest place.
const bigEndian = true
