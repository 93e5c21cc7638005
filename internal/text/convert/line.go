package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// LineReader splits a stream into lines of bounded length. It removes a byte order mark before the first line.
type LineReader struct {
	in     *bufio.Reader
	max    int
	number int // number of the last line that next returned
	long   []byte
}

// DefaultMaxLine bounds a line, in bytes. It is the same as a slot's limit.
const DefaultMaxLine = 16 << 20

// NewLineReader reads lines of at most max bytes.
func NewLineReader(in io.Reader, max int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, 1<<16), max: max}
}

var errLineTooLong = errors.New("line too long")

func (l *LineReader) line() int { return l.number }

// Next returns a line without its line end and surrounding blanks; it may be empty. The bytes are valid until the next
// call. number counts from 1.
//
// Errors: io.EOF after the last line; a line of more than max bytes, which is skipped; those of the stream.
func (l *LineReader) Next() (line []byte, number int, err error) {
	line, err = l.next()
	if errors.Is(err, errLineTooLong) {
		err = fmt.Errorf("longer than %d bytes", l.max)
	}
	return line, l.number, err
}

// next returns a line without its line end and surrounding blanks; it may be empty. The bytes are valid until the next
// call.
//
// Errors: errLineTooLong for a line of more than max bytes, which is skipped; io.EOF after the last line; those of the
// stream.
func (l *LineReader) next() ([]byte, error) {
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
		if tooLong = tooLong || len(l.long)+len(part) > l.max+1; !tooLong { // one more for the line end
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

func (l *LineReader) finish(line []byte) ([]byte, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) > l.max {
		return nil, errLineTooLong
	}
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")) // added by some editors
	}
	return bytes.Trim(line, " \t\r"), nil
}
