package nanobot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// fileKey is the prefix of the keys of workspace files that a module keeps unchanged: SOUL.md and the like, and all
// files it does not know, so that nothing of an import is lost.
const fileKey = "file/"

// pageBytes is the approximate size of the texts on a page of files.
const pageBytes = 4 << 20

// Files writes the answer of the query files: an object from path to text, in pages. A file that does not fit a page
// continues under the same path on the next one. Files are written in the order of the calls, which must be the same
// for every page.
type Files struct {
	*Base
	e    wirejson.Encoder
	left int
	// path and seq say where the page begins; path is "" once it has been reached.
	path string
	seq  int64
	next string
}

// newFiles begins the page after a cursor, "" for the first.
func newFiles(b *Base, after string) *Files {
	f := &Files{Base: b, left: pageBytes}
	if path, seq, found := strings.Cut(after, "//"); found {
		f.path = path
		f.seq, _ = strconv.ParseInt(seq, 10, 64)
	}
	f.e.ObjStart()
	return f
}

// includes reports whether a file belongs to the page, and from which line.
func (f *Files) includes(path string) (from int64, here bool) {
	switch {
	case f.next != "" || f.path != "" && f.path != path:
		return 0, false
	case f.path == path:
		f.path = ""
		return f.seq, true
	case f.left <= 0:
		f.next = path + "//0"
		return 0, false
	}
	return 0, true
}

// Text adds a file.
func (f *Files) Text(path, text string) {
	if _, here := f.includes(path); here {
		f.add(path, text)
	}
}

func (f *Files) add(path, text string) {
	f.e.FieldStart(path)
	f.e.Str(text)
	f.left -= len(text)
}

// Log adds a file with a log's entries from one number up to but excluding another, counted from 0, each formatted by
// line. head is written before the first.
func (f *Files) Log(path, log string, head func() []byte, from, to int64, line func(entry []byte) []byte) {
	done, here := f.includes(path)
	if !here {
		return
	}
	var text []byte
	if done == 0 && head != nil {
		text = head()
	}
	for x := range f.Entries(log, from+done+1, to) {
		text = append(text, line(x.Data)...)
		if len(text) >= f.left && x.Seq < to {
			f.next = path + "//" + sdk.Itoa(x.Seq-from)
			break
		}
	}
	f.add(path, string(text))
}

// Line is an entry with its line end.
func Line(entry []byte) []byte { return append(append([]byte(nil), entry...), '\n') }

// AddKept adds the files that the memory keeps unchanged, except those in but, which the memory has added itself.
func (f *Files) AddKept(except ...string) {
	for item := range f.Items(abi.StateListRequest{Prefix: fileKey}) {
		path := strings.TrimPrefix(item.Key, fileKey)
		if slices.Contains(except, path) {
			continue
		}
		if _, here := f.includes(path); here {
			text, _ := f.Get(item.Key)
			f.add(path, string(text))
		}
	}
}

// end returns the page. next is where the following page begins, "" after the last.
func (f *Files) end() []byte {
	f.e.ObjEnd()
	return f.e.Bytes()
}

// KeptFile reads a file that is kept unchanged, with its version; "" if there is none.
func KeptFile(s *state.State, path string) (string, int64) {
	text, version := s.Get(fileKey + path)
	return string(text), version
}

// KeepFile writes a file that is kept unchanged.
func KeepFile(s *state.State, path, text string, version int64) {
	s.Put(fileKey+path, []byte(text), version)
}
