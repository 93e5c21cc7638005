package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// forgottenEntry takes the place of a forgotten entry of HISTORY.md, so that the others keep their numbers.
const forgottenEntry = "{}"

// Forget removes entries of HISTORY.md that were made from forgotten events alone. MEMORY.md is rewritten as a whole:
// nobody can tell which of its lines came from where, so it goes only where it is named.
func (m *memory) Forget(f *nanobot.Forgetting) {
	f.History(historyLog, []byte(forgottenEntry), func(seq int64, data []byte) (string, []string) {
		var x entry
		if object.Decode(data, x.members()...) != nil || string(data) == forgottenEntry {
			return "", nil
		}
		return "history#" + sdk.Itoa(seq), x.events
	})
	file := m.longTerm()
	switch {
	case file.text == "":
	case f.Whole("long_term", file.id()):
		m.settle(file.text, "")
		m.Store(memoryKey, file.version)
	case f.Read || f.Of(file.events) > 0:
		f.Remains("MEMORY.md: a model wrote it from these events and others: write_memory writes it anew, " +
			"and forgetting the native id " + file.id() + " removes it")
	}
}
