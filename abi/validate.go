package abi

import (
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/wirejson"
)

// MaxIDBytes is the maximum length of every id of the contract, in bytes.
const MaxIDBytes = 512

// Validate checks the two required ids, and namespace and agent if they are set.
func (x *MemoryScope) Validate() error { return asError(x.check()) }

// Validate checks ids, timestamp, messages and labels. A tool message without tool_call_id is accepted.
func (x *MemoryEvent) Validate() error { return asError(x.check()) }

// Validate checks that there is at least one event, and each event.
func (x *EventBatch) Validate() error {
	if len(x.Events) == 0 {
		return invalid("events", "want at least one event")
	}
	for i := range x.Events {
		if e := x.Events[i].check(); e != nil {
			return prependPath("events"+indexPath(i), e)
		}
	}
	return nil
}

// Validate checks the request, but not whether the provider can answer it. An empty query is accepted.
func (x *RetrieveRequest) Validate() error {
	if e := checkText("query", x.Query); e != nil {
		return e
	}
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if e := checkID("session_id", x.SessionID); e != nil {
		return e
	}
	if e := x.Budget.check(); e != nil {
		return prependPath("budget", e)
	}
	if e := checkLabels(x.Scenario, x.Context, x.Attribute); e != nil {
		return e
	}
	if e := checkRaws("filters", x.Filters); e != nil {
		return e
	}
	if v, ok := x.Filters["cross_context"]; ok && len(v) > 0 && string(v) != "true" && string(v) != "false" {
		return invalid("filters.cross_context", "want true or false")
	}
	return asError(checkOptionalTime("as_of", x.AsOf))
}

// Validate checks scope and budget, and that the raw answers are JSON.
func (x *FormatRequest) Validate() error {
	for i, c := range x.Result.Raw.Calls {
		if e := checkRaw("result.raw.calls"+indexPath(i)+".body", c.Body); e != nil {
			return e
		}
	}
	if e := checkRaws("result.raw.notes", x.Result.Raw.Notes); e != nil {
		return e
	}
	if e := x.Budget.check(); e != nil {
		return prependPath("budget", e)
	}
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	return nil
}

// Validate checks that no field is negative and min_tokens does not exceed max_tokens.
func (x *ContextBudget) Validate() error { return asError(x.check()) }

// Validate checks the scope if it is set.
func (x *AdapterMode) Validate() error {
	if e := checkText("reason", x.Reason); e != nil {
		return e
	}
	if x.Scope != nil {
		if e := x.Scope.check(); e != nil {
			return prependPath("scope", e)
		}
	}
	return nil
}

// Validate checks ids, timestamp and history.
func (x *MemoryFeedback) Validate() error {
	if e := checkID("feedback_id", x.FeedbackID); e != nil {
		return e
	}
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if e := checkID("session_id", x.SessionID); e != nil {
		return e
	}
	if e := checkTime("timestamp", x.Timestamp); e != nil {
		return e
	}
	if e := checkText("text", x.Text); e != nil {
		return e
	}
	for i := range x.History {
		if e := x.History[i].check(); e != nil {
			return prependPath("history"+indexPath(i), e)
		}
	}
	for i, id := range x.NativeIDs {
		if e := checkWord("native_ids"+indexPath(i), id); e != nil {
			return e
		}
	}
	return asError(checkOptionalID("event_id", x.EventID))
}

// Validate checks that the request has exactly one of native_id, event_id, and from with to.
func (x *ProvenanceRequest) Validate() error {
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if e := checkText("native_id", x.NativeID); e != nil {
		return e
	}
	if e := checkOptionalID("event_id", x.EventID); e != nil {
		return e
	}
	if givenOf(x.NativeID != "", x.EventID != "", x.From != "" || x.To != "") != 1 {
		return NewError(CodeInvalidArgument, "want exactly one of native_id, event_id, and from with to")
	}
	if e := checkRange(x.From, x.To); e != nil {
		return e
	}
	if x.Limit < 0 {
		return invalid("limit", "negative")
	}
	return asError(checkText("cursor", x.Cursor))
}

// Validate checks that the request has exactly one of event_ids, session_id, from with to, and native_ids.
func (x *ForgetRequest) Validate() error {
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if givenOf(len(x.EventIDs) > 0, x.SessionID != "", x.From != "" || x.To != "", len(x.NativeIDs) > 0) != 1 {
		return NewError(CodeInvalidArgument, "want exactly one of event_ids, session_id, from with to, and native_ids")
	}
	for i, id := range x.EventIDs {
		if e := checkID("event_ids"+indexPath(i), id); e != nil {
			return e
		}
	}
	if e := checkOptionalID("session_id", x.SessionID); e != nil {
		return e
	}
	if e := checkRange(x.From, x.To); e != nil {
		return e
	}
	for i, id := range x.NativeIDs {
		if e := checkWord("native_ids"+indexPath(i), id); e != nil {
			return e
		}
	}
	return asError(checkText("reason", x.Reason))
}

// givenOf counts how many of its arguments are true.
func givenOf(given ...bool) (n int) {
	for _, is := range given {
		if is {
			n++
		}
	}
	return n
}

// checkRange checks a time range: both ends or neither must be given.
func checkRange(first, last string) *Error {
	if first == "" && last == "" {
		return nil
	}
	from, err := ParseTime(first)
	if err != nil {
		return timeError("from", err)
	}
	to, err := ParseTime(last)
	if err != nil {
		return timeError("to", err)
	}
	if to.Before(from) {
		return invalid("to", "earlier than from")
	}
	return nil
}

// Validate checks scope, name and params. The provider checks whether it has such a query.
func (x *NativeQuery) Validate() error { return asError(checkNative(&x.Scope, x.Name, x.Params)) }

// Validate checks scope, name, params and reason, which may be empty.
func (x *NativeMutation) Validate() error {
	if e := checkNative(&x.Scope, x.Name, x.Params); e != nil {
		return e
	}
	return asError(checkText("reason", x.Reason))
}

// Validate checks scope and timeout.
func (x *ReadinessRequest) Validate() error {
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if x.TimeoutMS < 0 {
		return invalid("timeout_ms", "negative")
	}
	return nil
}

// Validate checks the scope.
func (x *InventoryRequest) Validate() error {
	if e := x.Scope.check(); e != nil {
		return prependPath("scope", e)
	}
	return nil
}

func (x *MemoryScope) check() *Error {
	if e := checkID("run_id", x.RunID); e != nil {
		return e
	}
	if e := checkID("persona_id", x.PersonaID); e != nil {
		return e
	}
	if e := checkOptionalID("backend_namespace", x.BackendNamespace); e != nil {
		return e
	}
	return checkOptionalID("agent_id", x.AgentID)
}

func (x *MemoryEvent) check() *Error {
	if e := checkID("event_id", x.EventID); e != nil {
		return e
	}
	if e := checkID("run_id", x.RunID); e != nil {
		return e
	}
	if e := checkID("user_id", x.UserID); e != nil {
		return e
	}
	if e := checkOptionalID("agent_id", x.AgentID); e != nil {
		return e
	}
	if e := checkID("session_id", x.SessionID); e != nil {
		return e
	}
	if e := checkID("turn_id", x.TurnID); e != nil {
		return e
	}
	if e := checkTime("timestamp", x.Timestamp); e != nil {
		return e
	}
	if len(x.Messages) == 0 {
		return invalid("messages", "want at least one message")
	}
	for i := range x.Messages {
		if e := x.Messages[i].check(); e != nil {
			return prependPath("messages"+indexPath(i), e)
		}
	}
	if e := checkLabels(x.Scenario, x.Context, x.Attribute); e != nil {
		return e
	}
	return checkRaws("metadata", x.Metadata)
}

func (x *Message) check() *Error {
	switch x.Role {
	case RoleUser, RoleAssistant, RoleSystem, RoleTool:
	case "":
		return invalid("role", "missing, want one of user, assistant, system, tool")
	default:
		return invalid("role", wirejson.Quote(shortenString(string(x.Role)))+" is not one of user, assistant, system, "+
			"tool")
	}
	if x.Content == nil && len(x.ToolCalls) == 0 {
		return invalid("content", "missing, and there are no tool_calls")
	}
	if x.Content != nil {
		if e := checkText("content", *x.Content); e != nil {
			return e
		}
	}
	if e := checkText("name", x.Name); e != nil {
		return e
	}
	if e := checkText("tool_call_id", x.ToolCallID); e != nil {
		return e
	}
	for i := range x.ToolCalls {
		if e := x.ToolCalls[i].check(); e != nil {
			return prependPath("tool_calls"+indexPath(i), e)
		}
	}
	return nil
}

func (x *ToolCall) check() *Error {
	if e := checkWord("id", x.ID); e != nil {
		return e
	}
	if e := checkWord("name", x.Name); e != nil {
		return e
	}
	return checkText("arguments", x.Arguments)
}

func (x *ContextBudget) check() *Error {
	for _, f := range []struct {
		name  string
		value *int64
	}{{"min_tokens", x.MinTokens}, {"max_tokens", x.MaxTokens}, {"max_items", x.MaxItems}} {
		if f.value != nil && *f.value < 0 {
			return invalid(f.name, "negative")
		}
	}
	if x.MinTokens != nil && x.MaxTokens != nil && *x.MinTokens > *x.MaxTokens {
		return invalid("min_tokens", "more than max_tokens")
	}
	return nil
}

func checkNative(scope *MemoryScope, name string, params map[string]Raw) *Error {
	if e := scope.check(); e != nil {
		return prependPath("scope", e)
	}
	if e := checkWord("name", name); e != nil {
		return e
	}
	return checkRaws("params", params)
}

func checkLabels(scenario, context, attribute string) *Error {
	if e := checkText("scenario", scenario); e != nil {
		return e
	}
	if e := checkText("context", context); e != nil {
		return e
	}
	return checkText("attribute", attribute)
}

func checkID(path, id string) *Error {
	if id == "" {
		return invalid(path, "missing or empty")
	}
	return checkOptionalID(path, id)
}

func checkOptionalID(path, id string) *Error {
	if len(id) > MaxIDBytes {
		return invalid(path, itoa(len(id))+" bytes, want at most "+itoa(MaxIDBytes))
	}
	if strings.IndexByte(id, 0) >= 0 {
		return invalid(path, "contains U+0000")
	}
	return checkText(path, id)
}

// checkWord is checkText for strings that must not be empty.
func checkWord(path, s string) *Error {
	if s == "" {
		return invalid(path, "missing or empty")
	}
	return checkText(path, s)
}

func checkText(path, s string) *Error {
	if !utf8.ValidString(s) {
		return invalid(path, "not valid UTF-8")
	}
	return nil
}

func checkTime(path, s string) *Error {
	if s == "" {
		return invalid(path, "missing or empty")
	}
	if _, err := ParseTime(s); err != nil {
		return timeError(path, err)
	}
	return nil
}

func checkOptionalTime(path, s string) *Error {
	if s == "" {
		return nil
	}
	return checkTime(path, s)
}

func checkRaw(path string, v Raw) *Error {
	if len(v) == 0 {
		return nil
	}
	if what := notJSON(v, MaxValueDepth); what != "" {
		return invalid(path, what)
	}
	return nil
}

func checkRaws(path string, m map[string]Raw) *Error {
	bad := false
	for key, v := range m {
		bad = bad || !utf8.ValidString(key) || checkRaw("", v) != nil
	}
	if !bad {
		return nil
	}
	for _, key := range SortedKeys(m) { // sorted, so that the result does not depend on the map's order
		where := joinPath(path, keyPath(key))
		if e := checkText(where, key); e != nil {
			return e
		}
		if e := checkRaw(where, m[key]); e != nil {
			return e
		}
	}
	return nil
}

func invalid(path, problem string) *Error { return NewError(CodeInvalidArgument, path+": "+problem) }

func timeError(path string, err error) *Error { return invalid(path, AsError(err).Message) }

// prependPath prepends a path to the path in e's message.
func prependPath(path string, e *Error) *Error {
	e.Message = joinPath(path, e.Message)
	return e
}

// asError converts e to an error, nil to nil: a nil *Error in an error interface would not be nil.
func asError(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

func shortenString(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
