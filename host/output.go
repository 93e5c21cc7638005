package host

import (
	"crypto/rand"
	"strings"
	"unicode/utf8"
)

// tail keeps the end of what a guest prints. TinyGo prints a panic's text to standard output before it traps.
type tail struct{ kept []byte }

// tailBytes is how much is kept.
const tailBytes = 2 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if n > tailBytes {
		b = b[n-tailBytes:]
	}
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - tailBytes; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return n, nil
}

func (t *tail) reset() { t.kept = t.kept[:0] }

// String is the kept text on one line, made valid.
func (t *tail) String() string {
	kept := t.kept
	for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:]
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(kept), "?")), "\n", " | ")
}

// randomness is the guest's source of random bytes.
type randomness struct{}

// Read implements io.Reader.
func (randomness) Read(b []byte) (int, error) { return rand.Read(b) }
