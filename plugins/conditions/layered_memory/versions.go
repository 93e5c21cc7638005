package main

import (
	"iter"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

const versionLog = "versions"

// cursorFile is versioned along with the content files.
const cursorFile = "memory/.dream_cursor"

// maxDiff is the maximum length of the diff in a version's message, in characters.
const maxDiff = 6000

// version is a state of the files. tree holds the blob of each tracked file, in the order of tracked; "" for a missing
// file.
type version struct {
	sha, parent, at, author, message string
	// summary is the model's final text of the run, "" if it gave none. It is not part of the record of changes.
	summary string
	// undone: a later restore undid the version. It is not part of the record.
	undone bool
	tree   []string
	stats  []stat
}

// stat counts the lines of a file that a version added and removed.
type stat struct {
	path           string
	added, removed int64
}

// author is the author of all versions.
const author = "memhost"

var tracked = append(append([]string(nil), contentFiles...), cursorFile)

// sameContent compares texts ignoring line ends.
func sameContent(a, b string) bool {
	return strings.ReplaceAll(a, "\r\n", "\n") == strings.ReplaceAll(b, "\r\n", "\n")
}

// commit records a version with the time at, if a content file differs from the newest one, and returns its id. The
// very first version is preceded by one of the state before it.
func (m *memory) commit(files folder, at, subject, summary string, before, after int64) string {
	var old, now []string
	counts, diff, plus, minus := "", "", 0, 0
	var stats []stat
	for _, f := range files {
		old, now = append(old, f.before), append(now, f.text)
		if !sameContent(f.text, f.before) {
			text, added, removed := unifiedDiff(f.path, f.before, f.text)
			counts += f.path + " +" + sdk.Itoa(added) + " -" + sdk.Itoa(removed) + "\n"
			diff, plus, minus = diff+text, plus+added, minus+removed
			stats = append(stats, stat{f.path, int64(added), int64(removed)})
		}
	}
	if len(stats) == 0 {
		return ""
	}
	_, head := m.Last(versionLog)
	if head == nil {
		head = []byte(m.record(&version{at: at, message: "init"}, append(old, sdk.Itoa(before))))
	}
	message := subject + "\n\n" + counts + "total +" + sdk.Itoa(plus) + " -" + sdk.Itoa(minus) + "\n\n" +
		nanobot.Clip(diff, maxDiff)
	v := &version{at: at, parent: string(head), message: message, summary: nanobot.Clip(summary, maxSummary), stats: stats}
	return m.record(v, append(now, sdk.Itoa(after)))
}

// record writes a version of the tracked files' texts and returns its id.
func (m *memory) record(v *version, texts []string) string {
	v.author = author
	for _, text := range texts {
		blob := sdk.Digest256(text)
		v.tree = append(v.tree, blob)
		m.Put("blob/"+blob, []byte(text), sdk.AnyVersion)
	}
	data := v.encode(false)
	v.sha = sdk.DigestBytes(data)
	m.Put("version/"+v.sha, data, sdk.AnyVersion)
	m.Append(versionLog, []byte(v.sha))
	return v.sha
}

// encode returns the version as canonical JSON (RFC 8785); its id is the SHA-256 of that. With the id, which then comes
// first, it is a line of versions/log.jsonl.
func (v *version) encode(withID bool) []byte {
	sha := ""
	if withID {
		sha = v.sha
	}
	var list wirejson.Encoder
	list.ArrStart()
	for i := range v.stats {
		object.Write(&list, v.stats[i].members()...)
	}
	list.ArrEnd()
	stats, tree := abi.Raw(list.Bytes()), abi.Raw(object.Encode(v.treeMembers()...))
	return object.Encode(object.Optional("sha", &sha), object.Always("author", &v.author),
		object.Always("message", &v.message),
		object.Always("parent", &v.parent), object.Always("stats", &stats), object.Optional("summary", &v.summary),
		object.Always("time", &v.at), object.Always("tree", &tree))
}

func (x *stat) members() []object.Member {
	return []object.Member{object.Always("added", &x.added), object.Always("path", &x.path),
		object.Always("removed", &x.removed)}
}

// treeMembers returns the tracked files by name: SOUL.md, USER.md, memory/.dream_cursor, memory/MEMORY.md.
func (v *version) treeMembers() (list []object.Member) {
	for _, i := range []int{0, 1, 3, 2} {
		list = append(list, object.Optional(tracked[i], &v.tree[i]))
	}
	return list
}

// decodeVersion reads a version, with its sha if the text has one.
func decodeVersion(data []byte) (*version, error) {
	v := &version{tree: make([]string, len(tracked))}
	err := object.Read(wirejson.DecodeBytes(data), func(d *wirejson.Decoder, key string) error {
		switch {
		case key == "tree" && d.Next() == wirejson.Object:
			return object.Read(d, nil, v.treeMembers()...)
		case key == "stats" && d.Next() == wirejson.Array:
			return d.Arr(func(d *wirejson.Decoder) error {
				var x stat
				err := object.Read(d, nil, x.members()...)
				v.stats = append(v.stats, x)
				return err
			})
		}
		return d.Skip()
	}, object.Optional("sha", &v.sha), object.Optional("parent", &v.parent), object.Optional("time", &v.at),
		object.Optional("author", &v.author), object.Optional("message", &v.message),
		object.Optional("summary", &v.summary))
	return v, err
}

// ofDream reports whether Dream made a version.
func (v *version) ofDream() bool { return strings.HasPrefix(v.message, "dream:") }

// undoes is the beginning of a restore's message, before the first digits of the version that it undoes.
const undoes = "revert: undo "

// shortSHA is the number of digits of a version's id in a restore's message.
const shortSHA = 8

// restores reports whether a version is a person's restore.
func (v *version) restores() bool { return strings.HasPrefix(v.message, undoes) }

// versions returns all versions, newest first.
func (m *memory) versions() iter.Seq[*version] {
	return func(yield func(*version) bool) {
		for id := range m.Newest(versionLog, 100) {
			if !yield(m.version(string(id.Data))) {
				return
			}
		}
	}
}

// version is the one with that id.
func (m *memory) version(sha string) *version {
	data, _ := m.Get("version/" + sha)
	v, err := decodeVersion(data)
	v.sha = sha
	if err != nil || v.at == "" {
		m.Fail(abi.NewError(abi.CodeUnavailable,
			"the state's version "+sha+" is not what was stored there").WithReason("state_io"))
	}
	return v
}

// find finds a version by a unique prefix of its id.
//
// Errors: invalid_argument for a prefix of less than 4 characters, not_found, conflict if several match.
func (m *memory) find(prefix string) *version {
	if len(prefix) < 4 {
		m.Fail(abi.NewError(abi.CodeInvalidArgument, "params.sha: want at least 4 characters"))
	}
	found := new(version)
	for v := range m.versions() {
		if strings.HasPrefix(v.sha, prefix) && found.sha != v.sha {
			if found.sha != "" {
				m.Fail(abi.NewError(abi.CodeConflict, "params.sha: several versions begin so"))
			}
			found = v
		}
	}
	if found.sha == "" {
		m.Fail(abi.NewError(abi.CodeNotFound, "params.sha: there is no such version"))
	}
	return found
}

// restore writes the content files as they were before a version, and records that as a new version. It rewinds: later
// changes are undone too. Dream's cursor is not rewound, so Dream does not repeat what a person has undone. A restore
// can be undone by another restore. It returns the new version's id and the ids of those it undoes.
func (m *memory) restore(prefix string) (sha string, undone []string) {
	v := m.find(prefix)
	if !v.ofDream() && !v.restores() || v.parent == "" {
		m.Fail(abi.NewError(abi.CodeConflict, "params.sha: only versions of Dream, and restores, can be undone"))
	}
	if !m.OK() {
		return "", nil
	}
	for later := range m.versions() {
		undone = append(undone, later.sha)
		if later.sha == v.sha {
			break
		}
	}
	files, d := m.folder(), model.ReadProgress(m.State, dreamKey)
	texts, diff, tree := []string{}, "", m.version(v.parent).tree
	var stats []stat
	for i, f := range files {
		if tree[i] != "" { // a file that the version does not contain is left unchanged
			f.text = m.blob(tree[i])
		}
		texts = append(texts, f.text)
		part, added, removed := unifiedDiff(f.path, f.before, f.text)
		diff += part
		if part != "" {
			stats = append(stats, stat{f.path, int64(added), int64(removed)})
		}
	}
	m.save(files)
	d.Cursor = max(d.Cursor, d.Shown)
	d.Save(m.State, dreamKey)
	_, head := m.Last(versionLog)
	back := &version{at: m.Now, parent: string(head), message: undoes + v.sha[:shortSHA] + "\n\n" + nanobot.Clip(diff, maxDiff),
		stats: stats}
	return m.record(back, append(texts, sdk.Itoa(d.Cursor))), undone
}

// blob returns the text of a file in a version; "" if the version does not contain it.
func (m *memory) blob(name string) string {
	if name == "" {
		return ""
	}
	text, found := m.Get("blob/" + name)
	if found == 0 {
		m.Fail(abi.NewError(abi.CodeConflict, "the files of that version are not there: they were not imported"))
	}
	return string(text)
}

// unifiedDiff returns a diff of one hunk, from the first different line to the last, or "" if there is no difference.
func unifiedDiff(path, before, after string) (text string, added, removed int) {
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
