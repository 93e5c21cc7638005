package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// Bounds of the section Recent History.
const (
	recentMost   = 50
	recentTokens = 8000
)

// retrieve returns the files, the history that Dream has not read, the session's last summary, and where it is configured the tail. It asks no model and writes nothing.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	files, err := readFolder(c)
	if err != nil {
		return nil, err
	}
	var items []nanobot.Item
	var notes []string
	for _, part := range []struct{ path, title string }{{userFile, "User (USER.md)"}, {memoryFile, "Long-term Memory (MEMORY.md)"}, {soulFile, "Agent (SOUL.md)"}} {
		f := files.at(part.path)
		if strings.TrimSpace(f.text) != "" && (part.path != soulFile || s.soul) && !isTemplate(f.text) {
			items = append(items, nanobot.Item{ID: part.path + "@" + sdk.Digest256(f.text)[:8], Kind: "long_term", Title: part.title, Text: f.text})
		}
	}
	recent, bad, err := s.recent(c, r.SessionID)
	if err != nil {
		return nil, err
	}
	items = append(items, recent...)
	session, err := nanobot.FindSession(c, r.SessionID)
	if err != nil {
		return nil, err
	}
	if session.Summary != "" && !holds(items, session.Summary) {
		items = append(items, nanobot.Item{ID: "summary", Kind: "summary", Title: "Summary of this session", Text: session.Summary, Created: session.Summarised})
	}
	if s.search {
		found, err := searchHistory(c, r.Query, items)
		if err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	if s.tail {
		tail, err := nanobot.Tail(c, r.SessionID, replayFrom, s.maxHistory)
		if err != nil {
			return nil, err
		}
		items = append(items, tail...)
		notes = append(notes, "tail_included: messages of the session that are not archived yet are shown")
	}
	if bad > 0 {
		notes = append(notes, "bad_line: "+sdk.Itoa(bad)+" lines of the history cannot be read and were skipped")
	}
	return nanobot.Result(c, s.config, r, items, s.maxTokens, notes)
}

// replayFrom keeps a short raw suffix behind an archive: the last 8 messages.
func replayFrom(session *nanobot.Session) int64 { return min(session.Pointer, session.Messages-8) }

// templates are the digests of the files that Nanobot puts into a new workspace: they say nothing of a person (nanobot-ai 0.3.5, nanobot/templates).
var templates = []string{"d58b7ed68cc05c8aaa1e0b97f6f78411e1959efbebb53f53f047f1a911632151", "bfd7f7a5e129a86f1d392374669e5375986b830fce9d0d591de15c296845725e", "a0151a00f64bcf2e42219687341d28097ea669a9f117b0a6e65033897a207a8e"}

func isTemplate(text string) bool {
	digest := sdk.Digest256(text)
	for _, known := range templates {
		if digest == known {
			return true
		}
	}
	return false
}

func holds(items []nanobot.Item, text string) bool {
	for i := range items {
		if items[i].Text == text {
			return true
		}
	}
	return false
}

// searchHistory finds the entries that share words with the query, most words first, then the newest, without those that are shown already.
func searchHistory(c *sdk.Call, query string, shown []nanobot.Item) ([]nanobot.Item, error) {
	var hits []nanobot.Hit
	_, err := eachEntry(c, func(x entry) bool {
		if n := nanobot.Matches(query, x.content); n > 0 && !holds(shown, x.content) {
			hits = append(hits, nanobot.Hit{Words: n, At: x.cursor, Item: x.item("From the history (history.jsonl)")})
		}
		return true
	})
	return nanobot.Best(hits), err
}

func (x *entry) item(title string) nanobot.Item {
	return nanobot.Item{ID: "history#" + sdk.Itoa(x.cursor), Kind: "history", Title: title, Text: x.content, Created: x.at, Events: x.events}
}

// recent is the history that Dream has not read, the newest of it, oldest first.
func (s *settings) recent(c *sdk.Call, session string) ([]nanobot.Item, int64, error) {
	d, err := readDream(c)
	if err != nil {
		return nil, 0, err
	}
	list, bad, err := newest(c, d.Cursor, recentMost)
	if err != nil {
		return nil, 0, err
	}
	var items []nanobot.Item
	left := int64(recentTokens)
	for i := len(list) - 1; i >= 0; i-- {
		if s.ownHistory && list[i].session != session || list[i].content == "" {
			continue
		}
		if left -= c.CountTokens(list[i].content); left < 0 {
			break
		}
		items = append(items, list[i].item("Recent History"))
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return items, bad, nil
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
