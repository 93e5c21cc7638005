package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// What a person wrote into MEMORY.md, or removed from it, is final for messages that were recorded before and wait to
// be consolidated. They only add lines to the file, and no line with a word that the person removed. HISTORY.md has
// them as usual. Messages that are recorded later count again.
//
// While such messages wait, the key settled has the hashes of the removed words, and the mark of each session has the
// number of its older messages.
const settledKey = "settled"

// settledWords are the hashes.
type settledWords struct{ words []string }

func (x *settledWords) members() []object.Member {
	return []object.Member{object.Optional("words", &x.words)}
}

// settle records that a person replaced the file's text.
func (m *memory) settle(before, after string) {
	waits := false
	for _, s := range nanobot.Sessions(m.State) {
		if s.Open() > 0 {
			s.Settled, waits = s.Messages, true
			s.Save(m.State)
		}
	}
	if !waits {
		return
	}
	var x settledWords
	version := m.Load(settledKey, x.members()...)
	here := hashedWords(after)
	for _, word := range hashedWords(before) {
		if !slices.Contains(x.words, word) {
			x.words = append(x.words, word)
		}
	}
	x.words = slices.DeleteFunc(x.words, func(word string) bool { return slices.Contains(here, word) })
	m.Store(settledKey, version, x.members()...)
}

// addNewLines adds the lines that are new in an update to the file's text, each after the line that it follows there.
func (m *memory) addNewLines(text, update string) string {
	var x settledWords
	m.Load(settledKey, x.members()...)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	at, before := len(lines), len(lines)
	for _, line := range strings.Split(update, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			continue
		}
		if i := slices.IndexFunc(lines, func(s string) bool { return strings.TrimSpace(s) == trimmed }); i >= 0 {
			at = i + 1
			continue
		}
		removed := func(word string) bool { return slices.Contains(x.words, word) }
		if slices.ContainsFunc(hashedWords(line), removed) {
			continue
		}
		lines = slices.Insert(lines, at, line)
		at++
	}
	if len(lines) == before {
		return text
	}
	return strings.TrimLeft(strings.Join(lines, "\n")+"\n", "\n")
}

// dropSettled removes the hashes if no older message waits any more. done is the session that was just consolidated.
func (m *memory) dropSettled(done *nanobot.Session) {
	for _, s := range append(nanobot.Sessions(m.State), done) {
		if s.Settled > s.Pointer && (s == done || s.ID != done.ID) {
			return
		}
	}
	m.Remove(settledKey)
}

// hashedWords are the words of a text, each once. Scripts without spaces between words count by pairs of characters.
func hashedWords(text string) (hashes []string) {
	for _, word := range nanobot.Words(text) {
		parts := []string{word}
		if runes := []rune(word); len(runes) > 2 && runes[0] >= 0x2E80 { // Chinese, Japanese, Korean
			parts = nil
			for i := range runes[1:] {
				parts = append(parts, string(runes[i:i+2]))
			}
		}
		for _, part := range parts {
			if hash := sdk.Digest256(part)[:16]; !slices.Contains(hashes, hash) {
				hashes = append(hashes, hash)
			}
		}
	}
	return hashes
}
