package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent is one POST /product/add, and one look whether it arrived: MemOS answers 200 with ids for what it lost.
//
// A re-sent add is a second memory, so nothing is sent twice from here: find_event says what is there.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	cube := s.cubeOf(c)
	receipt := &abi.WriteReceipt{EventID: e.EventID, NativeIDsKind: abi.NativeIDsNone, Trace: s.trace("POST /product/add")}
	if !storable(e) {
		receipt.Status, receipt.StoredCount = abi.StatusNotRetained, sdk.Ptr(int64(0))
		receipt.Warnings = append(receipt.Warnings, "nothing_to_store: the event has no text of a user, an assistant or a tool; MemOS keeps nothing of system messages")
		return receipt, nil
	}
	a, err := s.post(c, s.addRoute(), s.addBody(cube, e))
	if err != nil {
		return nil, err
	}
	if err := s.readReceipt(a, cube, receipt); err != nil {
		return nil, err
	}
	receipt.Trace.NativeIDs = receipt.NativeIDs
	if len(receipt.NativeIDs) == 0 {
		receipt.Status, receipt.StoredCount = abi.StatusNotRetained, sdk.Ptr(int64(0))
		receipt.Warnings = append(receipt.Warnings, "nothing_stored: MemOS answered 200 and stored nothing: its LLM found nothing to remember, or answered what MemOS cannot parse")
		return receipt, nil
	}
	if s.async() {
		receipt.Status, receipt.NativeIDsKind = abi.StatusQueued, abi.NativeIDsTransient
		receipt.Markers = []string{marker{event: e.EventID, session: sessionOf(e.SessionID), at: c.Now}.String()}
	} else {
		receipt.Status, receipt.NativeIDsKind = abi.StatusCommitted, abi.NativeIDsFinal
	}
	if s.readBack {
		err = s.lookAgain(c, cube, e.EventID, a, receipt)
	}
	return receipt, err
}

// storable tells whether MemOS would keep anything of the event. Of an empty text it stores an empty window, of system messages nothing.
func storable(e *abi.MemoryEvent) bool {
	return slices.ContainsFunc(e.Messages, func(m abi.Message) bool { return m.Role != abi.RoleSystem && hasText(&m) })
}

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

// addBody is the request of POST /product/add (APIADDRequest). No field that the server acts on beside the memory is ever sent: is_feedback, doc_path,
// file and image parts, merged_from, source_doc_id. Nor custom_tags: they reach only the extraction's prompt, and would tell it what the turn reveals.
func (s *settings) addBody(cube string, e *abi.MemoryEvent) []byte {
	return object(func(j *jsontext.Encoder) {
		putText(j, "user_id", cube)
		putTexts(j, "writable_cube_ids", cube)
		putText(j, "session_id", sessionOf(e.SessionID))
		putText(j, "task_id", taskOf(cube, e.EventID))
		switch s.addMode {
		case profileFast:
			putText(j, "async_mode", "sync")
			putText(j, "mode", "fast")
		case profileFine:
			putText(j, "async_mode", "sync")
			putText(j, "mode", "fine")
		default:
			putText(j, "async_mode", "async")
		}
		if id := labelTriple(e.Scenario, e.Context, e.Attribute); id != "" {
			putText(j, "project_id", id)
		}
		if id := labelScenario(e.Scenario); id != "" {
			putText(j, "manager_user_id", id)
		}
		j.FieldStart("info")
		j.ObjStart()
		putInfo(j, e)
		j.ObjEnd()
		j.FieldStart("messages")
		putMessages(j, e)
	})
}

// putInfo writes the event's labels: texts and other scalars only, since nested values lose the write on Neo4j, and with names of our own, since some
// 35 names are dropped in silence (add_handler.py) and a few act.
func putInfo(j *jsontext.Encoder, e *abi.MemoryEvent) {
	putText(j, "mh_event_id", e.EventID)
	putText(j, "mh_turn_id", e.TurnID)
	putText(j, "mh_run_id", e.RunID)
	putText(j, "mh_persona_id", e.UserID)
	putText(j, "mh_event_time", e.Timestamp)
	if native := sessionOf(e.SessionID); native != e.SessionID {
		putText(j, "mh_session_id", e.SessionID)
	}
	for _, l := range []struct{ name, value string }{{"mh_agent_id", e.AgentID}, {"mh_scenario", e.Scenario}, {"mh_context", e.Context}, {"mh_attribute", e.Attribute}} {
		if l.value != "" {
			putText(j, l.name, l.value)
		}
	}
	keys := make([]string, 0, len(e.Metadata))
	for key := range e.Metadata {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var rest jsontext.Encoder
	rest.ObjStart()
	left := 0
	for _, key := range keys {
		value := jsontext.Raw(e.Metadata[key])
		switch kind := value.Type(); {
		case len(value) == 0 || kind == jsontext.Null: // null is the same as absent
		case plainKey(key) && (kind == jsontext.String || kind == jsontext.Number || kind == jsontext.Bool):
			j.FieldStart("mh_m_" + key)
			j.Raw(value)
		default:
			rest.FieldStart(key)
			rest.Raw(value)
			left++
		}
	}
	rest.ObjEnd()
	if left > 0 {
		putText(j, "mh_meta", string(rest.Bytes()))
	}
	if names := speakers(e); names != "" {
		putText(j, "mh_names", names)
	}
}

// speakers is the messages' names as JSON text, index to name: the server drops the field name.
func speakers(e *abi.MemoryEvent) string {
	var j jsontext.Encoder
	j.ObjStart()
	found := false
	for i := range e.Messages {
		if e.Messages[i].Name != "" {
			found = true
			putText(&j, sdk.Itoa(i), e.Messages[i].Name)
		}
	}
	j.ObjEnd()
	if !found {
		return ""
	}
	return string(j.Bytes())
}

// putMessages writes the messages with text as texts, never as parts: of a file or image part the server would open the path or the address.
func putMessages(j *jsontext.Encoder, e *abi.MemoryEvent) {
	at := chatTime(e.Timestamp)
	j.ArrStart()
	for i := range e.Messages {
		m := &e.Messages[i]
		if !hasText(m) {
			continue
		}
		j.ObjStart()
		putText(j, "role", string(m.Role))
		content := ""
		if m.Content != nil {
			content = *m.Content
		}
		putText(j, "content", content)
		putText(j, "chat_time", at)
		putText(j, "message_id", messageID(e.EventID, i))
		if m.Role == abi.RoleTool {
			putText(j, "tool_call_id", toolCallID(e, i))
		}
		if len(m.ToolCalls) > 0 && m.Role == abi.RoleAssistant {
			putToolCalls(j, m.ToolCalls)
		}
		j.ObjEnd()
	}
	j.ArrEnd()
}

// toolCallID is the id of the call that a tool message answers. The server refuses one without (422), so a missing one is named after its message.
func toolCallID(e *abi.MemoryEvent, i int) string {
	if id := e.Messages[i].ToolCallID; id != "" {
		return id
	}
	return messageID("mh_unnamed", i)
}

func putToolCalls(j *jsontext.Encoder, calls []abi.ToolCall) {
	j.FieldStart("tool_calls")
	j.ArrStart()
	for k := range calls {
		j.ObjStart()
		putText(j, "id", calls[k].ID)
		putText(j, "type", "function")
		j.FieldStart("function")
		j.ObjStart()
		putText(j, "name", calls[k].Name)
		putText(j, "arguments", calls[k].Arguments)
		j.ObjEnd()
		j.ObjEnd()
	}
	j.ArrEnd()
}

// chatTime is the event's time in UTC, which becomes part of the stored text. The host has checked it.
func chatTime(timestamp string) string {
	t, err := abi.ParseTime(timestamp)
	if err != nil {
		return timestamp
	}
	return utc(t) + "Z"
}

// utc is a time in UTC without its zone, as the server's filters want it: 2026-05-01T10:00:00.5. Written by hand: time's own Format is 10 KB of module.
func utc(t time.Time) string {
	t = t.UTC()
	text := padded(t.Year(), 4) + "-" + padded(int(t.Month()), 2) + "-" + padded(t.Day(), 2) + "T" +
		padded(t.Hour(), 2) + ":" + padded(t.Minute(), 2) + ":" + padded(t.Second(), 2)
	if nanos := t.Nanosecond(); nanos > 0 {
		text += strings.TrimRight("."+padded(nanos, 9), "0")
	}
	return text
}

func padded(n, width int) string {
	digits := sdk.Itoa(n)
	return "000000000"[:max(0, width-len(digits))] + digits
}

// readReceipt reads data, [{memory, memory_id, memory_type, cube_id}].
func (s *settings) readReceipt(a *answer, cube string, receipt *abi.WriteReceipt) error {
	if a.data == nil || a.data.Type() != jsontext.Array {
		return unusable(s.addRoute(), a, "data is no list of memories")
	}
	kept := false
	foreign := ""
	err := jsontext.DecodeBytes(a.data).Arr(func(d *jsontext.Decoder) error {
		var id, text, owner string
		err := d.Obj(func(d *jsontext.Decoder, key string) error {
			switch key {
			case "memory_id":
				return readText(d, &id)
			case "memory":
				return readText(d, &text)
			case "cube_id":
				return readText(d, &owner)
			}
			return d.Skip()
		})
		if owner != "" && owner != cube {
			foreign = owner
		}
		if id != "" {
			receipt.NativeIDs = append(receipt.NativeIDs, id)
		}
		kept = kept || windowText(text)
		return err
	})
	switch {
	case err != nil:
		return unusable(s.addRoute(), a, "data cannot be read: "+err.Error())
	case foreign != "":
		return breach(s.addRoute(), a, cube, foreign)
	}
	if kept && s.addMode == profileFine {
		receipt.Warnings = append(receipt.Warnings, "extraction_fallback: MemOS kept the raw text: its LLM failed")
	}
	receipt.StoredCount = sdk.Ptr(int64(len(receipt.NativeIDs)))
	return nil
}

// lookAgain looks for the event's memories by its id. In async the raw text may have been replaced already, so there nothing found says nothing.
//
// Errors: unavailable when the store does not answer; backend with reason not_stored when MemOS listed ids and has none of them.
func (s *settings) lookAgain(c *sdk.Call, cube, eventID string, sent *answer, receipt *abi.WriteReceipt) error {
	if !s.filters() {
		return nil
	}
	groups, _, err := s.list(c, listing{cube: cube, filter: filter{conds: []cond{is("mh_event_id", eventID)}}, page: 1, size: 1})
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "MemOS accepted the write, and could not be asked whether it kept it: " + e.Message
		return &e
	}
	found := total(groups)
	switch {
	case s.async():
		return nil
	case found == 0:
		e := failure(abi.CodeBackend, s.addRoute(), 200, "MemOS answered 200 with "+sdk.Itoa(len(receipt.NativeIDs))+" ids and stored none of them", sent.body).
			WithReason("not_stored").WithHint("with graph backend neo4j a turn with tools loses its whole batch in sync/fine and async: use neo4j-community, or add_mode sync/fast")
		e.NothingStored = true // the write had come to its end before the store was asked
		return e
	case found < int64(len(receipt.NativeIDs)):
		receipt.Warnings = append(receipt.Warnings, "partly_stored: MemOS listed "+sdk.Itoa(len(receipt.NativeIDs))+" memories and has "+sdk.Itoa(found))
	}
	receipt.StoredCount = &found
	for i := range groups {
		for j := range groups[i].items {
			if sync := groups[i].items[j].vectorSync; sync != "" && sync != "success" {
				receipt.Warnings = append(receipt.Warnings, "no_vector: MemOS stored the memory without a vector ("+sync+"): its embedder failed, and no search will find it")
				return nil
			}
		}
	}
	return nil
}

// trace begins the trace of an operation.
func (s *settings) trace(native string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: native}
}
