package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

const archiveInstruction = "Compress a part of a conversation into facts: only what the user would have to say again, is new, matters and still holds in two weeks. " +
	"Corrections and preferences first, then solutions, decisions, events, environment; nothing that the repository shows. One line a fact: - [mark] fact, with a mark of " +
	"permanent, durable, ephemeral, correction, skip. When nothing is worth keeping answer exactly (nothing). " + onlyData

const nothing = "(nothing)"

// archive compresses the messages before end that are not archived yet into an entry of the history, or, where the model fails, into a raw one. It
// returns the text, or "" for a raw archive.
//
// Errors: those of the model where raw archives are off; then nothing has changed.
func (s *settings) archive(c *sdk.Call, session *nanobot.Session, end int64, u *nanobot.Usage) (string, error) {
	if end <= session.Pointer {
		return nothing, nil
	}
	messages, _, err := session.Read(c, session.Pointer, end)
	if err != nil {
		return "", err
	}
	tokens, count := int64(0), 0
	for i := range messages {
		if s.policy == nanobot.PolicyTokens {
			tokens += messages[i].Tokens(c)
		}
		if messages[i].Render() != "" {
			count++
		}
	}
	events := nanobot.EventsOf(messages)
	conversation := nanobot.RenderAll(messages)
	text := nothing
	if conversation != "" {
		if text, err = s.compress(c, conversation, u); err != nil {
			if !s.raw || !nanobot.OfModel(err) || nanobot.OutOfTime(c, err) {
				return "", err
			}
			c.Log(abi.LogWarn, "layered_memory: raw archive: "+abi.AsError(err).Message)
			_, err := appendHistory(c, entry{content: "[RAW] " + nanobot.Plural(len(messages), "message") + "\n" + conversation, session: session.ID, events: events}, rawMost)
			if err == nil {
				session.Done(end, tokens)
			}
			return "", err
		}
	}
	if text != nothing {
		if _, err := appendHistory(c, entry{content: text, session: session.ID, events: events}, summaryMost); err != nil {
			return "", err
		}
		session.Summary, session.Summarised = prepare(text, summaryMost), session.Updated
	}
	session.Done(end, tokens)
	return text, nil
}

func (s *settings) compress(c *sdk.Call, conversation string, u *nanobot.Usage) (string, error) {
	if s.tokens.On() && c.CountTokens(archiveInstruction+conversation) > s.tokens.Limit() {
		return "", nanobot.BadOutput("too large for the context window", 0, nil)
	}
	answer, err := s.llm.Chat(c, nanobot.Chat{Turns: []nanobot.Turn{{Role: "system", Content: archiveInstruction}, {Role: "user", Content: conversation}}}, u)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(answer.Text)
	if len(answer.Calls) > 0 || text == "" {
		return "", nanobot.BadOutput("a tool call or nothing instead of an archive", 200, []byte(text))
	}
	return text, nil
}
