package convert

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader cuts a stream into lines of bounded length.
type lineReader struct {
	in     *bufio.Reader
	max    int
	number int // of the line that next returned last
	long   []byte
}

var errLineTooLong = errors.New("line too long")

func (l *lineReader) line() int { return l.number }

// next returns a line without its end and without blanks around it; it may be empty. The bytes are valid until the next
// call.
//
// Errors: errLineTooLong for a line of more than max bytes, which has been passed over; io.EOF after the last line;
// what the stream says.
func (l *lineReader) next() ([]byte, error) {
	part, err := l.in.ReadSlice('\n')
	if len(part) == 0 && err != nil {
		return nil, err
	}
	l.number++
	if err == nil || errors.Is(err, io.EOF) {
		return l.finish(part)
	}
	l.long = l.long[:0]
	tooLong := false
	for {
		if tooLong = tooLong || len(l.long)+len(part) > l.max+1; !tooLong { // one more for the line's end
			l.long = append(l.long, part...)
		}
		switch {
		case err == nil || errors.Is(err, io.EOF):
			if tooLong {
				return nil, errLineTooLong
			}
			return l.finish(l.long)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		part, err = l.in.ReadSlice('\n')
	}
}

func (l *lineReader) finish(line []byte) ([]byte, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) > l.max {
		return nil, errLineTooLong
	}
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")) // some editors put a byte order mark there
	}
	return bytes.Trim(line, " \t\r"), nil
}
