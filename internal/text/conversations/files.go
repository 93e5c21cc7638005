package conversations

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
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

const (
	// maxValue bounds one conversation of an export, and one line of a log, in bytes.
	maxValue = 64 << 20
	// maxRatio bounds the compression ratio of a file in an archive, beyond freeSize bytes. Conversations shrink to a
	// fifth or a tenth.
	maxRatio = 200
	freeSize = 64 << 20
	// maxBlanks bounds blanks in a row, which the JSON decoder scans again with each read.
	maxBlanks = 1 << 20
)

// file is a file to read, on disk or in an archive.
type file struct {
	name string
	open func() (io.ReadCloser, error)
}

// mayHoldConversations reports whether a file in a folder or an archive may belong to the source, judging by its name.
// name has slashes.
func mayHoldConversations(source Source, name string) bool {
	base := path.Base(name)
	ext := strings.ToLower(path.Ext(base))
	switch source {
	case ChatGPT, Claude:
		return strings.HasPrefix(base, "conversations") && ext == ".json"
	case Gemini: // AI Studio's files have no extension in Google Drive
		return ext == ".json" || ext == ""
	}
	return ext == ".jsonl"
}

// holdsConversations examines a file if its name is not enough to decide.
func holdsConversations(source Source, f file) bool {
	if source != Gemini {
		return true
	}
	in, err := f.open()
	if err != nil {
		return true // the error is reported when the file is read
	}
	defer func() { _ = in.Close() }()
	start, _ := io.ReadAll(io.LimitReader(in, 64<<10))
	for _, own := range []string{`"chunkedPrompt"`, `"runSettings"`, `"safeHtmlItem"`, `"Gemini Apps"`, `"Prompted `} {
		if bytes.Contains(start, []byte(own)) {
			return true
		}
	}
	return false
}

// isDerived recognises a file with what a service derived from conversations, such as claude.ai's memories.json.
func isDerived(name string) bool { return path.Base(name) == "memories.json" }

// find lists the files of a source at a path, sorted by name.
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
		return asUTF8(in), nil
	}}
}

// asUTF8 reads a file in UTF-8 or UTF-16.
func asUTF8(in io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{convert.UTF8(in), in}
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

// findInFolder searches a folder, which may be a symbolic link, and its subfolders. It follows no links inside the
// folder.
func findInFolder(source Source, root string) (found []file, derived []string, err error) {
	err = filepath.WalkDir(root+string(filepath.Separator), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return unreadable(name, err)
		case !d.Type().IsRegular():
		case isDerived(filepath.ToSlash(name)):
			derived = append(derived, name)
		case mayHoldConversations(source, filepath.ToSlash(name)) && holdsConversations(source, plain(name)):
			found = append(found, plain(name))
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = nothingIn(source, root)
	}
	return found, derived, err
}

// findInArchive lists the conversation files in a zip archive. They are read without unpacking the archive.
func findInArchive(source Source, name string) (found []file, derived []string, err error) {
	archive, err := openArchive(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = archive.Close() }()
	for _, entry := range archive.entries {
		inside := withSlashes(entry.Name)
		at := name + "/" + inside
		open := func() (io.ReadCloser, error) { return archive.read(entry) }
		const encrypted = 1
		switch {
		case leadsOut(inside):
			return nil, nil, invalid("%s: the archive has a path that leads out of it: %q", name, entry.Name)
		case entry.FileInfo().IsDir(), strings.HasSuffix(inside, "/"):
		case isDerived(inside):
			derived = append(derived, at)
		case !mayHoldConversations(source, inside):
		case entry.Flags&encrypted != 0:
			return nil, nil, invalid("%s: is encrypted; unpack it with its password first", at)
		default:
			if f := (file{at, open}); holdsConversations(source, f) {
				found = append(found, f)
			}
		}
	}
	slices.SortFunc(found, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if len(found) == 0 {
		return nil, nil, nothingIn(source, name)
	}
	return found, derived, nil
}

// withSlashes normalises a name in an archive: some Windows programs write backslashes.
func withSlashes(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// leadsOut reports whether a name with slashes points outside its archive, on any system.
func leadsOut(name string) bool {
	drive := len(name) > 1 && name[1] == ':'
	return drive || !filepath.IsLocal(filepath.FromSlash(strings.TrimSuffix(name, "/")))
}

// archive is a zip archive that is read on demand. Its file is only open while one of its entries is being read, and
// its list of entries is read once.
type archive struct {
	name    string
	entries []*zip.File
	found   fs.FileInfo // when the list was read
	in      *os.File
	users   int // Close closes the file for the last of them
}

// openArchive reads the list of entries. The archive is open until the caller closes it.
func openArchive(name string) (*archive, error) {
	a := &archive{name: name}
	if err := a.open(); err != nil {
		return nil, err
	}
	list, err := zip.NewReader(a, a.found.Size())
	if err != nil {
		_ = a.Close()
		return nil, unreadable(name, err).WithHint("the archive is damaged or cut off: download it again")
	}
	a.entries = list.File
	return a, nil
}

// open opens the file, or counts one more user of it.
func (a *archive) open() error {
	if a.users > 0 {
		a.users++
		return nil
	}
	in, err := os.Open(a.name)
	if err != nil {
		return unreadable(a.name, err)
	}
	info, err := in.Stat()
	switch {
	case err != nil:
		_ = in.Close()
		return unreadable(a.name, err)
	case a.found != nil && (info.Size() != a.found.Size() || !info.ModTime().Equal(a.found.ModTime())):
		_ = in.Close()
		return invalid("%s: the archive changed while it was read", a.name)
	}
	a.in, a.found, a.users = in, info, 1
	return nil
}

// ReadAt implements io.ReaderAt.
func (a *archive) ReadAt(p []byte, off int64) (int, error) { return a.in.ReadAt(p, off) }

// Close implements io.Closer.
func (a *archive) Close() error {
	if a.users--; a.users > 0 {
		return nil
	}
	return a.in.Close()
}

func (a *archive) read(entry *zip.File) (io.ReadCloser, error) {
	if err := a.open(); err != nil {
		return nil, err
	}
	in, err := entry.Open()
	if err != nil {
		_ = a.Close()
		return nil, unreadable(a.name, err)
	}
	left := freeSize + maxRatio*int64(min(entry.CompressedSize64, 1<<40))
	return asUTF8(&archiveEntry{in: in, archive: a, left: left}), nil
}

// archiveEntry reads an entry of an archive, up to a limit.
type archiveEntry struct {
	in      io.ReadCloser
	archive io.Closer
	left    int64
}

var errTooLarge = errors.New("unpacked it is more than 200 times as large as packed, which no conversations are")

// Read implements io.Reader.
func (u *archiveEntry) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.left -= int64(n)
	if u.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (u *archiveEntry) Close() error { return errors.Join(u.in.Close(), u.archive.Close()) }

// list reads an export: a JSON list of conversations, or a single one.
type list struct {
	in     *limitedReader
	decode *json.Decoder
	parse  func(json.RawMessage) (*conversation, error)
	// byTime, if set, returns the time of an element: the list is then read in order of time.
	byTime func(json.RawMessage) time.Time
	sorted []json.RawMessage
	opened bool
	single bool
}

func newList(in io.Reader, parse func(json.RawMessage) (*conversation, error)) *list {
	b := &limitedReader{in: bufio.NewReaderSize(in, 64<<10)}
	return &list{in: b, decode: json.NewDecoder(b), parse: parse}
}

func (l *list) next() (*conversation, error) {
	raw, err := l.element()
	if err != nil {
		return nil, err
	}
	return l.parse(raw)
}

// element returns the next element of the list, in order of time if byTime is set.
func (l *list) element() (json.RawMessage, error) {
	if l.byTime == nil || l.opened && l.sorted == nil {
		return l.read()
	}
	if !l.opened {
		l.sorted = []json.RawMessage{}
		for {
			raw, err := l.read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			l.sorted = append(l.sorted, raw)
		}
		slices.SortStableFunc(l.sorted, func(a, b json.RawMessage) int { return l.byTime(a).Compare(l.byTime(b)) })
	}
	if len(l.sorted) == 0 {
		return nil, io.EOF
	}
	raw := l.sorted[0]
	l.sorted = l.sorted[1:]
	return raw, nil
}

func (l *list) read() (json.RawMessage, error) {
	l.in.left = maxValue
	if !l.opened {
		l.opened = true
		if err := l.open(); err != nil {
			return nil, err
		}
	}
	if l.single {
		if l.decode == nil {
			return nil, io.EOF
		}
	} else if !l.decode.More() {
		if _, err := l.decode.Token(); err != nil {
			return nil, l.cutOff(err)
		}
		return nil, io.EOF
	}
	var raw json.RawMessage
	if err := l.decode.Decode(&raw); err != nil {
		return nil, l.cutOff(err)
	}
	if l.single {
		l.decode = nil
	}
	return raw, nil
}

// open distinguishes a list from a single conversation.
func (l *list) open() error {
	start, _ := l.in.in.Peek(512)
	start = bytes.TrimLeft(start, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("{")):
		l.single = true
		return nil
	case bytes.HasPrefix(start, []byte("<")):
		err := broken("want a JSON list of conversations, found HTML or XML")
		err.err.Hint = "the export has a file of JSON as well, or can be ordered as JSON: Google Takeout offers it for " +
			"\"My Activity\" under \"Multiple formats\""
		return err
	}
	first, err := l.decode.Token()
	if err != nil {
		return l.cutOff(err)
	}
	if first != json.Delim('[') {
		return broken("want a JSON list of conversations, or a conversation alone, found one that starts with %v", first)
	}
	return nil
}

func (l *list) cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return broken("the list of conversations is cut off")
	}
	return broken("the list of conversations cannot be read: %s", err)
}

// limitedReader fails when more is read than allowed.
type limitedReader struct {
	in     *bufio.Reader
	left   int
	blanks int // blanks in a row at the present position
}

var errBlanks = fmt.Errorf("more than %d MiB of blanks", maxBlanks>>20)

var errLongValue = fmt.Errorf("a conversation of more than %d MiB", maxValue>>20)

// Read implements io.Reader.
func (b *limitedReader) Read(p []byte) (int, error) {
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

// lines reads a log: one JSON object per line.
type lines struct {
	in     *bufio.Reader
	number int
	// cutOff is 1 if the last line is incomplete.
	cutOff int
	glued  []byte // an entry that follows a damaged line without a line end
}

func newLines(in io.Reader) *lines { return &lines{in: bufio.NewReaderSize(in, 64<<10)} }

// badLine is a line that cannot be read. The following lines can.
type badLine struct {
	line int
	err  *abi.Error
}

func (e *badLine) Error() string { return e.err.Message }
func (e *badLine) Unwrap() error { return e.err }

func newBadLine(line int, message, hint string) *badLine {
	e := invalid("line %d: %s", line, message)
	if hint != "" {
		e = e.WithHint(hint)
	}
	return &badLine{line, e}
}

// next reads the next line that is not blank into v. A last line without a line end that is not valid JSON is still
// being written, or was when its program stopped: next skips it and counts it in cutOff.
//
// A program that was killed leaves an incomplete line, and its next run appends an entry to it. The incomplete part is
// then a bad line, and the entry is read as if it were on its own line. The same applies to what follows NUL bytes,
// which a power loss leaves.
//
// Errors: io.EOF after the last line; *badLine for a line that is not a JSON object, after which the next one can be
// read; *brokenError if the file cannot be read any further.
func (l *lines) next(v any) error {
	for {
		line, whole := l.glued, true
		if l.glued = nil; line == nil {
			var err error
			if line, whole, err = l.read(); err != nil {
				return err
			}
		}
		line = bytes.TrimSpace(line)
		if withoutNULs := bytes.Trim(line, "\x00 \t\r\n"); len(withoutNULs) > 0 {
			line = withoutNULs
		}
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			if l.glued = entryBehind(line); l.glued == nil && !whole {
				l.cutOff = 1
				return io.EOF
			}
		}
		err := json.Unmarshal(line, v)
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) && line[0] == '{' {
			err = nil // a field has an unexpected type: keep what could be read
		}
		if err != nil {
			return newBadLine(l.number, "is not a JSON object: "+err.Error(), "")
		}
		return nil
	}
}

// entryBehind returns the JSON object that ends a damaged line; nil if there is none.
func entryBehind(line []byte) []byte {
	const most = 32 // limit on tried objects
	for at, n := 1, 0; at < len(line) && n < most; n++ {
		next := bytes.Index(line[at:], []byte(`{"`))
		if next < 0 {
			return nil
		}
		at += next
		if json.Valid(line[at:]) {
			return line[at:]
		}
		at++
	}
	return nil
}

// read returns a line. whole means that it has a line end.
func (l *lines) read() (line []byte, whole bool, err error) {
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxValue; long {
			line = line[:0]
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, broken("line %d: %s", l.number+1, err)
		}
		if err != nil && len(line) == 0 && !long {
			return nil, false, io.EOF
		}
		l.number++
		if long {
			return nil, false, newBadLine(l.number, fmt.Sprintf("is longer than %d MiB", maxValue>>20), "")
		}
		return line, err == nil, nil
	}
}
