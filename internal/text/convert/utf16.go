package convert

import (
	"bufio"
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 reads a text file in UTF-8 or UTF-16, and returns UTF-8 without a byte order mark. It detects UTF-16 by its byte
// order mark, or by a zero byte in the first character.
func UTF8(in io.Reader) io.Reader {
	b := bufio.NewReaderSize(in, 64<<10)
	start, _ := b.Peek(4)
	is := func(marks ...byte) bool {
		return len(start) >= len(marks) && string(start[:len(marks)]) == string(marks)
	}
	order, is16 := unicode.LittleEndian, false
	switch {
	case is(0xEF, 0xBB, 0xBF):
		_, _ = b.Discard(3)
	case is(0xFF, 0xFE):
		is16 = true
	case is(0xFE, 0xFF):
		order, is16 = unicode.BigEndian, true
	case len(start) == 4 && start[0] != 0 && start[1] == 0 && start[2] != 0 && start[3] == 0:
		is16 = true
	case len(start) == 4 && start[0] == 0 && start[1] != 0 && start[2] == 0 && start[3] != 0:
		order, is16 = unicode.BigEndian, true
	}
	if !is16 {
		return b
	}
	return transform.NewReader(b, unicode.UTF16(order, unicode.UseBOM).NewDecoder())
}
