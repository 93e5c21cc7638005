package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
)

// The files of the workspace. sourcesFile is memhost's addition, the others are Nanobot's. It lists the sources of
// MEMORY.md and of each entry of HISTORY.md, one JSON object per line, in order.
const (
	memoryFile  = "memory/MEMORY.md"
	historyFile = "memory/HISTORY.md"
	sourcesFile = "memory/.sources.jsonl"
)

// gap follows each entry of HISTORY.md.
const gap = "\n\n"

// WriteFiles adds the two files, their sources, the sessions, and the files that are kept unchanged.
func (m *memory) WriteFiles(f *nanobot.Files) {
	file := m.longTerm()
	last, _ := m.Last(historyLog)
	f.Text(memoryFile, file.text)
	f.Log(historyFile, historyLog, nil, 0, last, func(data []byte) []byte {
		var x entry
		if object.Decode(data, x.members()...) != nil {
			return nil
		}
		return []byte(x.text + gap)
	})
	if file.version != 0 || last > 0 {
		file.text = ""
		head := func() []byte { return nanobot.Line(object.Encode(file.members()...)) }
		f.Log(sourcesFile, historyLog, head, 0, last, sourceOf)
	}
	f.SessionFiles()
	f.AddKept()
}

// sourceOf returns a line for an entry, with the text's length in place of the text.
func sourceOf(data []byte) []byte {
	var x entry
	if object.Decode(data, x.members()...) != nil {
		return nil
	}
	size := int64(len(x.text))
	x.text = ""
	return nanobot.Line(object.Encode(append(x.members(), object.Optional("bytes", &size))...))
}

// Empty reports whether there is neither MEMORY.md nor HISTORY.md.
func (m *memory) Empty() bool {
	last, _ := m.Last(historyLog)
	return last == 0 && !m.Has(memoryKey)
}

// TakeFiles takes the files that only this memory knows.
func (m *memory) TakeFiles(in *nanobot.Incoming) {
	file := new(longTermFile)
	first, sources, _ := strings.Cut(in.Take(sourcesFile), "\n")
	if first != "" {
		if err := object.Decode([]byte(first), file.members()...); err != nil {
			m.Fail(abi.NewError(abi.CodeInvalidArgument, sourcesFile+": "+err.Error()))
		}
	}
	if in.Unclaimed(memoryFile) {
		file.text = in.Take(memoryFile)
		m.Store(memoryKey, 0, file.members()...)
	}
	for history := in.Take(historyFile); history != ""; {
		var x entry
		var line string
		line, sources, _ = strings.Cut(sources, "\n")
		x, history = cutEntry(history, line)
		if strings.TrimSpace(history) == "" {
			history = ""
		}
		m.Append(historyLog, object.Encode(x.members()...))
	}
}

// cutEntry takes the first entry off HISTORY.md: with the length in its source if the text matches, otherwise up to the
// first blank line.
func cutEntry(history, source string) (x entry, rest string) {
	size := int64(-1)
	if source != "" && object.Decode([]byte(source), append(x.members(), object.Optional("bytes", &size))...) == nil &&
		size >= 0 &&
		size <= int64(len(history)) && strings.HasPrefix(history[size:], gap) {
		x.text, rest = history[:size], history[size+int64(len(gap)):]
		return x, rest
	}
	x = entry{}
	x.text, rest, _ = strings.Cut(history, gap)
	if rest == "" {
		x.text = strings.TrimRight(x.text, "\r\n")
	}
	if at, _, dated := strings.Cut(strings.TrimPrefix(x.text, "["), "]"); dated && strings.HasPrefix(x.text, "[") &&
		len(at) >= 16 && at[4] == '-' {
		x.at = at
	}
	return x, rest
}
