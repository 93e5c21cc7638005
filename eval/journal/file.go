package journal

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"

	fastjson "github.com/go-json-experiment/json"
	"github.com/memhost/memhost/abi"
)

// Name is the file name of the journal in a cell's folder.
const Name = "trace.jsonl"

// empty is the hash that the first line refers to.
var empty = hash(nil)

func hash(line []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(line))
}

// Writer appends lines to a journal. It is safe for concurrent use, because personas run concurrently.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	n    int64
	head string
	now  func() string
	err  error // of an earlier line: after an error nothing more is written
}

// Append opens or creates a journal. It removes an unterminated last line, which is left if the program is killed
// during a write, and records that in a separate line. each is called for every existing line, in order. now returns
// RFC 3339.
//
// Errors: invalid_argument for a broken chain; unavailable for a file that cannot be used.
func Append(path string, now func() string, each func(*Line)) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(err)
	}
	w := &Writer{file: f, head: empty, now: now}
	whole, dropped, err := w.replay(path, each)
	if err == nil {
		if err = f.Truncate(whole); err == nil {
			_, err = f.Seek(whole, io.SeekStart)
		}
		if err != nil {
			err = unusable(err)
		}
	}
	if err == nil && dropped > 0 {
		err = w.Write(&Line{Kind: KindDropped, Dropped: &Dropped{Bytes: dropped}})
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return w, nil
}

// replay reads the existing lines, and returns how many bytes are complete lines, and how many follow them.
func (w *Writer) replay(path string, each func(*Line)) (whole, dropped int64, err error) {
	for line, err := range Read(path) {
		var cut *CutOff
		if errors.As(err, &cut) {
			return whole, cut.Bytes, nil
		}
		if err != nil {
			return 0, 0, err
		}
		whole += line.size
		w.n, w.head = line.N, line.hash
		each(&line.Line)
	}
	return whole, 0, nil
}

// Write appends a line, and fills in its number, its time, and the hash of the previous line.
func (w *Writer) Write(l *Line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	l.N, l.Prev, l.At = w.n+1, w.head, w.now()
	text, err := json.Marshal(l)
	if err == nil {
		_, err = w.file.Write(append(text, '\n'))
	}
	if err != nil {
		w.err = unusable(err)
		return w.err
	}
	w.n, w.head = l.N, hash(text)
	return nil
}

// Sync makes the written lines survive a power loss.
func (w *Writer) Sync() error {
	if err := w.file.Sync(); err != nil {
		return unusable(err)
	}
	return nil
}

// Head is the hash of the last line.
func (w *Writer) Head() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Entry is a line that was read.
type Entry struct {
	Line
	hash string
	size int64 // in bytes, with the newline
}

// Hash is the line's own hash. That of the last line is the journal's head.
func (e *Entry) Hash() string { return e.hash }

// CutOff is the error for a journal whose last line has no newline.
type CutOff struct{ Bytes int64 }

// Error says how much of the line there is.
func (e *CutOff) Error() string {
	return fmt.Sprintf("the last line is cut off after %d bytes: the run was ended while it wrote; `memhost eval "+
		"resume` goes on", e.Bytes)
}

// Read reads a journal line by line and verifies the chain.
//
// Errors: *CutOff for an unterminated last line; invalid_argument for a line that cannot be parsed, or does not follow
// the previous one.
func Read(path string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, unusable(err))
			return
		}
		defer f.Close()
		r, head, n := bufio.NewReaderSize(f, 1<<20), empty, int64(0)
		for {
			text, err := r.ReadBytes('\n')
			switch {
			case errors.Is(err, io.EOF) && len(text) == 0:
				return
			case errors.Is(err, io.EOF):
				yield(nil, &CutOff{int64(len(text))})
				return
			case err != nil:
				yield(nil, unusable(err))
				return
			}
			e := &Entry{size: int64(len(text))}
			text = text[:len(text)-1]
			n++
			if err := strict(text, &e.Line); err != nil {
				yield(nil, broken(path, n, "is not a journal's line: %v", err))
				return
			}
			if e.N != n || e.Prev != head {
				yield(nil, broken(path, n, "does not follow the line before it: a line was changed, dropped or added "+
					"later"))
				return
			}
			head = hash(text)
			if e.hash = head; !yield(e, nil) {
				return
			}
		}
	}
}

// strict decodes a line. A report decodes every line of its run twice, in half the time that encoding/json needs.
func strict(text []byte, into *Line) error {
	return fastjson.Unmarshal(text, into, fastjson.RejectUnknownMembers(true))
}

// Verify reads a journal and compares its head with one that was sealed elsewhere. It returns the number of lines.
//
// Errors: those of Read; invalid_argument if the head differs.
func Verify(path, head string) (lines int64, err error) {
	last := empty
	for line, err := range Read(path) {
		if err != nil {
			return lines, err
		}
		lines, last = line.N, line.hash
	}
	if last != head {
		return lines, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s: its head is %.12s, sealed was %.12s: lines were changed, or dropped from its end", path,
				last, head))
	}
	return lines, nil
}

func broken(path string, n int64, format string, args ...any) error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s, line %d: ", path, n)+fmt.Sprintf(format,
		args...)).WithReason("chain")
}

func unusable(err error) error { return abi.WrapError(abi.CodeUnavailable, err.Error(), err) }
