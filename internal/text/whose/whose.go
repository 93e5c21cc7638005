// Package whose handles the two names for the person whose memory it is. An event says user_id, a scope persona_id;
// people use either in both.
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

// Rename changes a request to the contract's names: user_id in events and conversations, persona_id in scopes. It looks
// at the object itself, its scope and its events. hint says what was renamed; if nothing was, it is "" and renamed is
// body.
//
//	{"query": "tea?", "scope": {"run_id": "r", "user_id": "ann"}}
//	{"query": "tea?", "scope": {"run_id": "r", "persona_id": "ann"}}, "scope.user_id was read as scope.persona_id"
//
// If an object has both names, nothing is renamed, because it is unclear which one is right.
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

// isEvent reports whether an object is an event or a conversation, by members that only these have.
func isEvent(object map[string]json.RawMessage) bool {
	return object["messages"] != nil || object["event_id"] != nil
}

// isScope reports whether a request is nothing but a scope.
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

// members returns the members of an object; nil for anything else.
func members(raw []byte) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// text encodes a value whose parts are already JSON.
func text(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // keep strings unchanged
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
