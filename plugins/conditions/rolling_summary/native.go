package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// nativeQuery answers
//
//	files {after}         -> {path: text}: the scope as the folder that Nanobot itself would have, in pages
//	status {}             -> sessions with their pointers and failures, and what the model was asked
//	history {query}       -> the entries of HISTORY.md that share words with the query
//	get_history {session_id, max_messages} -> the messages that an agent can be shown again
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var e jsontext.Encoder
	answer := &abi.NativeQueryResult{Name: r.Name, Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: r.Name}}
	switch r.Name {
	case "files":
		f := nanobot.NewFiles(nanobot.Param(r.Params, "after"))
		if err := writeFiles(c, f); err != nil {
			return nil, err
		}
		f.Answer(answer)
		return answer, nil
	case "status":
		err = nanobot.WriteStatus(c, &e)
	case "history":
		var items []nanobot.Item
		items, _, err = searchHistory(c, nanobot.Param(r.Params, "query"))
		e.Raw(nanobot.RawOf(items).Calls[0].Body)
	case "get_history":
		most := nanobot.ParamInt(r.Params, "max_messages", s.maxHistory)
		err = nanobot.WriteReplay(c, &e, nanobot.Param(r.Params, "session_id"), most)
	default:
		return nil, abi.NewError(abi.CodeInvalidArgument, "name: want files, status, history or get_history")
	}
	if err != nil {
		return nil, err
	}
	answer.Result = e.Bytes()
	return answer, nil
}

// nativeMutation does
//
//	consolidate {session_id, archive_all}   now, whatever the policy says; archive_all takes all messages and clears the session
//	write_memory {content}                  replaces MEMORY.md: the agent's own edit
//	import_files {files, continues, done}   a workspace of Nanobot, or what files gave, into an empty scope
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.MutationReceipt{Status: "no_change", Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: r.Name}}
	switch r.Name {
	case "consolidate":
		return receipt, s.consolidateNow(c, r, receipt)
	case "write_memory":
		if !s.agentEdits {
			return nil, abi.NewError(abi.CodeUnsupported, "agent_edits is off: only the consolidation writes MEMORY.md")
		}
		file, err := readMemory(c)
		if err != nil {
			return nil, err
		}
		before := file.id()
		if err := file.replace(c, nanobot.Param(r.Params, "content"), nil); err != nil {
			return nil, err
		}
		if file.id() != before {
			receipt.Status, receipt.NativeIDs = "applied", []string{file.id()}
		}
		return receipt, nil
	case "import_files":
		return receipt, nanobot.ImportFiles(c, r, s.policy, receipt, func() (bool, error) { return empty(c) }, func(in *nanobot.Incoming) error { return takeFiles(c, in) })
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, "name: want consolidate, write_memory or import_files")
}

func (s *settings) consolidateNow(c *sdk.Call, r *abi.NativeMutation, receipt *abi.MutationReceipt) error {
	session, err := nanobot.FindSession(c, nanobot.Param(r.Params, "session_id"))
	if err != nil {
		return err
	}
	end, all := session.Messages-s.window/2, string(r.Params["archive_all"]) == "true"
	if all {
		end = session.Messages
	}
	var u nanobot.Usage
	before := session.Pointer
	if err := s.consolidateTo(c, session, end, &u); err != nil {
		return err // nothing of it is kept: the session is as it was
	}
	if all && session.Base < session.Messages {
		session.Base, receipt.Status = session.Messages, "applied"
	}
	if session.Pointer > before {
		receipt.Status = "applied"
	}
	if receipt.Status != "applied" {
		return nil
	}
	receipt.NativeIDs = []string{session.Key()[2:]}
	receipt.Trace.Details = abi.Members[abi.Raw]{{Name: "llm", Value: u.JSON()}}
	if err := u.Add(c); err != nil {
		return err
	}
	return session.Save(c)
}
