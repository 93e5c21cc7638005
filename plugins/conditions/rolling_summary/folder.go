package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// The folder. sourcesFile is ours, the others are Nanobot's: it tells where MEMORY.md and each entry of HISTORY.md came from, one JSON object a line, in order.
const (
	memoryFile  = "memory/MEMORY.md"
	historyFile = "memory/HISTORY.md"
	sourcesFile = "memory/.sources.jsonl"
)

// gap stands behind each entry of HISTORY.md.
const gap = "\n\n"

func writeFiles(c *sdk.Call, f *nanobot.Files) error {
	file, err := readMemory(c)
	if err != nil {
		return err
	}
	_, last, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	if err != nil {
		return err
	}
	f.Text(memoryFile, file.text)
	if err := f.Log(c, historyFile, historyLog, nil, 0, last, func(data []byte) []byte {
		x, err := decodeEntry(data)
		if err != nil {
			return nil
		}
		return []byte(x.text + gap)
	}); err != nil {
		return err
	}
	head := func() ([]byte, error) {
		text := file.text
		file.text = ""
		line := nanobot.Line(nanobot.Encode(file.fields()...))
		file.text = text
		return line, nil
	}
	if file.version != 0 || last > 0 {
		if err := f.Log(c, sourcesFile, historyLog, head, 0, last, sourceOf); err != nil {
			return err
		}
	}
	if err := nanobot.WriteSessionFiles(c, f); err != nil {
		return err
	}
	return f.Kept(c)
}

// sourceOf is a line with an entry that has its length in place of its text.
func sourceOf(data []byte) []byte {
	x, err := decodeEntry(data)
	if err != nil {
		return nil
	}
	size := int64(len(x.text))
	x.text = ""
	return nanobot.Line(nanobot.Encode(append(x.fields(), nanobot.Number("bytes", &size))...))
}

// empty tells whether the scope holds nothing yet.
func empty(c *sdk.Call) (bool, error) {
	last, err := nanobot.LastSession(c)
	if err != nil || last != "" {
		return false, err
	}
	m, err := readMemory(c)
	if err != nil || m.version != 0 {
		return false, err
	}
	_, n, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	return n == 0, err
}

// takeFiles takes the files that only this memory knows.
func takeFiles(c *sdk.Call, in *nanobot.Incoming) error {
	m := new(memory)
	sources, err := in.Take(sourcesFile)
	if err != nil {
		return err
	}
	first, sources, _ := strings.Cut(sources, "\n")
	if first != "" {
		if err := nanobot.Decode([]byte(first), m.fields()...); err != nil {
			return abi.NewError(abi.CodeInvalidArgument, sourcesFile+": "+err.Error())
		}
	}
	if in.Has(memoryFile) {
		if m.text, err = in.Take(memoryFile); err != nil {
			return err
		}
		if err := c.Put(memoryKey, nanobot.Encode(m.fields()...), 0); err != nil {
			return err
		}
	}
	history, err := in.Take(historyFile)
	if err != nil {
		return err
	}
	for history != "" {
		var x entry
		var line string
		line, sources, _ = strings.Cut(sources, "\n")
		x, history = cutEntry(history, line)
		if strings.TrimSpace(history) == "" {
			history = ""
		}
		if _, err := c.Append(historyLog, nanobot.Encode(x.fields()...)); err != nil {
			return err
		}
	}
	return nil
}

// cutEntry takes the first entry off HISTORY.md: as long as its source says, where the text is still so, otherwise up to the first blank line.
func cutEntry(history, source string) (x entry, rest string) {
	size := int64(-1)
	if source != "" && nanobot.Decode([]byte(source), append(x.fields(), nanobot.Number("bytes", &size))...) == nil && size >= 0 && size <= int64(len(history)) &&
		strings.HasPrefix(history[size:], gap) {
		x.text, rest = history[:size], history[size+int64(len(gap)):]
		return x, rest
	}
	x = entry{}
	x.text, rest, _ = strings.Cut(history, gap)
	if rest == "" {
		x.text = strings.TrimRight(x.text, "\r\n")
	}
	if at, _, dated := strings.Cut(strings.TrimPrefix(x.text, "["), "]"); dated && strings.HasPrefix(x.text, "[") && len(at) >= 16 && at[4] == '-' {
		x.at = at
	}
	return x, rest
}
