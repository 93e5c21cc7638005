// Package whose reads the two names of one thing: whose memory is meant. An event says user_id, a scope persona_id;
// people write either in both.
package whose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The two names.
const (
	User    = "user_id"
	Persona = "persona_id"
)

// Rename gives a request in the names that the contract has: user_id in events and conversations, persona_id in scopes.
// It reads the object itself, its scope and its events. hint says what was renamed, and is "" where nothing
// was; body comes back as it is then.
//
//	{"query": "tea?", "scope": {"run_id": "r", "user_id": "ann"}}
//	{"query": "tea?", "scope": {"run_id": "r", "persona_id": "ann"}}, "scope.user_id was read as scope.persona_id"
//
// Where an object says both, nothing is renamed: which one is meant is for its writer to say.
func Rename(body []byte) (renamed []byte, hint string) {
	if !bytes.Contains(body, []byte(User)) && !bytes.Contains(body, []byte(Persona)) {
		return body, ""
	}
	top := members(body)
	if top == nil {
		return body, ""
	}
	var hints []string
	rename := func(object map[string]json.RawMessage, at, from, to string) bool {
		value, there := object[from]
		_, both := object[to]
		if !there || both {
			return false
		}
		delete(object, from)
		object[to] = value
		hints = append(hints, fmt.Sprintf("%s%s was read as %s%s", at, from, at, to))
		return true
	}
	if isEvent(top) {
		rename(top, "", Persona, User)
	} else if isScope(top) {
		rename(top, "", User, Persona)
	}
	if scope := members(top["scope"]); scope != nil && rename(scope, "scope.", User, Persona) {
		top["scope"] = text(scope)
	}
	var events []json.RawMessage
	if json.Unmarshal(top["events"], &events) == nil && len(events) > 0 {
		for i := range events {
			if event := members(events[i]); event != nil &&
				rename(event, fmt.Sprintf("events[%d].", i), Persona, User) {
				events[i] = text(event)
			}
		}
		top["events"] = text(events)
	}
	if len(hints) == 0 {
		return body, ""
	}
	const most = 3
	if len(hints) > most {
		hints = append(hints[:most], "and so on")
	}
	return text(top), strings.Join(hints, ", ")
}

// isEvent tells an event, or a conversation, by what only they have.
func isEvent(object map[string]json.RawMessage) bool {
	return object["messages"] != nil || object["event_id"] != nil
}

// isScope reports a request that is only a scope.
func isScope(object map[string]json.RawMessage) bool {
	for key := range object {
		switch key {
		case "run_id", User, Persona, "backend_namespace", "agent_id":
		default:
			return false
		}
	}
	return true
}

// members are those of an object, nil for anything else.
func members(raw []byte) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// text writes a value whose parts are JSON already.
func text(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // strings stay byte for byte
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
