package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/recorded"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// recordEvent sends one POST /product/add and then checks that the memories exist, because MemOS answers 200 with ids
// even for memories that it lost.
//
// Sending an add again would create a second memory, so recordEvent never does; find_event finds out what was stored.
func recordEvent(b *backend, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusNotRetained, StoredCount: sdk.Ptr(int64(0)),
		NativeIDsKind: abi.NativeIDsNone, Trace: b.trace("POST /product/add")}
	if !slices.ContainsFunc(e.Messages, storable) {
		receipt.Warnings = append(receipt.Warnings,
			"nothing_to_store: the event has no text of a user, an assistant or a tool; "+
				"MemOS keeps nothing of system messages")
		return receipt, nil
	}
	named, err := b.namesSpeakers(e)
	if err != nil {
		return nil, err
	}
	if !named && slices.ContainsFunc(e.Messages, func(m abi.Message) bool { return sdk.Named(&m) }) {
		receipt.Warnings = append(receipt.Warnings, abi.WarnSpeakerLost+": messages have names, which MemOS drops, and "+
			"name_prefix is "+b.namePrefix)
	}
	if named {
		sdk.Put(&receipt.Trace.Effective, "name_prefix", sdk.Text(b.namePrefix))
	}
	a, err := b.post(b.addRoute(), b.addBody(e, named))
	if err != nil {
		return nil, err
	}
	if err := b.readReceipt(a, receipt); err != nil {
		return nil, err
	}
	receipt.Trace.NativeIDs = receipt.NativeIDs
	if len(receipt.NativeIDs) == 0 {
		receipt.Warnings = append(receipt.Warnings,
			"nothing_stored: MemOS answered 200 and stored nothing: its LLM found nothing to "+
				"remember, or answered what MemOS cannot parse")
		return receipt, nil
	}
	receipt.Status, receipt.NativeIDsKind = abi.StatusCommitted, abi.NativeIDsFinal
	if b.async() {
		receipt.Status, receipt.NativeIDsKind = abi.StatusQueued, abi.NativeIDsTransient
		receipt.Markers = []string{marker{event: e.EventID, session: sessionOf(e.SessionID), at: b.Now}.String()}
	}
	if b.readBack {
		err = b.verifyStored(e.EventID, a, receipt)
	}
	if err == nil {
		err = recorded.Note(b.Call)
	}
	return receipt, err
}

// storable reports whether MemOS would keep anything of a message. It stores an empty window for an empty text, and
// nothing for system messages.
func storable(m abi.Message) bool { return m.Role != abi.RoleSystem && hasText(&m) }

func hasText(m *abi.Message) bool {
	return len(m.ToolCalls) > 0 || m.Content != nil && strings.TrimSpace(*m.Content) != ""
}

func (s *settings) addRoute() string {
	switch s.addMode {
	case profileFast:
		return "add_fast"
	case profileFine:
		return "add_fine"
	}
	return "add_async"
}

// addBody returns the request of POST /product/add (APIADDRequest). Fields that make the server do more than store are
// never sent: is_feedback, doc_path, file and image parts, merged_from, source_doc_id. custom_tags is sent under
// source-design only, where labels use the design's fields: it is used only in the extraction's prompt, and would
// disclose what the turn reveals.
func (b *backend) addBody(e *abi.MemoryEvent, named bool) wire.Object {
	when, how, _ := strings.Cut(b.addMode, "/")
	body := wire.Object{"user_id", b.cube, "writable_cube_ids", []string{b.cube}, "session_id", sessionOf(e.SessionID),
		"task_id", taskOf(b.cube, e.EventID), "async_mode", when, "mode", wire.Some(how)}
	if b.sourceDesign {
		tags := slices.DeleteFunc([]string{e.Scenario, e.Context, e.Attribute}, func(s string) bool { return s == "" })
		body = append(body, "custom_tags", wire.If(len(tags) > 0, tags))
	} else {
		body = append(body, "project_id", wire.Some(labelTriple(e.Scenario, e.Context, e.Attribute)),
			"manager_user_id", wire.Some(labelScenario(e.Scenario)))
	}
	return append(body, "info", infoOf(e), "messages", messagesOf(e, named))
}

// infoOf returns the event's labels: only texts and other scalars, because a nested value loses the write on Neo4j, and
// under names of memhost's own, because some 35 names are silently dropped (add_handler.py) and a few have effects.
func infoOf(e *abi.MemoryEvent) wire.Object {
	info := wire.Object{"mh_event_id", e.EventID, "mh_turn_id", e.TurnID, "mh_run_id", e.RunID,
		"mh_persona_id", e.UserID, "mh_event_time", e.Timestamp,
		"mh_session_id", wire.If(sessionOf(e.SessionID) != e.SessionID, e.SessionID),
		"mh_agent_id", wire.Some(e.AgentID), "mh_scenario", wire.Some(e.Scenario), "mh_context", wire.Some(e.Context),
		"mh_attribute", wire.Some(e.Attribute)}
	var rest, names wire.Object
	for _, key := range abi.SortedKeys(e.Metadata) {
		value := e.Metadata[key]
		switch kind := wire.Kind(value); {
		case kind == wirejson.Invalid || kind == wirejson.Null: // the same as absent
		case plainKey(key) && kind != wirejson.Object && kind != wirejson.Array:
			info = append(info, "mh_m_"+key, value)
		default:
			rest = append(rest, key, value)
		}
	}
	for i := range e.Messages {
		if name := e.Messages[i].Name; name != "" { // the server drops the field name
			names = append(names, sdk.Itoa(i), name)
		}
	}
	return append(info, "mh_meta", wire.If(len(rest) > 0, string(rest.JSON())), "mh_names",
		wire.If(len(names) > 0, string(names.JSON())))
}

// messagesOf returns the messages with text as texts, never as parts: for a file or image part the server would open
// the path or the address. named writes the speaker before the text of messages that have a name.
func messagesOf(e *abi.MemoryEvent, named bool) (list []wire.Object) {
	at := chatTime(e.Timestamp)
	for i := range e.Messages {
		m, id := &e.Messages[i], messageID(e.EventID, i)
		if !hasText(m) {
			continue
		}
		content := ""
		if m.Content != nil {
			content = *m.Content
		}
		if named && sdk.Named(m) && content != "" {
			content = sdk.OneLine(m.Name) + ": " + content
		}
		o := wire.Object{"role", string(m.Role), "content", content, "chat_time", at, "message_id", id}
		if m.Role == abi.RoleTool {
			// The server rejects a tool message without the id of its call (422), so a missing id is derived from the
			// message's.
			call := m.ToolCallID
			if call == "" {
				call = messageID("mh_unnamed", i)
			}
			o = append(o, "tool_call_id", call)
		}
		if len(m.ToolCalls) > 0 && m.Role == abi.RoleAssistant {
			o = append(o, "tool_calls", callsOf(m.ToolCalls))
		}
		list = append(list, o)
	}
	return list
}

func callsOf(calls []abi.ToolCall) (list []wire.Object) {
	for _, c := range calls {
		list = append(list, wire.Object{"id", c.ID, "type", "function", "function",
			wire.Object{"name", c.Name, "arguments", c.Arguments}})
	}
	return list
}

// chatTime returns the event's time in UTC, which becomes part of the stored text. The host has checked it.
func chatTime(timestamp string) string {
	t, err := abi.ParseTime(timestamp)
	if err != nil {
		return timestamp
	}
	return utc(t) + "Z"
}

// utc formats a time in UTC without its zone, as the server's filters need it: 2026-05-01T10:00:00.5.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999") }

// readReceipt reads data, [{memory, memory_id, memory_type, cube_id}].
func (b *backend) readReceipt(a *answer, receipt *abi.WriteReceipt) error {
	if wire.Kind(a.data) != wirejson.Array {
		return unusable(b.addRoute(), a, "data is no list of memories")
	}
	kept := false
	for _, memory := range wire.Items(a.data) {
		var id, text, owner string
		if err := wire.Read(memory, "memory_id", &id, "memory", &text, "cube_id", &owner); err != nil {
			return unusable(b.addRoute(), a, "data cannot be read: "+err.Error())
		}
		if owner != "" && owner != b.cube {
			return breach(b.addRoute(), a, b.cube, owner)
		}
		if id != "" {
			receipt.NativeIDs = append(receipt.NativeIDs, id)
		}
		kept = kept || windowText(text)
	}
	if kept && b.addMode == profileFine {
		receipt.Warnings = append(receipt.Warnings, "extraction_fallback: MemOS kept the raw text: its LLM failed")
	}
	receipt.StoredCount = sdk.Ptr(int64(len(receipt.NativeIDs)))
	return nil
}

// verifyStored looks for the event's memories by its id. In mode async the raw text may have been replaced already, so
// finding nothing proves nothing.
//
// Errors: unavailable if the store does not answer; backend with reason not_stored if MemOS returned ids but has none
// of them.
func (b *backend) verifyStored(eventID string, sent *answer, receipt *abi.WriteReceipt) error {
	if !b.filters() {
		return nil
	}
	groups, _, err := b.list(listing{cube: b.cube, filter: ofEvent(eventID), page: 1, size: 1})
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "MemOS accepted the write, and could not be asked whether it kept it: " + e.Message
		return &e
	}
	found := total(groups)
	switch {
	case b.async():
		return nil
	case found == 0:
		e := failure(abi.CodeBackend, b.addRoute(), 200,
			"MemOS answered 200 with "+sdk.Itoa(len(receipt.NativeIDs))+" ids and stored none of them", sent.body).
			WithReason("not_stored").WithHint("with graph backend neo4j a turn with tools loses its whole batch in " +
			"sync/fine and async: use neo4j-community, or add_mode sync/fast")
		e.NothingStored = true // the write had finished before the store was queried
		return e
	case found < int64(len(receipt.NativeIDs)):
		receipt.Warnings = append(receipt.Warnings,
			"partly_stored: MemOS listed "+sdk.Itoa(len(receipt.NativeIDs))+" memories and has "+sdk.Itoa(found))
	}
	receipt.StoredCount = &found
	for _, m := range itemsOf(groups) {
		if m.vectorSync != "" && m.vectorSync != "success" {
			receipt.Warnings = append(receipt.Warnings,
				"no_vector: MemOS stored the memory without a vector ("+m.vectorSync+"): "+
					"its embedder failed, and no search will find it")
			break
		}
	}
	return nil
}
