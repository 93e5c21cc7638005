package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// What the scope's state holds beside the sessions (package nanobot):
//
//	file/<path>      SOUL.md, USER.md and memory/MEMORY.md, as text, and files of a workspace that was imported: skills, prompts/dream.md, what is not known
//	history          log; history.jsonl, a line an entry, as it came where it was imported
//	cursor           memory/.cursor: the history's last cursor, in decimals
//	dream            how far Dream has come, and how it failed last
//	version/<sha>    a version, blob/<sha> a file of one, versions a log of their ids
const (
	soulFile   = "SOUL.md"
	userFile   = "USER.md"
	memoryFile = "memory/MEMORY.md"
	historyLog = "history"
)

// contentFiles are those that Dream edits.
var contentFiles = []string{soulFile, userFile, memoryFile}

// file is one of them.
type file struct {
	path, text, before string
	version            int64
}

// folder is the three files.
type folder []*file

func readFolder(c *sdk.Call) (folder, error) {
	var f folder
	for _, path := range contentFiles {
		text, version, err := nanobot.KeptFile(c, path)
		if err != nil {
			return nil, err
		}
		f = append(f, &file{path: path, text: text, before: text, version: version})
	}
	return f, nil
}

func (f folder) at(path string) *file {
	for _, x := range f {
		if x.path == path {
			return x
		}
	}
	return nil
}

// save writes the files that changed.
func (f folder) save(c *sdk.Call) error {
	for _, x := range f {
		if x.text != x.before {
			if err := nanobot.KeepFile(c, x.path, x.text, x.version); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry is one line of history.jsonl. Its time is the host's clock, in UTC.
type entry struct {
	cursor               int64
	at, content, session string
	events               []string
}

// Most characters of an entry, by what it is.
const (
	summaryMost = 8000
	rawMost     = 16000
	entryMost   = 64000
)

// prepare is a text as it goes into the history.
func prepare(text string, most int) string {
	text = strings.TrimRight(text, " \t\r\n")
	if cut := nanobot.Clip(text, most); cut != text {
		text = cut + "\n... (truncated)"
	}
	return nanobot.StripThinking(text)
}

// appendHistory adds an entry and returns its cursor.
func appendHistory(c *sdk.Call, x entry, most int) (int64, error) {
	next, version, err := nextCursor(c)
	if err != nil {
		return 0, err
	}
	x.cursor, x.at, x.content = next, nanobot.Minute(c.Now), prepare(x.content, min(most, entryMost))
	if _, err := c.Append(historyLog, x.encode()); err != nil {
		return 0, err
	}
	return next, c.Put("cursor", []byte(sdk.Itoa(next)), version)
}

func (x *entry) encode() []byte { return nanobot.Encode(x.fields()...) }

func (x *entry) fields() []nanobot.Field {
	return []nanobot.Field{nanobot.Number("cursor", &x.cursor), nanobot.Word("timestamp", &x.at), nanobot.Word("content", &x.content),
		nanobot.Word("session_key", &x.session), nanobot.List("events", &x.events)}
}

// nextCursor is one more than the largest of the key cursor and the last line, or than the largest of all lines where that has none.
func nextCursor(c *sdk.Call) (next, version int64, err error) {
	text, version, err := c.Get("cursor")
	if err != nil {
		return 0, 0, err
	}
	issued, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if bad != nil || issued < 0 {
		issued = 0
	}
	last, _, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	if err != nil {
		return 0, 0, err
	}
	if len(last) > 0 {
		if x, ok := decodeEntry(last[0].Data); ok {
			return max(issued, x.cursor) + 1, version, nil
		}
		_, err = eachEntry(c, func(x entry) bool { issued = max(issued, x.cursor); return true })
	}
	return issued + 1, version, err
}

// decodeEntry reads a line. One without a valid cursor and a time is none.
func decodeEntry(data []byte) (x entry, ok bool) {
	x.cursor = -1
	err := nanobot.Decode(data, x.fields()...)
	return x, err == nil && x.cursor >= 0 && x.at != ""
}

// eachEntry walks the history from its beginning until each says false. What is no entry is counted.
func eachEntry(c *sdk.Call, each func(entry) bool) (bad int64, err error) {
	for from := int64(1); ; {
		lines, _, err := c.Read(abi.StateReadRequest{Log: historyLog, From: from, Limit: 500})
		if err != nil || len(lines) == 0 {
			return bad, err
		}
		for _, line := range lines {
			from = line.Seq + 1
			x, ok := decodeEntry(line.Data)
			if !ok {
				bad++
			} else if !each(x) {
				return bad, nil
			}
		}
	}
}

// newest returns the last most entries behind a cursor, oldest first.
func newest(c *sdk.Call, since int64, most int) (list []entry, bad int64, err error) {
	for from := int64(0); ; {
		lines, _, err := c.Read(abi.StateReadRequest{Log: historyLog, From: from, Limit: int64(most) + 1, Reverse: true})
		if err != nil {
			return nil, 0, err
		}
		for _, line := range lines {
			from = line.Seq - 1
			x, ok := decodeEntry(line.Data)
			if !ok {
				bad++
			}
			if ok && x.cursor <= since || len(list) == most {
				lines = nil
				break
			}
			if ok {
				list = append(list, x)
			}
		}
		if len(lines) == 0 || from == 0 {
			break
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, bad, nil
}

// compact drops the oldest entries beyond the limit that Dream has read. The cursor is not lowered.
func (s *settings) compact(c *sdk.Call, dreamt int64) error {
	_, last, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	if err != nil || s.maxEntries == 0 || last <= s.maxEntries {
		return err
	}
	var kept [][]byte
	drop := last - s.maxEntries
	for from := int64(1); from <= last; {
		lines, _, err := c.Read(abi.StateReadRequest{Log: historyLog, From: from, Limit: 500})
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, line := range lines {
			from = line.Seq + 1
			if x, ok := decodeEntry(line.Data); line.Seq <= drop && (!ok || x.cursor <= dreamt) {
				continue
			}
			kept = append(kept, line.Data)
		}
	}
	if int64(len(kept)) > s.maxEntries {
		c.Log(abi.LogWarn, "layered_memory: the history is longer than max_history_entries, because Dream has not read it yet")
	}
	if int64(len(kept)) == last {
		return nil
	}
	if _, err := c.Delete(historyLog); err != nil {
		return err
	}
	for _, line := range kept {
		if _, err := c.Append(historyLog, line); err != nil {
			return err
		}
	}
	return nil
}
