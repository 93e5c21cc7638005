package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
)

const nothing = "(nothing)"

// PromptTokens counts the tokens of the files, of the history that Dream has not read, and of the session's last
// summary.
func (m *memory) PromptTokens(s *nanobot.Session) (n int64) {
	for _, f := range m.folder() {
		n += m.CountTokens(f.text)
	}
	items, _ := m.recent(s.ID)
	for _, x := range items {
		n += m.CountTokens(x.Text)
	}
	if s.Summary != "" {
		n += m.CountTokens(s.Summary)
	}
	return n
}

// Archive compresses the messages before end that are not archived yet into a history entry. If the model fails it adds
// a raw entry and returns again false, because one failed call is enough; if raw archives are off, a failure changes
// nothing.
func (m *memory) Archive(s *nanobot.Session, end int64, u *model.Usage) (again bool, failed error) {
	if end <= s.Pointer {
		return true, nil
	}
	messages, _ := s.Read(m.State, s.Pointer, end)
	tokens, shown := m.TokensOf(messages), 0
	for i := range messages {
		if messages[i].Render() != "" {
			shown++
		}
	}
	x := entry{at: nanobot.Minute(m.TimeOf(messages)), session: s.ID, events: nanobot.EventsOf(messages)}
	conversation := nanobot.RenderAll(messages)
	if conversation == "" {
		m.RecordYield(messages, s.Pointer, false)
		s.Done(end, tokens)
		return true, nil
	}
	text, failed := m.compress(conversation, u)
	switch {
	case failed != nil && (!m.settings.raw || model.OutOfTime(m.Call, failed)):
		return false, failed
	case failed != nil:
		m.Log(abi.LogWarn, "layered_memory: raw archive: "+abi.AsError(failed).Message)
		x.content = "[RAW] " + nanobot.Plural(shown, "message") + "\n" + conversation
		m.remember(x, maxRaw)
	case text != nothing:
		x.content = text
		m.remember(x, maxSummary)
		s.Summary, s.Summarised = prepare(text, maxSummary), s.Updated
	}
	m.RecordYield(messages, s.Pointer, failed != nil || text != nothing)
	s.Done(end, tokens)
	return failed == nil, nil
}

// compress asks the model for the facts in a conversation.
func (m *memory) compress(conversation string, u *model.Usage) (string, error) {
	if m.Tokens.On() && m.CountTokens(m.settings.prompts.archive+conversation) > m.Tokens.Limit() {
		return "", model.BadOutput("too large for the context window", 0, nil)
	}
	answer, err := m.Model.Chat(m.State, model.Prompt(m.settings.prompts.archive, conversation), u)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(answer.Text)
	if len(answer.Calls) > 0 || text == "" {
		return "", model.BadOutput("a tool call or nothing instead of an archive", 200, []byte(text))
	}
	return text, nil
}
