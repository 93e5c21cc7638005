package nanobot

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/sdk"
)

// fileKey is where files of a workspace stand of which a module does not keep the content in another form: SOUL.md and the like, and all that it does not
// know, so that nothing of an import is lost.
const fileKey = "file/"

// pageBytes is about how much text a page of files has.
const pageBytes = 4 << 20

// Files writes the answer of the query files: an object of paths and texts, in pages. A file that does not fit a page goes on under the same path in the
// next one. The order of the calls is the order of the files, and is the same for every page.
type Files struct {
	e    jsontext.Encoder
	left int
	// path and seq are where the page begins; path is "" once it has been reached.
	path string
	seq  int64
	next string
}

// NewFiles begins the page behind a cursor, "" for the first.
func NewFiles(after string) *Files {
	f := &Files{left: pageBytes}
	path, seq, found := strings.Cut(after, "//")
	if found {
		f.path = path
		f.seq, _ = strconv.ParseInt(seq, 10, 64)
	}
	f.e.ObjStart()
	return f
}

// begin tells whether a file belongs to the page, and from which line on.
func (f *Files) begin(path string) (from int64, here bool) {
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
	if _, here := f.begin(path); here {
		f.add(path, text)
	}
}

func (f *Files) add(path, text string) {
	f.e.FieldStart(path)
	f.e.Str(text)
	f.left -= len(text)
}

// Log adds a file of a log's entries from one number to before another, counted from 0, each as line gives it. head stands before the first.
func (f *Files) Log(c *sdk.Call, path, log string, head func() ([]byte, error), from, to int64, line func(entry []byte) []byte) error {
	done, here := f.begin(path)
	if !here {
		return nil
	}
	var text []byte
	if done == 0 && head != nil {
		var err error
		if text, err = head(); err != nil {
			return err
		}
	}
	for from += done; from < to; {
		entries, _, err := c.Read(abi.StateReadRequest{Log: log, From: from + 1, Limit: min(200, to-from)})
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		for _, x := range entries {
			text = append(text, line(x.Data)...)
		}
		done += entries[len(entries)-1].Seq - from
		from = entries[len(entries)-1].Seq
		if len(text) >= f.left && from < to {
			f.next = path + "//" + sdk.Itoa(done)
			break
		}
	}
	f.add(path, string(text))
	return nil
}

// Line is an entry with its line end.
func Line(entry []byte) []byte { return append(append([]byte(nil), entry...), '\n') }

// Kept adds the files that the module keeps as they are, but for those that it has added itself.
func (f *Files) Kept(c *sdk.Call, but ...string) error {
	return c.Each(abi.StateListRequest{Prefix: fileKey}, func(item sdk.Item) error {
		path := strings.TrimPrefix(item.Key, fileKey)
		if contains(but, path) {
			return nil
		}
		if _, here := f.begin(path); !here {
			return nil
		}
		text, _, err := c.Get(item.Key)
		if err == nil {
			f.add(path, string(text))
		}
		return err
	})
}

// KeptFile reads a file that is kept as it is, "" where there is none, with its version.
func KeptFile(c *sdk.Call, path string) (string, int64, error) {
	text, version, err := c.Get(fileKey + path)
	return string(text), version, err
}

// KeepFile writes one.
func KeepFile(c *sdk.Call, path, text string, version int64) error {
	return c.Put(fileKey+path, []byte(text), version)
}

// End is the page; next is where the one behind it begins, "" for the last.
func (f *Files) End() (page []byte, next string) {
	f.e.ObjEnd()
	return f.e.Bytes(), f.next
}

func contains(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// Answer puts the page into the query's answer.
func (f *Files) Answer(to *abi.NativeQueryResult) {
	page, next := f.End()
	to.Result = page
	if next != "" {
		to.Trace.Details = abi.Members[abi.Raw]{{Name: "next", Value: sdk.Text(next)}}
	}
}
