package main

import (
	"iter"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// Items returns MEMORY.md and, if configured, the entries of HISTORY.md that share words with the query.
func (m *memory) Items(r *abi.RetrieveRequest) (items []nanobot.Item, notes []string) {
	if file := m.longTerm(); file.text != "" {
		title := "Long-term Memory (MEMORY.md)"
		if file.updated != "" {
			title = "Long-term Memory (MEMORY.md, " + file.updated + ")"
		}
		items = append(items, nanobot.Item{ID: file.id(), Kind: "long_term", Title: title, Text: file.text,
			Updated: file.updated, Events: file.events})
	}
	if m.Search {
		found, bad := m.searchHistory(r.Query)
		if bad > 0 {
			notes = append(notes, "bad_line: "+sdk.Itoa(bad)+" entries of the history cannot be read and were skipped")
		}
		items = append(items, found...)
	}
	return items, notes
}

// All returns MEMORY.md and the entries of HISTORY.md.
func (m *memory) All() iter.Seq[nanobot.Item] {
	return func(yield func(nanobot.Item) bool) {
		if file := m.longTerm(); file.text != "" && !yield(nanobot.Item{ID: file.id(), Kind: "long_term", Text: file.text,
			Updated: file.updated, Events: file.events}) {
			return
		}
		last, _ := m.Last(historyLog)
		for stored := range m.Entries(historyLog, 1, last) {
			var x entry
			if object.Decode(stored.Data, x.members()...) != nil || x.text == "" { // unreadable, or forgotten
				continue
			}
			if !yield(nanobot.Item{ID: "history#" + sdk.Itoa(stored.Seq), Kind: "history", Text: x.text, Created: x.at,
				Events: x.events}) {
				return
			}
		}
	}
}

// searchHistory finds the entries that share words with the query: most words first, then newest. bad counts the
// unreadable ones.
func (m *memory) searchHistory(query string) (items []nanobot.Item, bad int64) {
	search := nanobot.NewSearch(query)
	last, _ := m.Last(historyLog)
	for stored := range m.Entries(historyLog, 1, last) {
		var x entry
		if object.Decode(stored.Data, x.members()...) != nil {
			bad++
			continue
		}
		search.Add(nanobot.Item{ID: "history#" + sdk.Itoa(stored.Seq), Kind: "history",
			Title: "From the event log (HISTORY.md)", Text: x.text,
			Created: x.at, Events: x.events})
	}
	return search.Best(), bad
}
