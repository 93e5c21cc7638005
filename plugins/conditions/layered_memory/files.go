package main

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// What the scope's state holds in addition to the sessions (package nanobot):
//
//	file/<path>      SOUL.md, USER.md and memory/MEMORY.md, as text, and files of a workspace that was imported: skills, prompts/dream.md, what is not known
//	history          log; history.jsonl, one entry per line, unchanged if it was imported
//	cursor           memory/.cursor: the history's last cursor, in decimals
//	dream            how far Dream has come, and its last failure
//	version/<sha>    a version, blob/<sha> a file of one, versions a log of their ids
const (
	soulFile   = "SOUL.md"
	userFile   = "USER.md"
	memoryFile = "memory/MEMORY.md"
	historyLog = "history"
)

// contentFiles are those that Dream edits.
var contentFiles = []string{soulFile, userFile, memoryFile}

// file is one content file.
type file struct {
	path, text, before string
	version            int64
}

// folder is the three files.
type folder []*file

func (m *memory) folder() (f folder) {
	for _, path := range contentFiles {
		text, version := nanobot.KeptFile(m.State, path)
		f = append(f, &file{path: path, text: text, before: text, version: version})
	}
	return f
}

func (f folder) at(path string) *file {
	if i := slices.IndexFunc(f, func(x *file) bool { return x.path == path }); i >= 0 {
		return f[i]
	}
	return nil
}

// save writes the files that changed.
func (m *memory) save(f folder) {
	for _, x := range f {
		if x.text != x.before {
			nanobot.KeepFile(m.State, x.path, x.text, x.version)
		}
	}
}

// Counts counts files, log entries and versions.
func (m *memory) Counts() []abi.InventoryKind {
	long := abi.InventoryKind{Kind: "long_term"}
	var digest sdk.Digest
	for _, f := range m.folder() {
		digest.Add(f.path + "\n" + f.text + "\n")
		if f.text != "" {
			long.Count++
		}
	}
	long.Digest = digest.Hex()
	history, _ := m.Last(historyLog)
	versions, _ := m.Last(versionLog)
	return []abi.InventoryKind{long, {Kind: "history", Count: history}, {Kind: "version", Count: versions}}
}

// entry is one line of history.jsonl. Its time is that of the last message it covers, in UTC.
type entry struct {
	cursor               int64
	at, content, session string
	events               []string
}

// Maximum lengths of entries by kind, in characters.
const (
	maxSummary = 8000
	maxRaw     = 16000
	maxEntry   = 64000
)

// prepare converts a text to the form that the history stores.
func prepare(text string, most int) string {
	text = strings.TrimRight(text, " \t\r\n")
	if cut := nanobot.Clip(text, most); cut != text {
		text = cut + "\n... (truncated)"
	}
	words, _ := chat.StripThoughts(text)
	return words
}

// moment returns the entry's time as RFC 3339 in UTC. A text in another format, as in an import, is returned unchanged.
func (x *entry) moment() string {
	if len(x.at) == len("2026-03-01 09:30") {
		return strings.Replace(x.at, " ", "T", 1) + ":00Z"
	}
	return x.at
}

// unixMS returns the entry's time in ms since 1970, 0 for a text in another format.
func (x *entry) unixMS() int64 {
	at, err := abi.ParseTime(x.moment())
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}

// remember adds an entry to the history.
func (m *memory) remember(x entry, most int) {
	next, version := m.nextCursor()
	x.cursor, x.content = next, prepare(x.content, min(most, maxEntry))
	m.Append(historyLog, object.Encode(x.members()...))
	m.Put("cursor", []byte(sdk.Itoa(next)), version)
}

func (x *entry) members() []object.Member {
	return []object.Member{object.Optional("cursor", &x.cursor), object.Optional("timestamp", &x.at),
		object.Optional("content", &x.content),
		object.Optional("session_key", &x.session), object.Optional("events", &x.events)}
}

// nextCursor returns the largest of the key cursor and the last line's cursor plus one. If the last line has none, it
// uses the largest of all lines.
func (m *memory) nextCursor() (next, version int64) {
	text, version := m.Get("cursor")
	issued, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || issued < 0 {
		issued = 0
	}
	n, last := m.Last(historyLog)
	if x, ok := decodeEntry(last); ok {
		return max(issued, x.cursor) + 1, version
	}
	if n > 0 {
		for x := range m.history(nil) {
			issued = max(issued, x.cursor)
		}
	}
	return issued + 1, version
}

// decodeEntry reads a line; false if it has no valid cursor or no time.
func decodeEntry(data []byte) (x entry, ok bool) {
	x.cursor = -1
	err := object.Decode(data, x.members()...)
	return x, err == nil && x.cursor >= 0 && x.at != ""
}

// history iterates over the entries from the beginning. Invalid lines are counted in bad, unless it is nil.
func (m *memory) history(bad *int64) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		last, _ := m.Last(historyLog)
		for line := range m.Entries(historyLog, 1, last) {
			if x, ok := decodeEntry(line.Data); ok {
				if !yield(x) {
					return
				}
			} else if bad != nil {
				*bad++
			}
		}
	}
}

// newest returns the last most entries after a cursor, oldest first. bad counts the invalid lines among them.
func (m *memory) newest(since int64, most int) (list []entry, bad int64) {
	for line := range m.Newest(historyLog, int64(most)+1) {
		x, ok := decodeEntry(line.Data)
		if !ok {
			bad++
			continue
		}
		if x.cursor <= since || len(list) == most {
			break
		}
		list = append(list, x)
	}
	slices.Reverse(list)
	return list, bad
}

// compact drops the oldest entries beyond the limit that Dream has read. The cursor is never lowered.
func (m *memory) compact(dreamt int64) {
	most := m.settings.maxEntries
	last, _ := m.Last(historyLog)
	if most == 0 || last <= most {
		return
	}
	var kept [][]byte
	for line := range m.Entries(historyLog, 1, last) {
		if x, ok := decodeEntry(line.Data); line.Seq > last-most || ok && x.cursor > dreamt {
			kept = append(kept, line.Data)
		}
	}
	if int64(len(kept)) > most {
		m.Log(abi.LogWarn, "layered_memory: the history is longer than max_history_entries, because Dream has not "+
			"read it yet")
	}
	if int64(len(kept)) == last {
		return
	}
	m.Delete(historyLog)
	for _, line := range kept {
		m.Append(historyLog, line)
	}
}
