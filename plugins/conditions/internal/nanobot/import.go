package nanobot

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// An import consists of several calls, which may be repeated after an interruption. Their files are stored under
// import/<path>//<part> until the last call. Only then is it known which files there are: what HISTORY.md means depends
// on whether there is a history.jsonl.
const (
	stagedKey = "import/"
	begunKey  = "import"
	// maxPath is the maximum length of a path, which is part of a key.
	maxPath = 450
)

// Incoming holds the files of an import once all have arrived.
type Incoming struct {
	*Base
	// Paths are those not taken yet, in order.
	Paths []string
	parts map[string][]sdk.Item
	// Taken counts the files.
	Taken int64
}

// importFiles is the mutation import_files {files: {path: text}, continues?, done?}. With continues the first of the
// files continues where it ended in the previous call. After the last call the memory takes its own files; the others
// are imported as sessions, or kept unchanged. Paths that cannot be kept are listed in trace.details.skipped.
//
// Errors: conflict if the scope is not empty.
func importFiles(m Memory, r *abi.NativeMutation, receipt *abi.MutationReceipt) {
	b := m.Common()
	if !b.Has(begunKey) {
		if lastSession(b.State) != "" || !m.Empty() {
			b.Fail(abi.NewError(abi.CodeConflict, "the scope holds a memory of its own").WithHint("import into an empty scope"))
		}
		b.Put(begunKey, []byte("1"), 0)
	}
	skipped := stage(b, r.Params)
	receipt.Status = "applied"
	if string(r.Params["done"]) == "true" {
		in := incoming(b)
		m.TakeFiles(in)
		in.sessions()
		for _, path := range slices.Clone(in.Paths) {
			in.Keep(path, in.Take(path))
		}
		b.Delete(begunKey) // deletes everything with this prefix, staged files included
		sdk.Put(&receipt.Trace.Details, "files", sdk.Number(in.Taken))
	}
	sdk.Put(&receipt.Trace.Details, "skipped", object.Texts(skipped))
}

// stage keeps the files of a call until the last one has arrived.
func stage(b *Base, params map[string]abi.Raw) (skipped []string) {
	goesOn := string(params["continues"]) == "true"
	if len(params["files"]) == 0 {
		return nil
	}
	err := wirejson.DecodeBytes(params["files"]).Obj(func(d *wirejson.Decoder, path string) error {
		text, err := d.Str()
		if err != nil {
			return abi.NewError(abi.CodeInvalidArgument, "params.files: want texts: "+err.Error())
		}
		if path == "" || len(path) > maxPath || strings.Contains(path, "//") || strings.HasPrefix(path, "/") {
			skipped = append(skipped, path)
			return nil
		}
		prefix, n := stagedKey+path+"//", 0
		if goesOn {
			parts, _ := b.List(abi.StateListRequest{Prefix: prefix})
			n = len(parts)
		} else {
			b.Delete(prefix)
		}
		goesOn = false
		b.Put(prefix+sdk.Itoa(1000000+n), []byte(text), sdk.AnyVersion)
		return b.Err()
	})
	b.Fail(err)
	return skipped
}

func incoming(b *Base) *Incoming {
	in := &Incoming{Base: b, parts: map[string][]sdk.Item{}}
	for item := range b.Items(abi.StateListRequest{Prefix: stagedKey}) {
		path := item.Key[len(stagedKey):strings.LastIndex(item.Key, "//")]
		if in.parts[path] == nil {
			in.Paths = append(in.Paths, path)
		}
		in.parts[path] = append(in.parts[path], item)
	}
	return in
}

// Unclaimed reports whether a file has arrived and has not been taken.
func (in *Incoming) Unclaimed(path string) bool { return slices.Contains(in.Paths, path) }

// Take reads a file and removes it from the list; "" if there is none.
func (in *Incoming) Take(path string) string {
	if !in.claim(path) {
		return ""
	}
	size := int64(0)
	for _, part := range in.parts[path] {
		size += part.Size
	}
	text := make([]byte, 0, size)
	for _, part := range in.parts[path] {
		data, _ := in.Get(part.Key)
		text = append(text, data...)
	}
	return string(text)
}

// claim removes a file from the list; false if it is not there.
func (in *Incoming) claim(path string) bool {
	i := slices.Index(in.Paths, path)
	if i < 0 {
		return false
	}
	in.Paths = slices.Concat(in.Paths[:i], in.Paths[i+1:])
	in.Taken++
	return true
}

// TakeLines is like Take, but returns the lines one by one, without blank lines. It never holds a whole long file in
// memory, and each line is a copy of its own.
func (in *Incoming) TakeLines(path string) iter.Seq[string] {
	if !in.claim(path) {
		return func(func(string) bool) {}
	}
	return in.lines(path)
}

func (in *Incoming) lines(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var open []byte // the beginning of a line that continues in the next part
		for _, part := range in.parts[path] {
			data, _ := in.Get(part.Key)
			for {
				text, rest, ended := bytes.Cut(data, []byte{'\n'})
				if !ended {
					open = append(open, data...)
					break
				}
				line := strings.TrimSpace(string(append(open, text...)))
				if line != "" && !yield(line) {
					return
				}
				open, data = open[:0], rest
			}
		}
		if line := strings.TrimSpace(string(open)); line != "" {
			yield(line)
		}
	}
}

// Keep stores a taken file among those that are kept unchanged.
func (in *Incoming) Keep(path, text string) { KeepFile(in.State, path, text, sdk.AnyVersion) }
