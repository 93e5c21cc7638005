package nanobot

import (
	"bytes"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/sdk"
)

// An import comes in several calls, which may be repeated after an interruption; what they bring waits under import/<path>//<part> until the last one has
// come. Only then is it clear which files there are: what HISTORY.md means depends on whether there is a history.jsonl.
const (
	stagedKey = "import/"
	begunKey  = "import"
	// pathMost is how long a path may be: it is part of a key.
	pathMost = 450
)

// Incoming is the files of an import, once all have come.
type Incoming struct {
	call *sdk.Call
	// Paths are those that nobody has taken yet, in order.
	Paths []string
	parts map[string][]sdk.Item
	// policy is the module's; provider its name.
	policy string
	// Taken counts the files.
	Taken int64
}

// ImportFiles is the mutation import_files {files: {path: text}, continues?, done?}: it takes a workspace of Nanobot, or what the query files gave, into an
// empty scope. With continues the first of the files goes on where it ended in the call before. take is called after the last call; what it leaves is
// sessions, or kept as it is. Paths that cannot be kept are named in trace.details.skipped.
//
// Errors: conflict where the scope is not empty.
func ImportFiles(c *sdk.Call, r *abi.NativeMutation, policy string, receipt *abi.MutationReceipt, empty func() (bool, error), take func(in *Incoming) error) error {
	_, begun, err := c.Get(begunKey)
	if err != nil {
		return err
	}
	if begun == 0 {
		if is, err := empty(); err != nil || !is {
			if err == nil {
				err = abi.NewError(abi.CodeConflict, "the scope holds a memory of its own").WithHint("import into an empty scope")
			}
			return err
		}
		if err := c.Put(begunKey, []byte("1"), 0); err != nil {
			return err
		}
	}
	skipped, err := stage(c, r.Params)
	if err != nil {
		return err
	}
	receipt.Status = "applied"
	if string(r.Params["done"]) == "true" {
		in, err := incoming(c, policy)
		if err != nil {
			return err
		}
		if err := take(in); err != nil {
			return err
		}
		if err := in.rest(); err != nil {
			return err
		}
		if _, err := c.Delete(begunKey); err != nil { // all that begins so: the staged files, too
			return err
		}
		receipt.Trace.Details.Set("files", sdk.Number(in.Taken))
	}
	var e jsontext.Encoder
	WriteList(&e, skipped)
	receipt.Trace.Details.Set("skipped", e.Bytes())
	return nil
}

func stage(c *sdk.Call, params map[string]abi.Raw) (skipped []string, err error) {
	goesOn := string(params["continues"]) == "true"
	if len(params["files"]) == 0 {
		return nil, nil
	}
	err = jsontext.DecodeBytes(params["files"]).Obj(func(d *jsontext.Decoder, path string) error {
		text, err := d.Str()
		if err != nil {
			return abi.NewError(abi.CodeInvalidArgument, "params.files: want texts: "+err.Error())
		}
		if path == "" || len(path) > pathMost || strings.Contains(path, "//") || strings.HasPrefix(path, "/") {
			skipped = append(skipped, path)
			return nil
		}
		prefix, n := stagedKey+path+"//", 0
		if goesOn {
			parts, _, err := c.List(abi.StateListRequest{Prefix: prefix})
			if err != nil {
				return err
			}
			n = len(parts)
		} else if _, err := c.Delete(prefix); err != nil {
			return err
		}
		goesOn = false
		return c.Put(prefix+sdk.Itoa(1000000+n), []byte(text), sdk.AnyVersion)
	})
	return skipped, err
}

func incoming(c *sdk.Call, policy string) (*Incoming, error) {
	in := &Incoming{call: c, policy: policy, parts: map[string][]sdk.Item{}}
	return in, c.Each(abi.StateListRequest{Prefix: stagedKey}, func(item sdk.Item) error {
		path := item.Key[len(stagedKey):strings.LastIndex(item.Key, "//")]
		if in.parts[path] == nil {
			in.Paths = append(in.Paths, path)
		}
		in.parts[path] = append(in.parts[path], item)
		return nil
	})
}

// Has tells whether a file has come, and nobody has taken it.
func (in *Incoming) Has(path string) bool { return contains(in.Paths, path) }

// Take reads a file, which is nobody else's then; "" where there is none.
func (in *Incoming) Take(path string) (string, error) {
	if !in.claim(path) {
		return "", nil
	}
	size := int64(0)
	for _, part := range in.parts[path] {
		size += part.Size
	}
	text := make([]byte, 0, size)
	for _, part := range in.parts[path] {
		data, _, err := in.call.Get(part.Key)
		if err != nil {
			return "", err
		}
		text = append(text, data...)
	}
	return string(text), nil
}

// claim takes a file off the list; false where it is not there.
func (in *Incoming) claim(path string) bool {
	for i, p := range in.Paths {
		if p == path {
			in.Paths = append(append([]string(nil), in.Paths[:i]...), in.Paths[i+1:]...)
			in.Taken++
			return true
		}
	}
	return false
}

// TakeLines is Take line by line, without what is blank: a long file is never in memory as a whole, and no line keeps more than itself there.
func (in *Incoming) TakeLines(path string, each func(line string) error) error {
	if !in.claim(path) {
		return nil
	}
	return in.lines(path, each)
}

func (in *Incoming) lines(path string, each func(line string) error) error {
	line := func(text []byte) error {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			return nil
		}
		return each(string(text))
	}
	var open []byte // the beginning of a line that goes on in the next part
	for _, part := range in.parts[path] {
		data, _, err := in.call.Get(part.Key)
		if err != nil {
			return err
		}
		for {
			end := bytes.IndexByte(data, '\n')
			if end < 0 {
				break
			}
			text := data[:end]
			if len(open) > 0 {
				text = append(open, text...)
				open = nil
			}
			if err := line(text); err != nil {
				return err
			}
			data = data[end+1:]
		}
		open = append(open, data...)
	}
	return line(open)
}

// Keep puts a file that was taken among those that are kept as they are.
func (in *Incoming) Keep(path, text string) error {
	return KeepFile(in.call, path, text, sdk.AnyVersion)
}

// rest takes the sessions, and keeps what is none.
func (in *Incoming) rest() error {
	if err := in.sessions(); err != nil {
		return err
	}
	for _, path := range append([]string(nil), in.Paths...) {
		text, err := in.Take(path)
		if err != nil {
			return err
		}
		if err := in.Keep(path, text); err != nil {
			return err
		}
	}
	return nil
}
