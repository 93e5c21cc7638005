package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// The folder, as Nanobot has it since April 2026 (nanobot/agent/memory.py, MemoryStore); versions/ is ours.
const (
	linesFile  = "memory/history.jsonl"
	issuedFile = "memory/.cursor"
	oldHistory = "memory/HISTORY.md"
	versionDir = "versions/"
	blobDir    = versionDir + "blobs/"
	logFile    = versionDir + "log.jsonl"
)

func writeFiles(c *sdk.Call, f *nanobot.Files) error {
	files, err := readFolder(c)
	if err != nil {
		return err
	}
	issued, version, err := c.Get("cursor")
	if err != nil {
		return err
	}
	if version == 0 {
		issued = []byte("0")
	}
	d, err := readDream(c)
	if err != nil {
		return err
	}
	_, last, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	if err != nil {
		return err
	}
	for _, x := range files {
		f.Text(x.path, x.text)
	}
	f.Text(issuedFile, string(issued))
	f.Text(cursorFile, sdk.Itoa(d.Cursor))
	if err := f.Log(c, linesFile, historyLog, nil, 0, last, nanobot.Line); err != nil {
		return err
	}
	if err := writeVersionFiles(c, f); err != nil {
		return err
	}
	if err := nanobot.WriteSessionFiles(c, f); err != nil {
		return err
	}
	return f.Kept(c, contentFiles...)
}

func writeVersionFiles(c *sdk.Call, f *nanobot.Files) error {
	_, last, err := c.Read(abi.StateReadRequest{Log: versionLog, Reverse: true, Limit: 1})
	if err != nil || last == 0 {
		return err
	}
	var failed error
	err = f.Log(c, logFile, versionLog, nil, 0, last, func(sha []byte) []byte {
		v, err := readVersion(c, string(sha))
		if err != nil {
			failed = err
			return nil
		}
		return nanobot.Line(v.encode(true))
	})
	if err != nil || failed != nil {
		return or(err, failed)
	}
	return c.Each(abi.StateListRequest{Prefix: "blob/"}, func(item sdk.Item) error {
		text, _, err := c.Get(item.Key)
		if err == nil {
			f.Text(blobDir+strings.TrimPrefix(item.Key, "blob/"), string(text))
		}
		return err
	})
}

func or(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// empty tells whether the scope holds nothing yet.
func empty(c *sdk.Call) (bool, error) {
	last, err := nanobot.LastSession(c)
	if err != nil || last != "" {
		return false, err
	}
	files, err := readFolder(c)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if f.version != 0 {
			return false, nil
		}
	}
	_, n, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	return n == 0, err
}

// takeFiles takes the files that only this memory knows.
func takeFiles(c *sdk.Call, in *nanobot.Incoming) error {
	blank := true
	if err := in.TakeLines(linesFile, func(line string) error {
		blank = false
		_, err := c.Append(historyLog, []byte(line))
		return err
	}); err != nil {
		return err
	}
	issued, err := in.Take(issuedFile)
	if err != nil {
		return err
	}
	dreamt, err := in.Take(cursorFile)
	if err != nil {
		return err
	}
	if in.Has(oldHistory) && blank {
		n, err := takeOldHistory(c, in)
		if err != nil {
			return err
		}
		if n > 0 { // the old history counts as read
			issued = sdk.Itoa(n)
			dreamt = issued
		}
	}
	if issued = strings.TrimSpace(issued); issued != "" {
		if err := c.Put("cursor", []byte(issued), sdk.AnyVersion); err != nil {
			return err
		}
	}
	d, err := readDream(c)
	if err != nil {
		return err
	}
	if d.Cursor, err = strconv.ParseInt(strings.TrimSpace(dreamt), 10, 64); err != nil || d.Cursor < 0 {
		d.Cursor = 0
	}
	d.Ran = nanobot.NowMS(c)
	if err := d.Save(c, dreamKey); err != nil {
		return err
	}
	return takeVersions(c, in)
}

// takeOldHistory makes entries of HISTORY.md and keeps it under another name, as Nanobot does once. It returns how many entries there are.
func takeOldHistory(c *sdk.Call, in *nanobot.Incoming) (int, error) {
	text, err := in.Take(oldHistory)
	if err != nil {
		return 0, err
	}
	chunks := splitOldHistory(strings.ToValidUTF8(text, "\uFFFD"))
	for i, chunk := range chunks {
		x := entry{cursor: int64(i + 1), at: nanobot.Minute(c.Now), content: chunk} // the file's own time does not come along
		if at, rest, dated := cutMinute(chunk); dated {
			x.at = at
			if rest != "" {
				x.content = rest
			}
		}
		if _, err := c.Append(historyLog, x.encode()); err != nil {
			return 0, err
		}
	}
	backup := oldHistory + ".bak"
	for n := 2; in.Has(backup); n++ {
		backup = oldHistory + ".bak." + sdk.Itoa(n)
	}
	return len(chunks), in.Keep(backup, text)
}

// splitOldHistory cuts HISTORY.md into entries: at blank lines, and at lines that begin with a date; but a raw archive's messages, which do, stay together.
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

// isDate tells whether a text begins with YYYY-MM-DD.
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

// isDated tells whether a line begins with a date in brackets.
func isDated(line string) bool {
	inner, _, found := strings.Cut(line, "]")
	return found && strings.HasPrefix(inner, "[") && isDate(inner[1:])
}

// cutMinute takes "[YYYY-MM-DD HH:MM]" off a text.
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

// isRawMessage tells whether a dated line is a message of a raw archive: "[2026-01-12T09:03] USER [tools: a]: ".
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

// takeVersions takes versions/, whose ids are checked. Without its log nothing of it is one.
//
// Errors: invalid_argument for a version or a file of one whose id is not that of its content.
func takeVersions(c *sdk.Call, in *nanobot.Incoming) error {
	if !in.Has(logFile) {
		return nil
	}
	lines, err := in.Take(logFile)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(lines, "\n") {
		if line == "" {
			continue
		}
		v, err := decodeVersion([]byte(line))
		if err != nil || sdk.Digest256(string(v.encode(false))) != v.sha {
			return abi.NewError(abi.CodeInvalidArgument, logFile+": the id of a version is not that of its content")
		}
		if err := c.Put("version/"+v.sha, v.encode(false), sdk.AnyVersion); err != nil {
			return err
		}
		if _, err := c.Append(versionLog, []byte(v.sha)); err != nil {
			return err
		}
	}
	for _, path := range append([]string(nil), in.Paths...) {
		blob, is := strings.CutPrefix(path, blobDir)
		if !is {
			continue
		}
		text, err := in.Take(path)
		if err != nil {
			return err
		}
		if sdk.Digest256(text) != blob {
			return abi.NewError(abi.CodeInvalidArgument, path+": the name is not the digest of the content")
		}
		if err := c.Put("blob/"+blob, []byte(text), sdk.AnyVersion); err != nil {
			return err
		}
	}
	return nil
}
