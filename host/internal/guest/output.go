package guest

import (
	"strings"
	"unicode/utf8"
)

// output keeps the end of what a guest prints. TinyGo prints a panic's text to standard output before it traps.
type output struct{ tail []byte }

// outputBytes is how many bytes are kept.
const outputBytes = 2 << 10

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n := len(b)
	if n > outputBytes {
		b = b[n-outputBytes:]
	}
	o.tail = append(o.tail, b...)
	if extra := len(o.tail) - outputBytes; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
	return n, nil
}

func (o *output) reset() { o.tail = o.tail[:0] }

// String returns the tail on one line, as valid UTF-8.
func (o *output) String() string {
	tail := o.tail
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(tail), "?")), "\n", " | ")
}
