package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// retrieve returns MEMORY.md; where it is configured, the entries of HISTORY.md that share words with the query, and the messages of the request's session
// that are not summarised yet. It asks no model and writes nothing.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	file, err := readMemory(c)
	if err != nil {
		return nil, err
	}
	var items []nanobot.Item
	var notes []string
	if file.text != "" {
		title := "Long-term Memory (MEMORY.md)"
		if file.updated != "" {
			title = "Long-term Memory (MEMORY.md, " + file.updated + ")"
		}
		items = append(items, nanobot.Item{ID: file.id(), Kind: "long_term", Title: title, Text: file.text,
			Updated: file.updated, Events: file.events})
	}
	if s.search {
		found, bad, err := searchHistory(c, r.Query)
		if err != nil {
			return nil, err
		}
		if bad > 0 {
			notes = append(notes, "bad_line: "+sdk.Itoa(bad)+" entries of the history cannot be read and were skipped")
		}
		items = append(items, found...)
	}
	if s.tail {
		tail, err := nanobot.Tail(c, r.SessionID, func(session *nanobot.Session) int64 { return session.Pointer }, s.maxHistory)
		if err != nil {
			return nil, err
		}
		items = append(items, tail...)
		notes = append(notes, "tail_included: messages of the session that are not summarised yet are shown")
	}
	return nanobot.Result(c, s.config, r, items, s.maxTokens, notes)
}

// searchHistory finds the entries that share words with the query: most words first, then the newest.
func searchHistory(c *sdk.Call, query string) ([]nanobot.Item, int64, error) {
	var hits []nanobot.Hit
	bad, err := eachEntry(c, func(seq int64, x entry) {
		if n := nanobot.Matches(query, x.text); n > 0 {
			hits = append(hits, nanobot.Hit{Words: n, At: seq, Item: nanobot.Item{ID: "history#" + sdk.Itoa(seq), Kind: "history",
				Title: "From the event log (HISTORY.md)", Text: x.text, Created: x.at, Events: x.events}})
		}
	})
	return nanobot.Best(hits), bad, err
}

// formatContext formats the items of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.Format(c, s.config, r, s.maxTokens)
}
