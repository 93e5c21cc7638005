package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// forgottenEntry replaces a forgotten entry of HISTORY.md, so that the others keep their numbers.
const forgottenEntry = "{}"

// Forget removes the entries of HISTORY.md that were made from forgotten events only. MEMORY.md is always rewritten as
// a whole, so the source of a line is unknown, and the file is removed only if it is named.
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
	case f.RemoveWhole("long_term", file.id()):
		m.settle(file.text, "")
		m.Store(memoryKey, file.version)
	case f.Read || f.Of(file.events) > 0:
		f.Remains("MEMORY.md: a model wrote it from these events and others: write_memory writes it anew, " +
			"and forgetting the native id " + file.id() + " removes it")
	}
}
