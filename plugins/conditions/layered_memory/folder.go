package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// The files of the workspace, as Nanobot has them since April 2026 (nanobot/agent/memory.py, MemoryStore). versions/ is
// memhost's addition.
const (
	linesFile  = "memory/history.jsonl"
	issuedFile = "memory/.cursor"
	oldHistory = "memory/HISTORY.md"
	versionDir = "versions/"
	blobDir    = versionDir + "blobs/"
	logFile    = versionDir + "log.jsonl"
)

// WriteFiles adds the files, the history, the versions, the sessions, and the files that are kept unchanged.
func (m *memory) WriteFiles(f *nanobot.Files) {
	for _, x := range m.folder() {
		f.Text(x.path, x.text)
	}
	issued, version := m.Get("cursor")
	if version == 0 {
		issued = []byte("0")
	}
	d := model.ReadProgress(m.State, dreamKey)
	f.Text(issuedFile, string(issued))
	f.Text(cursorFile, sdk.Itoa(d.Cursor))
	last, _ := m.Last(historyLog)
	f.Log(linesFile, historyLog, nil, 0, last, nanobot.Line)
	if last, _ := m.Last(versionLog); last > 0 {
		f.Log(logFile, versionLog, nil, 0, last, func(sha []byte) []byte {
			return nanobot.Line(m.version(string(sha)).encode(true))
		})
		for item := range m.Values("blob/") {
			f.Text(blobDir+strings.TrimPrefix(item.Key, "blob/"), string(item.Value))
		}
	}
	f.SessionFiles()
	f.AddKept(contentFiles...)
}

// Empty reports whether there is neither a file nor a history.
func (m *memory) Empty() bool {
	last, _ := m.Last(historyLog)
	return last == 0 && !slices.ContainsFunc(m.folder(), func(f *file) bool { return f.version != 0 })
}

// TakeFiles takes the files that only this memory knows.
func (m *memory) TakeFiles(in *nanobot.Incoming) {
	for _, path := range slices.Clone(in.Paths) {
		if isDreamSession(path) {
			in.Keep(path, in.Take(path))
		}
	}
	blank := true
	for line := range in.TakeLines(linesFile) {
		blank = false
		m.Append(historyLog, []byte(line))
	}
	issued, dreamt := strings.TrimSpace(in.Take(issuedFile)), strings.TrimSpace(in.Take(cursorFile))
	if in.Unclaimed(oldHistory) && blank {
		if n := m.takeOldHistory(in); n > 0 { // the old history counts as read
			issued, dreamt = sdk.Itoa(n), sdk.Itoa(n)
		}
	}
	if issued != "" {
		m.Put("cursor", []byte(issued), sdk.AnyVersion)
	}
	d := model.ReadProgress(m.State, dreamKey)
	var err error
	if d.Cursor, err = strconv.ParseInt(dreamt, 10, 64); err != nil || d.Cursor < 0 {
		d.Cursor = 0
	}
	d.Ran = m.NowMS()
	d.Save(m.State, dreamKey)
	m.takeVersions(in)
}

// isDreamSession reports whether a file is a session of Nanobot's own Dream: dream_20260528-100000.jsonl, or the Base64
// of a key that begins with dream:. Such a session is not a conversation, and Dream must not read it.
func isDreamSession(path string) bool {
	return strings.HasPrefix(path, "sessions/dream_") || strings.HasPrefix(path, "sessions/ZHJlYW06")
}

// takeOldHistory converts HISTORY.md to entries and keeps it under another name, as Nanobot does once. It returns the
// number of entries.
func (m *memory) takeOldHistory(in *nanobot.Incoming) int {
	text := in.Take(oldHistory)
	chunks := splitOldHistory(strings.ToValidUTF8(text, "\uFFFD"))
	for i, chunk := range chunks {
		// the file's own time is not part of an import
		x := entry{cursor: int64(i + 1), at: nanobot.Minute(m.Now), content: chunk}
		if at, rest, dated := cutMinute(chunk); dated {
			x.at = at
			if rest != "" {
				x.content = rest
			}
		}
		m.Append(historyLog, object.Encode(x.members()...))
	}
	backup := oldHistory + ".bak"
	for n := 2; in.Unclaimed(backup); n++ {
		backup = oldHistory + ".bak." + sdk.Itoa(n)
	}
	in.Keep(backup, text)
	return len(chunks)
}

// splitOldHistory splits HISTORY.md into entries at blank lines and at lines that begin with a date. The messages of a
// raw archive also begin with a date, but stay together.
func splitOldHistory(text string) []string {
	var chunks, current []string
	end := func() {
		if chunk := strings.TrimSpace(strings.Join(current, "\n")); chunk != "" {
			chunks = append(chunks, chunk)
		}
		current = nil
	}
	blank, raw := false, false
	for _, line := range strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n") {
		full := strings.TrimSpace(line) != ""
		if full && len(current) > 0 && (blank || isDated(line) && (!raw || !isRawMessage(line))) {
			end()
		}
		if full && len(current) == 0 {
			_, rest, dated := cutMinute(line)
			raw = dated && strings.HasPrefix(rest, "[RAW]")
		}
		blank = !full
		if full || len(current) > 0 {
			current = append(current, line)
		}
	}
	end()
	return chunks
}

// isDate reports whether a text begins with YYYY-MM-DD.
func isDate(text string) bool {
	if len(text) < 10 {
		return false
	}
	for i := range 10 {
		if i == 4 || i == 7 {
			if text[i] != '-' {
				return false
			}
		} else if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// isDated reports whether a line begins with a date in brackets.
func isDated(line string) bool {
	inner, _, found := strings.Cut(line, "]")
	return found && strings.HasPrefix(inner, "[") && isDate(inner[1:])
}

// cutMinute removes "[YYYY-MM-DD HH:MM]" from the start of a text.
func cutMinute(text string) (at, rest string, found bool) {
	inner, rest, found := strings.Cut(text, "]")
	if !found || len(inner) != 17 || inner[0] != '[' || !isDate(inner[1:]) || inner[11] != ' ' || inner[14] != ':' {
		return "", text, false
	}
	for _, i := range []int{12, 13, 15, 16} {
		if inner[i] < '0' || inner[i] > '9' {
			return "", text, false
		}
	}
	return inner[1:], strings.TrimLeft(rest, " \t\n"), true
}

// isRawMessage reports whether a dated line is a message of a raw archive: "[2026-01-12T09:03] USER [tools: a]: ".
func isRawMessage(line string) bool {
	_, rest, _ := strings.Cut(line, "]")
	role, _, found := strings.Cut(strings.TrimLeft(rest, " \t"), ":")
	role, _, _ = strings.Cut(role, " [tools")
	if !found || role == "" {
		return false
	}
	for i := range len(role) {
		if c := role[i]; (c < 'A' || c > 'Z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// takeVersions imports versions/ and checks its ids. Without its log, none of its files belongs to a version.
//
// Errors: invalid_argument for a version or a file whose id does not match its content.
func (m *memory) takeVersions(in *nanobot.Incoming) {
	if !in.Unclaimed(logFile) {
		return
	}
	for line := range strings.SplitSeq(in.Take(logFile), "\n") {
		if line == "" {
			continue
		}
		v, err := decodeVersion([]byte(line))
		if err != nil || sdk.DigestBytes(v.encode(false)) != v.sha {
			m.Fail(abi.NewError(abi.CodeInvalidArgument, logFile+": the id of a version is not that of its content"))
		}
		m.Put("version/"+v.sha, v.encode(false), sdk.AnyVersion)
		m.Append(versionLog, []byte(v.sha))
	}
	for _, path := range slices.Clone(in.Paths) {
		blob, is := strings.CutPrefix(path, blobDir)
		if !is {
			continue
		}
		text := in.Take(path)
		if sdk.Digest256(text) != blob {
			m.Fail(abi.NewError(abi.CodeInvalidArgument, path+": the name is not the digest of the content"))
		}
		m.Put("blob/"+blob, []byte(text), sdk.AnyVersion)
	}
}
