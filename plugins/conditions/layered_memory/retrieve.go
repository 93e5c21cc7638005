package main

import (
	"iter"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// Bounds of the section Recent History.
const (
	maxRecent    = 50
	recentTokens = 8000
)

// Items returns the files, the history that Dream has not read, the session's last summary and, if configured, further
// history entries that share words with the query.
func (m *memory) Items(r *abi.RetrieveRequest) (items []nanobot.Item, notes []string) {
	items = m.files()
	recent, bad := m.recent(r.SessionID)
	items = append(items, recent...)
	if bad > 0 {
		notes = append(notes, "bad_line: "+sdk.Itoa(bad)+" lines of the history cannot be read and were skipped")
	}
	session := nanobot.FindSession(m.State, r.SessionID)
	if session.Summary != "" && !holds(items, session.Summary) {
		items = append(items, nanobot.Item{ID: "summary", Kind: "summary", Title: "Summary of this session",
			Text: session.Summary, Created: session.Summarised})
	}
	if m.Search {
		search := nanobot.NewSearch(r.Query)
		for x := range m.history(nil) {
			if !holds(items, x.content) {
				search.Add(x.item("From the history (history.jsonl)"))
			}
		}
		items = append(items, search.Best()...)
	}
	return items, notes
}

// files returns the files that describe a person and, if configured, the agent.
func (m *memory) files() (items []nanobot.Item) {
	files := m.folder()
	for _, part := range []struct{ path, title string }{{userFile, "User (USER.md)"},
		{memoryFile, "Long-term Memory (MEMORY.md)"}, {soulFile, "Agent (SOUL.md)"}} {
		text := files.at(part.path).text
		digest := sdk.Digest256(text)
		if strings.TrimSpace(text) != "" && (part.path != soulFile || m.settings.soul) &&
			!slices.Contains(templates, digest) {
			items = append(items, nanobot.Item{ID: part.path + "@" + digest[:8], Kind: "long_term", Title: part.title,
				Text: text})
		}
	}
	return items
}

// All is the files and the entries of the history.
func (m *memory) All() iter.Seq[nanobot.Item] {
	return func(yield func(nanobot.Item) bool) {
		for _, x := range m.files() {
			if !yield(x) {
				return
			}
		}
		for x := range m.history(nil) {
			if x.content != "" && !yield(x.item("")) {
				return
			}
		}
	}
}

// TailFrom keeps a short unarchived suffix after an archive: the last 8 messages.
func (m *memory) TailFrom(s *nanobot.Session) int64 { return min(s.Pointer, s.Messages-8) }

// templates are the digests of the files that Nanobot puts into a new workspace. They say nothing about a person
// (nanobot-ai 0.3.5, nanobot/templates).
var templates = []string{"d58b7ed68cc05c8aaa1e0b97f6f78411e1959efbebb53f53f047f1a911632151",
	"bfd7f7a5e129a86f1d392374669e5375986b830fce9d0d591de15c296845725e",
	"a0151a00f64bcf2e42219687341d28097ea669a9f117b0a6e65033897a207a8e"}

func holds(items []nanobot.Item, text string) bool {
	return slices.ContainsFunc(items, func(x nanobot.Item) bool { return x.Text == text })
}

func (x *entry) item(title string) nanobot.Item {
	return nanobot.Item{ID: "history#" + sdk.Itoa(x.cursor), Kind: "history", Title: title, Text: x.content,
		Created: x.at, Events: x.events}
}

// recent returns the newest part of the history that Dream has not read, oldest first.
func (m *memory) recent(session string) (items []nanobot.Item, bad int64) {
	d := model.ReadProgress(m.State, dreamKey)
	list, bad := m.newest(d.Cursor, maxRecent)
	left := int64(recentTokens)
	for i := len(list) - 1; i >= 0; i-- {
		if m.settings.sessionHistoryOnly && list[i].session != session || list[i].content == "" {
			continue
		}
		if left -= m.CountTokens(list[i].content); left < 0 {
			break
		}
		items = append(items, list[i].item("Recent History"))
	}
	slices.Reverse(items)
	return items, bad
}
