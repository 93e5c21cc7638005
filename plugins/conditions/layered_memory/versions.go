package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

const versionLog = "versions"

// cursorFile is tracked beside the content files.
const cursorFile = "memory/.dream_cursor"

// diffMost bounds the diff in a version's message, in characters.
const diffMost = 6000

// version is a state of the files. tree holds the blob of each tracked file, in the order of tracked; "" for one that it does not have.
type version struct {
	sha, parent, at, author, message string
	tree                             []string
	stats                            []stat
}

// stat counts a file's lines that a version added and removed.
type stat struct {
	path           string
	added, removed int64
}

// author is who records versions.
const author = "memhost"

var tracked = append(append([]string(nil), contentFiles...), cursorFile)

// sameContent compares texts but for line ends.
func sameContent(a, b string) bool {
	return strings.ReplaceAll(a, "\r\n", "\n") == strings.ReplaceAll(b, "\r\n", "\n")
}

// commit records a version if a content file differs from the newest one, and returns its id. The first is preceded by one of what was there before.
func commit(c *sdk.Call, files folder, subject string, before, after int64) (string, error) {
	changed := false
	for _, f := range files {
		changed = changed || !sameContent(f.text, f.before)
	}
	if !changed {
		return "", nil
	}
	head, err := headVersion(c)
	if err != nil {
		return "", err
	}
	if head == "" {
		old := make([]string, 0, len(tracked))
		for _, f := range files {
			old = append(old, f.before)
		}
		if head, err = record(c, "", "init", append(old, sdk.Itoa(before)), nil); err != nil {
			return "", err
		}
	}
	now := make([]string, 0, len(tracked))
	counts, diff, plus, minus := "", "", 0, 0
	var stats []stat
	for _, f := range files {
		now = append(now, f.text)
		if !sameContent(f.text, f.before) {
			text, added, removed := unified(f.path, f.before, f.text)
			counts += f.path + " +" + sdk.Itoa(added) + " -" + sdk.Itoa(removed) + "\n"
			diff, plus, minus = diff+text, plus+added, minus+removed
			stats = append(stats, stat{f.path, int64(added), int64(removed)})
		}
	}
	message := subject + "\n\n" + counts + "total +" + sdk.Itoa(plus) + " -" + sdk.Itoa(minus) + "\n\n" + nanobot.Clip(diff, diffMost)
	return record(c, head, message, append(now, sdk.Itoa(after)), stats)
}

// record writes a version of the tracked files' texts.
func record(c *sdk.Call, parent, message string, texts []string, stats []stat) (string, error) {
	v := version{parent: parent, at: c.Now, author: author, message: message, stats: stats}
	for _, text := range texts {
		blob := sdk.Digest256(text)
		v.tree = append(v.tree, blob)
		if err := c.Put("blob/"+blob, []byte(text), sdk.AnyVersion); err != nil {
			return "", err
		}
	}
	data := v.encode(false)
	v.sha = sdk.Digest256(string(data))
	if err := c.Put("version/"+v.sha, data, sdk.AnyVersion); err != nil {
		return "", err
	}
	_, err := c.Append(versionLog, []byte(v.sha))
	return v.sha, err
}

// encode is the version as canonical JSON (RFC 8785), of which its id is the SHA-256; with the id, as a line of versions/log.jsonl, it stands before the others.
func (v *version) encode(withID bool) []byte {
	var e jsontext.Encoder
	text := func(name, value string) {
		e.FieldStart(name)
		e.Str(value)
	}
	e.ObjStart()
	if withID {
		text("sha", v.sha)
	}
	text("author", v.author)
	text("message", v.message)
	text("parent", v.parent)
	e.FieldStart("stats")
	e.ArrStart()
	for _, x := range v.stats {
		e.ObjStart()
		e.FieldStart("added")
		e.Int64(x.added)
		text("path", x.path)
		e.FieldStart("removed")
		e.Int64(x.removed)
		e.ObjEnd()
	}
	e.ArrEnd()
	text("time", v.at)
	e.FieldStart("tree")
	e.ObjStart()
	for _, i := range canonicalTree {
		if v.tree[i] != "" {
			text(tracked[i], v.tree[i])
		}
	}
	e.ObjEnd()
	e.ObjEnd()
	return e.Bytes()
}

// canonicalTree is the order of tracked by name: SOUL.md, USER.md, memory/.dream_cursor, memory/MEMORY.md.
var canonicalTree = []int{0, 1, 3, 2}

// decodeVersion reads a version; its sha where the text has one.
func decodeVersion(data []byte) (*version, error) {
	v := &version{tree: make([]string, len(tracked))}
	err := nanobot.DecodeFrom(jsontext.DecodeBytes(data), []nanobot.Field{nanobot.Word("sha", &v.sha), nanobot.Word("parent", &v.parent), nanobot.Word("time", &v.at),
		nanobot.Word("author", &v.author), nanobot.Word("message", &v.message)}, func(d *jsontext.Decoder, key string) error {
		switch {
		case key == "tree" && d.Next() == jsontext.Object:
			var fields []nanobot.Field
			for i := range tracked {
				fields = append(fields, nanobot.Word(tracked[i], &v.tree[i]))
			}
			return nanobot.DecodeFrom(d, fields, nil)
		case key == "stats" && d.Next() == jsontext.Array:
			return d.Arr(func(d *jsontext.Decoder) error {
				var x stat
				err := nanobot.DecodeFrom(d, []nanobot.Field{nanobot.Word("path", &x.path), nanobot.Number("added", &x.added), nanobot.Number("removed", &x.removed)}, nil)
				v.stats = append(v.stats, x)
				return err
			})
		}
		return d.Skip()
	})
	return v, err
}

func headVersion(c *sdk.Call) (string, error) {
	last, _, err := c.Read(abi.StateReadRequest{Log: versionLog, Reverse: true, Limit: 1})
	if err != nil || len(last) == 0 {
		return "", err
	}
	return string(last[0].Data), nil
}

// eachVersion walks the versions, newest first, until each says false.
func eachVersion(c *sdk.Call, each func(*version) bool) error {
	for from := int64(0); ; {
		ids, _, err := c.Read(abi.StateReadRequest{Log: versionLog, From: from, Limit: 100, Reverse: true})
		if err != nil {
			return err
		}
		for _, id := range ids {
			from = id.Seq - 1
			v, err := readVersion(c, string(id.Data))
			if err != nil {
				return err
			}
			if !each(v) {
				return nil
			}
		}
		if len(ids) == 0 || from == 0 {
			return nil
		}
	}
}

func readVersion(c *sdk.Call, sha string) (*version, error) {
	data, _, err := c.Get("version/" + sha)
	if err != nil {
		return nil, err
	}
	v, err := decodeVersion(data)
	v.sha = sha
	if err != nil || v.at == "" {
		return nil, abi.NewError(abi.CodeUnavailable, "the state's version "+sha+" is not what was stored there").WithReason("state_io")
	}
	return v, nil
}

// findVersion finds a version by a unique prefix of its id.
//
// Errors: invalid_argument for a prefix of less than 4 characters, not_found, conflict where it fits several.
func findVersion(c *sdk.Call, prefix string) (found *version, err error) {
	if len(prefix) < 4 {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.sha: want at least 4 characters")
	}
	several := false
	err = eachVersion(c, func(v *version) bool {
		if strings.HasPrefix(v.sha, prefix) && (found == nil || found.sha != v.sha) {
			several = found != nil
			found = v
		}
		return !several
	})
	switch {
	case err != nil:
		return nil, err
	case several:
		return nil, abi.NewError(abi.CodeConflict, "params.sha: several versions begin so")
	case found == nil:
		return nil, abi.NewError(abi.CodeNotFound, "params.sha: there is no such version")
	}
	return found, nil
}

// restore writes every tracked file as it was before a version of Dream, and records that. It is a rewind: what came later goes, too. It returns the new
// version's id and the ids that it undoes.
func restore(c *sdk.Call, prefix string) (sha string, undone []string, err error) {
	v, err := findVersion(c, prefix)
	if err != nil {
		return "", nil, err
	}
	if !strings.HasPrefix(v.message, "dream:") || v.parent == "" {
		return "", nil, abi.NewError(abi.CodeConflict, "params.sha: only versions of Dream can be undone")
	}
	if err := eachVersion(c, func(later *version) bool {
		undone = append(undone, later.sha)
		return later.sha != v.sha
	}); err != nil {
		return "", nil, err
	}
	parent, err := readVersion(c, v.parent)
	if err != nil {
		return "", nil, err
	}
	files, err := readFolder(c)
	if err != nil {
		return "", nil, err
	}
	d, err := readDream(c)
	if err != nil {
		return "", nil, err
	}
	var stats []stat
	texts, diff := make([]string, len(tracked)), ""
	for i, blob := range parent.tree {
		if i < len(files) {
			texts[i] = files[i].text
		} else {
			texts[i] = sdk.Itoa(d.Cursor)
		}
		if blob == "" { // a file that the version does not have stays as it is
			continue
		}
		text, found, err := c.Get("blob/" + blob)
		if err != nil {
			return "", nil, err
		}
		if found == 0 {
			return "", nil, abi.NewError(abi.CodeConflict, "the files of the version before are not there: they were not imported")
		}
		texts[i] = string(text)
		if i < len(files) {
			files[i].text = texts[i]
			part, added, removed := unified(files[i].path, files[i].before, files[i].text)
			diff += part
			if part != "" {
				stats = append(stats, stat{files[i].path, int64(added), int64(removed)})
			}
		}
	}
	if err := files.save(c); err != nil {
		return "", nil, err
	}
	d.Cursor, _ = strconv.ParseInt(texts[len(texts)-1], 10, 64)
	if err := d.Save(c, dreamKey); err != nil {
		return "", nil, err
	}
	head, err := headVersion(c)
	if err != nil {
		return "", nil, err
	}
	sha, err = record(c, head, "revert: undo "+v.sha[:8]+"\n\n"+nanobot.Clip(diff, diffMost), texts, stats)
	return sha, undone, err
}

// unified is a diff of one hunk, from the first line that differs to the last, or "" where none does.
func unified(path, before, after string) (text string, added, removed int) {
	old, now := splitLines(before), splitLines(after)
	first := 0
	for first < len(old) && first < len(now) && old[first] == now[first] {
		first++
	}
	end := 0
	for end < len(old)-first && end < len(now)-first && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	old, now = old[first:len(old)-end], now[first:len(now)-end]
	if len(old)+len(now) == 0 {
		return "", 0, 0
	}
	hunk := func(n int) string {
		at := first + 1
		if n == 0 {
			at = first
		}
		return sdk.Itoa(at) + "," + sdk.Itoa(n)
	}
	var b strings.Builder
	b.WriteString("--- a/" + path + "\n+++ b/" + path + "\n@@ -" + hunk(len(old)) + " +" + hunk(len(now)) + " @@\n")
	for _, line := range old {
		b.WriteString("-" + line + "\n")
	}
	for _, line := range now {
		b.WriteString("+" + line + "\n")
	}
	return b.String(), len(now), len(old)
}

func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
