package cassette

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/memhost/memhost/abi"
)

// Reasons of a Reader's errors, all with code invalid_argument. The message names file and line.
const (
	// ReasonCut means that the file ends too early.
	ReasonCut = "cassette_cut"
	// ReasonEdited means that a line was changed, moved or removed after recording.
	ReasonEdited = "cassette_edited"
	// ReasonVersion means that the cassette has another format version.
	ReasonVersion = "cassette_version"
	// ReasonForm means that the file is not a cassette.
	ReasonForm = "cassette_form"
)

// MaxLine bounds the length of a line in bytes: one operation with all its native answers.
const MaxLine = 1 << 30

// Reader reads a cassette, line by line, and checks each. It is not safe for concurrent use.
type Reader struct {
	// Header is the first line.
	Header Header

	name       string
	in         *bufio.Reader
	chain      chain
	number     int // of the last line read
	operations int64
	ended      bool
}

// NewReader reads the header. name is the file's name, for errors.
//
// Errors: invalid_argument with one of the reasons above.
func NewReader(name string, in io.Reader) (*Reader, error) {
	r := &Reader{name: name, in: bufio.NewReaderSize(in, 64<<10)}
	body, err := r.line()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, r.wrong(ReasonForm, "is empty: no cassette")
		}
		return nil, err
	}
	// Check the version first: other versions may differ in everything else.
	var form struct {
		Header struct {
			Cassette *int64 `json:"cassette"`
		} `json:"header"`
	}
	if json.Unmarshal(body, &form) != nil || form.Header.Cassette == nil {
		return nil, r.wrong(ReasonForm, "is no header of a cassette")
	}
	if v := *form.Header.Cassette; v != Version {
		return nil, r.wrong(ReasonVersion, fmt.Sprintf("is a cassette of version %d, this program reads version %d", v,
			Version)).
			WithHint("replay it with the memhost that recorded it, or record it again")
	}
	l, err := r.decode(body)
	if err != nil {
		return nil, err
	}
	r.Header = *l.Header
	return r, nil
}

// Next returns the next operation, and io.EOF after the last one of a complete cassette.
func (r *Reader) Next() (*Operation, error) {
	if r.ended {
		return nil, io.EOF
	}
	body, err := r.line()
	if errors.Is(err, io.EOF) {
		return nil, r.cut(fmt.Sprintf("it ends after %d operations, without the line that closes it", r.operations))
	}
	if err != nil {
		return nil, err
	}
	l, err := r.decode(body)
	if err != nil {
		return nil, err
	}
	switch {
	case l.Operation != nil:
		r.operations++
		if l.Operation.N != r.operations {
			return nil, r.wrong(ReasonEdited, fmt.Sprintf("is operation %d, want %d", l.Operation.N, r.operations))
		}
		return l.Operation, nil
	case l.End != nil:
		if l.End.Operations != r.operations {
			return nil, r.wrong(ReasonEdited, fmt.Sprintf("counts %d operations, there are %d", l.End.Operations,
				r.operations))
		}
		if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
			r.number++
			return nil, r.wrong(ReasonEdited, "stands behind the line that closes the cassette")
		}
		r.ended = true
		return nil, io.EOF
	}
	return nil, r.wrong(ReasonEdited, "is a second header")
}

// line reads a line and verifies its checksum. It returns the object without the checksum; io.EOF if there are no more
// lines.
func (r *Reader) line() ([]byte, error) {
	text, err := r.readLine()
	if err != nil {
		return nil, err
	}
	r.number++
	const tail = len(sumMark) + 2*sumBytes + len(`"}`)
	at := len(text) - tail
	if at < 1 || !bytes.HasPrefix(text[at:], []byte(sumMark)) || !bytes.HasSuffix(text, []byte(`"}`)) {
		if r.number == 1 {
			return nil, r.wrong(ReasonForm, "is no line of a cassette: it has no checksum")
		}
		return nil, r.wrong(ReasonEdited, "has no checksum")
	}
	found := string(text[at+len(sumMark) : len(text)-len(`"}`)])
	if want := r.chain.next(text[:at]); found != want {
		return nil, r.wrong(ReasonEdited, "is not as it was recorded, or a line before it is missing: its checksum "+
			"is "+found+", want "+want).
			WithHint("cassettes are recorded, not written by hand: record it again")
	}
	return append(text[:at:at], '}'), nil
}

func (r *Reader) readLine() ([]byte, error) {
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > MaxLine:
			r.number++
			return nil, r.wrong(ReasonForm, fmt.Sprintf("has more than %d bytes", MaxLine))
		case err == nil:
			return text[:len(text)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			r.number++
			return nil, r.cut(fmt.Sprintf("the line ends in its middle, after %d operations", r.operations))
		default:
			return nil, abi.WrapError(abi.CodeUnavailable, "cassette "+r.name+": "+err.Error(), err)
		}
	}
}

func (r *Reader) decode(body []byte) (line, error) {
	var l line
	if err := strict(body, &l); err != nil {
		return l, r.wrong(ReasonForm, "cannot be read: "+err.Error())
	}
	count := 0
	for _, there := range []bool{l.Header != nil, l.Operation != nil, l.End != nil} {
		if there {
			count++
		}
	}
	if count != 1 || (l.Header != nil) != (r.number == 1) {
		return l, r.wrong(ReasonForm, "is neither header, nor operation, nor end")
	}
	return l, nil
}

func (r *Reader) wrong(reason, what string) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("cassette %s:%d: %s", r.name, r.number,
		what)).WithReason(reason)
}

func (r *Reader) cut(what string) *abi.Error {
	return r.wrong(ReasonCut, "the cassette is cut off: "+what).WithHint("a slot that still records " +
		"closes it when it stops; what is there can be played with --partial; otherwise record it again")
}

// Operations is how many operations have been read so far.
func (r *Reader) Operations() int64 { return r.operations }
