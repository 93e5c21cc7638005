package guest

import (
	"strings"
	"unicode/utf8"
)

// output keeps the end of what a guest prints. TinyGo prints a panic's text to standard output before it traps.
type output struct{ kept []byte }

// outputBytes is how many bytes are kept.
const outputBytes = 2 << 10

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n := len(b)
	if n > outputBytes {
		b = b[n-outputBytes:]
	}
	o.kept = append(o.kept, b...)
	if extra := len(o.kept) - outputBytes; extra > 0 {
		o.kept = append(o.kept[:0], o.kept[extra:]...)
	}
	return n, nil
}

func (o *output) reset() { o.kept = o.kept[:0] }

// String returns the kept text on one line, as valid UTF-8.
func (o *output) String() string {
	kept := o.kept
	for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:]
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(kept), "?")), "\n", " | ")
}
