package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// line is the content of a line: exactly one of the four is set.
type line struct {
	Header    *Header    `json:"header,omitempty"`
	Operation *Operation `json:"operation,omitempty"`
	End       *End       `json:"end,omitempty"`
}

// A line ends in sumMark and its checksum in hex.
const (
	sumMark  = `,"sum":"`
	sumBytes = 16
)

// chain computes the checksum over all lines so far.
type chain struct{ sum string }

// next returns the checksum of a line. body is the line's text without its checksum.
func (c *chain) next(body []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, c.sum)
	_, _ = h.Write(body)
	c.sum = hex.EncodeToString(h.Sum(nil)[:sumBytes])
	return c.sum
}

// Writer writes a cassette. It is not safe for concurrent use.
type Writer struct {
	to         io.Writer
	chain      chain
	operations int64
	err        error
}

// NewWriter starts a cassette.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	w := &Writer{to: to}
	h.Cassette = Version
	return w, w.write(line{Header: &h})
}

// Add writes an operation and assigns its number. After an error it writes nothing more, so that the file is intact up
// to there.
func (w *Writer) Add(o *Operation) error {
	o.N = w.operations + 1
	if err := w.write(line{Operation: o}); err != nil {
		return err
	}
	w.operations++
	return nil
}

// End writes the last line.
func (w *Writer) End() error { return w.write(line{End: &End{Operations: w.operations}}) }

func (w *Writer) write(l line) error {
	if w.err != nil {
		return w.err
	}
	text, err := plainjson.Marshal(l)
	if err != nil {
		return err
	}
	body := text[:len(text)-1] // the closing brace follows the checksum
	_, w.err = w.to.Write(append(append(body, sumMark...), w.chain.next(body)+"\"}\n"...))
	return w.err
}

// Create creates a new file for a cassette, readable by its owner only. It never overwrites a file.
//
// Errors: invalid_argument.
func Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "cassette: "+path+" is there already",
			err).WithHint("a recording is not written over: remove it, or name another file")
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, fmt.Sprintf("cassette: %v", err), err)
	}
	return f, nil
}

// strict decodes one JSON value and rejects unknown fields.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
