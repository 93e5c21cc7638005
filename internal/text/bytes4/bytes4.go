// Package bytes4 is the default token counter, a cheap estimate. It is a package of its own so that sdk/sdktest, which
// tests of plugins elsewhere use, needs no module but memhost's.
package bytes4

import "unicode/utf8"

// Name is the counter's name in configuration and traces.
const Name = "bytes4"

// Counter estimates: a quarter of the bytes, or half of them if more than a quarter are not ASCII, rounded up.
type Counter struct{}

// Name is the counter's name in configuration and traces.
func (Counter) Name() string { return Name }

// Count estimates the tokens of a text.
func (Counter) Count(text []byte) int64 {
	return estimate(len(text), notASCII(text))
}

// notASCII counts the bytes whose highest bit is set.
func notASCII(text []byte) int {
	n := 0
	for _, b := range text {
		n += int(b >> 7)
	}
	return n
}

// Fit returns the length in bytes of the longest prefix that ends between characters and has at most max tokens, and
// its token count.
func (Counter) Fit(text []byte, max int64) (bytes int, count int64) {
	other := 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRune(text[i:])
		if text[i] >= utf8.RuneSelf {
			other += size
		}
		i += size
		n := estimate(i, other)
		if n <= max {
			bytes, count = i, n
		} else if int64(i) > 4*max {
			break
		}
	}
	return bytes, count
}

func estimate(bytes, other int) int64 {
	if other*4 > bytes {
		return int64(bytes+1) / 2
	}
	return int64(bytes+3) / 4
}
