package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// Query answers, besides those of all memories,
//
//	history {query}                          the entries of HISTORY.md that share words with the query
//	get_history {session_id, max_messages}   the messages that an agent can be shown again
func (m *memory) Query(r *abi.NativeQuery, answer *wirejson.Encoder) bool {
	switch r.Name {
	case "history":
		items, _ := m.searchHistory(nanobot.Param(r.Params, "query"))
		nanobot.WriteItems(answer, items)
	case "get_history":
		most, err := strconv.ParseInt(string(r.Params["max_messages"]), 10, 64)
		if err != nil {
			most = m.MaxHistory
		}
		s := nanobot.FindSession(m.State, nanobot.Param(r.Params, "session_id"))
		messages, _ := s.Read(m.State, s.Pointer, s.Messages)
		answer.ArrStart()
		for _, x := range nanobot.Replay(messages, int(max(0, most))) {
			if x.Hidden && x.Content == "" {
				continue // it was forgotten
			}
			public := nanobot.Message{Role: x.Role, Content: x.Content, ToolCalls: x.ToolCalls,
				ToolCallID: x.ToolCallID,
				Name:       x.Name}
			answer.Raw(public.Encode())
		}
		answer.ArrEnd()
	default:
		return false
	}
	return true
}

// Mutate does, besides those of all memories,
//
//	consolidate {session_id, archive_all}   now, whatever the policy says; archive_all takes all messages and clears the session
//	write_memory {content}                  replaces MEMORY.md, by a person or an agent; messages that wait only add to it
func (m *memory) Mutate(r *abi.NativeMutation, receipt *abi.MutationReceipt) bool {
	switch r.Name {
	case "consolidate":
		m.consolidate(r, receipt)
	case "write_memory":
		if !m.settings.agentEdits {
			m.Fail(abi.NewError(abi.CodeUnsupported, "agent_edits is off: only the consolidation writes MEMORY.md"))
		}
		file := m.longTerm()
		before, text := file.id(), nanobot.Param(r.Params, "content")
		m.settle(file.text, text)
		m.replace(file, text, m.Now, nil)
		if file.id() != before {
			receipt.Status, receipt.NativeIDs = "applied", []string{file.id()}
		}
	default:
		return false
	}
	return true
}

func (m *memory) consolidate(r *abi.NativeMutation, receipt *abi.MutationReceipt) {
	s := nanobot.FindSession(m.State, nanobot.Param(r.Params, "session_id"))
	end, all := s.Messages-m.Window/2, string(r.Params["archive_all"]) == "true"
	if all {
		end = s.Messages
	}
	var u model.Usage
	before := s.Pointer
	_, failed := m.Archive(s, end, &u)
	if failed != nil {
		m.Fail(failed) // nothing is kept: the session is unchanged
	}
	if s.Pointer == before && (!all || s.Base == s.Messages) {
		return
	}
	if all {
		s.Base = s.Messages
	}
	receipt.Status, receipt.NativeIDs = "applied", []string{s.NativeID()}
	sdk.Put(&receipt.Trace.Details, "llm", u.JSON())
	u.Add(m.State)
	s.Save(m.State)
}

// AgentEdits is write_memory, unless only the consolidation may change MEMORY.md.
func (m *memory) AgentEdits() string {
	if !m.settings.agentEdits {
		return ""
	}
	return "write_memory"
}
