package conversations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

const (
	// detectBytes is how much of a file is examined, detectFiles how many files of a folder or an archive.
	detectBytes = 256 << 10
	detectFiles = 20
	// detectLines is how many lines of a log are examined: a program's notes may come first.
	detectLines = 50
)

// Detect finds out which source files, folders and archives come from, by their content. It returns "" if they look
// like no known source; requests of OpenAI's chat API, for example, are plain conversations. It skips paths that cannot
// be opened, and pipes.
//
// Errors: invalid_argument for paths from several sources, and for archives that cannot be read.
func Detect(paths []string) (Source, error) {
	found, at := Source(""), ""
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue // a pipe can only be read once
		}
		sources, err := detect(path)
		if err != nil {
			return "", err
		}
		for _, source := range sources {
			if found != "" && source != found {
				where := path + " are of both"
				if at != path {
					where = path + " is not of the same one as " + at
				}
				return "", invalid("these are conversations of %s and of %s: %s", found, source, where).
					WithHint(fmt.Sprintf("--from %s or --from %s says which; record the others after it", found, source))
			}
			found, at = source, path
		}
	}
	return found, nil
}

// detect returns the sources whose conversations a path may contain.
func detect(path string) (sources []Source, err error) {
	for _, source := range []Source{ChatGPT, Claude, ClaudeCode, Codex, Gemini} {
		files, _, err := find(source, path)
		if err != nil {
			if abi.AsError(err).Reason == reasonNothing {
				continue
			}
			return nil, err
		}
		if slices.ContainsFunc(files[:min(len(files), detectFiles)], func(f file) bool { return looksLike(source, f) }) {
			sources = append(sources, source)
		}
	}
	return sources, nil
}

// looksLike reports whether a file starts like those of a source.
func looksLike(source Source, f file) bool {
	in, err := f.open()
	if err != nil {
		return false
	}
	defer func() { _ = in.Close() }()
	start, _ := io.ReadAll(io.LimitReader(in, detectBytes))
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xEF\xBB\xBF")), " \t\r\n")
	list := bytes.HasPrefix(start, []byte("["))
	switch source {
	case ChatGPT:
		keys := firstKeys(start)
		return list && slices.Contains(keys, "mapping") && slices.ContainsFunc([]string{"id", "conversation_id",
			"create_time", "current_node"}, func(key string) bool { return slices.Contains(keys, key) })
	case Claude:
		return list && slices.Contains(firstKeys(start), "chat_messages")
	case Gemini:
		keys := firstKeys(start)
		activity := list && slices.Contains(keys, "title") && slices.Contains(keys, "time") &&
			bytes.Contains(start, []byte(`"Gemini Apps"`))
		return activity || !list && slices.Contains(keys, "chunkedPrompt")
	}
	n := 0
	for line := range bytes.Lines(start) {
		if n++; n > detectLines {
			break
		}
		keys := firstKeys(line)
		has := func(names ...string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(keys, name) })
		}
		if source == ClaudeCode && has("type", "sessionId") || source == Codex && has("type", "timestamp", "payload") {
			return true
		}
	}
	return false
}

// firstKeys returns the keys of an object, or of the first object of a list, as far as the text contains them.
func firstKeys(start []byte) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(start))
	token, err := d.Token()
	if token == json.Delim('[') && err == nil {
		token, err = d.Token()
	}
	if err != nil || token != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			break
		}
		keys = append(keys, name)
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
	}
	return keys
}

// Title is the source's display name.
func (s Source) Title() string {
	switch s {
	case ChatGPT:
		return "an export of ChatGPT"
	case Claude:
		return "an export of claude.ai"
	case ClaudeCode:
		return "logs of Claude Code"
	case Codex:
		return "logs of Codex"
	case Gemini:
		return "conversations with Gemini"
	}
	return strings.TrimSpace(string(s))
}
