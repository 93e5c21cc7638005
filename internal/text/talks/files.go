package talks

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxValue bounds one talk of an export, and one line of a log, in bytes.
	maxValue = 64 << 20
	// maxRatio bounds how much larger a file of an archive may be than what is packed of it, beyond freeSize bytes.
	// Talks shrink to a fifth or a tenth.
	maxRatio = 200
	freeSize = 64 << 20
	// maxBlanks bounds blanks in a row, which the JSON decoder looks through again with each reading.
	maxBlanks = 1 << 20
)

// file is what is read: a file, or one in an archive.
type file struct {
	name string
	open func() (io.ReadCloser, error)
}

// holdsTalks tells, by its name, a file of the source in a folder or an archive. name has slashes.
func holdsTalks(source Source, name string) bool {
	base := path.Base(name)
	switch source {
	case ChatGPT, Claude:
		return strings.HasPrefix(base, "conversations") && path.Ext(base) == ".json"
	}
	return path.Ext(base) == ".jsonl"
}

// isDerived tells a file that holds what a service drew from talks, such as claude.ai's memories.json.
func isDerived(name string) bool { return path.Base(name) == "memories.json" }

// find lists what a path has for a source, in the order of the names.
func find(source Source, name string) (found []file, derived []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	if info.IsDir() {
		return findInFolder(source, name)
	}
	if isDerived(filepath.ToSlash(name)) {
		return nil, []string{name}, nil
	}
	packed, err := isZip(name)
	if err != nil {
		return nil, nil, unreadable(name, err)
	}
	if packed {
		return findInArchive(source, name)
	}
	return []file{plain(name)}, nil, nil
}

func plain(name string) file {
	return file{name, func() (io.ReadCloser, error) {
		in, err := os.Open(name)
		if err != nil {
			return nil, unreadable(name, err)
		}
		return in, nil
	}}
}

func isZip(name string) (bool, error) {
	in, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	var start [4]byte
	_, err = io.ReadFull(in, start[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return bytes.Equal(start[:], []byte("PK\x03\x04")) || bytes.Equal(start[:], []byte("PK\x05\x06")), nil
}

// findInFolder looks through a folder, which may be a link, and those in it. Links in it are not followed.
func findInFolder(source Source, root string) (found []file, derived []string, err error) {
	err = filepath.WalkDir(root+string(filepath.Separator), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return unreadable(name, err)
		case !d.Type().IsRegular():
		case isDerived(filepath.ToSlash(name)):
			derived = append(derived, name)
		case holdsTalks(source, filepath.ToSlash(name)):
			found = append(found, plain(name))
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = nothingIn(source, root)
	}
	return found, derived, err
}

// findInArchive lists the talks of a zip archive. They are read from where they are.
func findInArchive(source Source, name string) (found []file, derived []string, err error) {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return nil, nil, unreadable(name, err).WithHint("the archive is damaged or cut off: download it again")
	}
	defer func() { _ = archive.Close() }()
	for i, entry := range archive.File {
		at := name + "/" + entry.Name
		const encrypted = 1
		switch {
		case leadsOut(entry.Name):
			return nil, nil, invalid("%s: the archive has a path that leads out of it: %q", name, entry.Name)
		case entry.FileInfo().IsDir():
		case isDerived(entry.Name):
			derived = append(derived, at)
		case !holdsTalks(source, entry.Name):
		case entry.Flags&encrypted != 0:
			return nil, nil, invalid("%s: is encrypted; unpack it with its password first", at)
		default:
			found = append(found, file{at, func() (io.ReadCloser, error) { return openInArchive(name, i, entry.Name) }})
		}
	}
	slices.SortFunc(found, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if len(found) == 0 {
		return nil, nil, nothingIn(source, name)
	}
	return found, derived, nil
}

func leadsOut(name string) bool {
	return strings.Contains(name, `\`) || !filepath.IsLocal(filepath.FromSlash(strings.TrimSuffix(name, "/")))
}

// openInArchive opens an archive again, so that between two files none is held open.
func openInArchive(name string, at int, entry string) (io.ReadCloser, error) {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	if at >= len(archive.File) || archive.File[at].Name != entry { // a name may be there twice
		_ = archive.Close()
		return nil, invalid("the archive changed while it was read")
	}
	in, err := archive.File[at].Open()
	if err != nil {
		_ = archive.Close()
		return nil, unreadable(name, err)
	}
	left := freeSize + maxRatio*int64(min(archive.File[at].CompressedSize64, 1<<40))
	return &unpacked{in: in, archive: archive, left: left}, nil
}

// unpacked reads a file of an archive, up to a bound.
type unpacked struct {
	in      io.ReadCloser
	archive io.Closer
	left    int64
}

var errTooLarge = errors.New("unpacked it is more than 200 times as large as packed, which no talks are")

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.left -= int64(n)
	if u.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpacked) Close() error { return errors.Join(u.in.Close(), u.archive.Close()) }

// list reads an export: one JSON list with a talk in each element.
type list struct {
	in     *bounded
	decode *json.Decoder
	parse  func(json.RawMessage) (*talk, error)
	opened bool
}

func newList(in io.Reader, parse func(json.RawMessage) (*talk, error)) *list {
	b := &bounded{in: bufio.NewReaderSize(in, 64<<10)}
	if mark, _ := b.in.Peek(3); bytes.Equal(mark, []byte("\xEF\xBB\xBF")) {
		_, _ = b.in.Discard(len(mark))
	}
	return &list{in: b, decode: json.NewDecoder(b), parse: parse}
}

func (l *list) next() (*talk, error) {
	l.in.left = maxValue
	if !l.opened {
		l.opened = true
		first, err := l.decode.Token()
		if err != nil {
			return nil, l.cutOff(err)
		}
		if first != json.Delim('[') {
			return nil, broken("want a JSON list of talks, found one that starts with %v", first)
		}
	}
	if !l.decode.More() {
		if _, err := l.decode.Token(); err != nil {
			return nil, l.cutOff(err)
		}
		return nil, io.EOF
	}
	var raw json.RawMessage
	if err := l.decode.Decode(&raw); err != nil {
		return nil, l.cutOff(err)
	}
	return l.parse(raw)
}

func (l *list) cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return broken("the list of talks is cut off")
	}
	return broken("the list of talks cannot be read: %s", err)
}

// bounded ends a reading that takes more than it may.
type bounded struct {
	in     *bufio.Reader
	left   int
	blanks int // in a row, up to where has been read
}

var errBlanks = fmt.Errorf("more than %d MiB of blanks", maxBlanks>>20)

var errLongValue = fmt.Errorf("a talk of more than %d MiB", maxValue>>20)

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongValue
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	if kept := bytes.TrimRight(p[:n], " \t\r\n"); len(kept) == 0 {
		b.blanks += n
	} else {
		b.blanks = n - len(kept)
	}
	if b.blanks > maxBlanks {
		return 0, errBlanks
	}
	return n, err
}

// lines reads a log: a JSON object on each line.
type lines struct {
	in     *bufio.Reader
	number int
}

func newLines(in io.Reader) *lines { return &lines{in: bufio.NewReaderSize(in, 64<<10)} }

// next reads the next line that is not blank into v. A last line without its end that is no JSON is still being
// written, or was when its program stopped: it is passed over.
//
// Errors: io.EOF after the last line; *brokenError for a line that is not a JSON object, or too long.
func (l *lines) next(v any) error {
	for {
		line, whole, err := l.read()
		if err != nil {
			return err
		}
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !whole && !json.Valid(line) {
			return io.EOF
		}
		err = json.Unmarshal(line, v)
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) && line[0] == '{' {
			err = nil // a field of another version: what could be read counts
		}
		if err != nil {
			return broken("line %d: is not a JSON object: %s", l.number, err)
		}
		return nil
	}
}

// read returns a line. whole: it has its end.
func (l *lines) read() (line []byte, whole bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxValue:
			return nil, false, broken("line %d: is longer than %d MiB", l.number+1, maxValue>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			l.number++
			return line, false, nil
		case errors.Is(err, io.EOF):
			return nil, false, io.EOF
		case err != nil:
			return nil, false, broken("line %d: %s", l.number+1, err)
		}
		l.number++
		return line, true, nil
	}
}
