package mcpdoor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
)

// The tools. Some are in the table only with Options.Allow.
const (
	ToolSearch  = "memory_search"
	ToolAdd     = "memory_add"
	ToolStatus  = "memory_status"
	ToolReset   = "memory_reset"
	ToolForget  = "memory_forget"
	ToolSetMode = "memory_set_mode"
)

// tool is one line of the table.
type tool struct {
	name, title, about string
	// operation is the contract's name for the tool's operation.
	operation string
	// schema describes the arguments, whose names are fields; required lists the required ones.
	schema           string
	fields, required []string
	// answer is the schema of the structured result of a successful call.
	answer string
	// Hints to clients. All tools are limited to one memory (a closed world).
	readOnly, destructive, idempotent bool
	run                               func(ctx context.Context, a arguments) (*mcp.CallToolResult, error)
}

// table lists the tools of this door's clients.
func (d *Door) table() []tool {
	tools := []tool{
		{name: ToolSearch, operation: abi.OpRetrieve, title: "Search memory", readOnly: true, idempotent: true,
			about: "Looks into the user's long-term memory: what was said in earlier conversations. Ask in plain words. The " +
				"answer is one memory-context element, or a sentence that says that there is nothing.",
			fields: []string{"query", "max_items"}, required: []string{"query"},
			schema: `{"type":"object","additionalProperties":false,"required":["query"],"properties":{
				"query":{"type":"string","minLength":1,"description":"What to look for, in plain words"},
				"max_items":{"type":"integer","minimum":1,"description":"The most items wanted"}}}`,
			answer: `{"type":"object","required":["found","context","items","items_left_out"],"properties":{
				"found":{"type":"boolean"},"context":{"type":"string","description":"One memory-context element, or empty"},
				"items":{"type":"array","description":"Where the context comes from, best first","items":{"type":"object","required":["rank","event_ids"],"properties":{
					"rank":{"type":"integer"},"score":{"type":"number"},"event_ids":{"type":"array","items":{"type":"string"}},
					"native_id":{"type":"string"},"native_type":{"type":"string"},"created_at":{"type":"string"}}}},
				"items_left_out":{"type":"integer","description":"Items that are not listed for want of room"}}}`,
			run: d.search},
		{name: ToolAdd, operation: abi.OpRecordEvent, title: "Add to memory",
			about: "Records a turn of conversation in the user's long-term memory. The answer says what became of it: queued " +
				"is not yet committed. " +
				"A call that failed may be repeated with the event_id that its error names: then it is recorded once.",
			fields: []string{"text", "reply", "event_id"}, required: []string{"text"},
			schema: `{"type":"object","additionalProperties":false,"required":["text"],"properties":{
				"text":{"type":"string","minLength":1,"description":"What the user said, in the user's words"},
				"reply":{"type":"string","minLength":1,"description":"What the assistant answered, where that belongs to it"},
				"event_id":{"type":"string","description":"Only to repeat a call that failed: the event_id that its error named"}}}`,
			answer: `{"type":"object","required":["status","event_id","duplicate","recorded","warnings","message"],"properties":{
				"status":{"type":"string"},"event_id":{"type":"string"},"duplicate":{"type":"boolean"},"recorded":{"type":"boolean"},
				"warnings":{"type":"array","items":{"type":"string"}},"message":{"type":"string","description":"The same in words"}}}`,
			run: d.add},
		{name: ToolStatus, operation: abi.OpHealth, title: "Memory status", readOnly: true, idempotent: true,
			about: "Tells how the memory is: which provider serves, whether it is healthy and read-only, and whether " +
				"everything recorded can be found by now.",
			schema: `{"type":"object","additionalProperties":false}`,
			answer: `{"type":"object","required":["provider","health","read_only","readiness","pending","run_id","persona_id","session_id","warnings","message"],"properties":{
				"provider":{"type":"string","description":"Empty where it has not answered in time"},"health":{"type":"string","description":"ok, degraded, unavailable, or unknown where it has not answered in time"},
				"read_only":{"type":"boolean"},"readiness":{"type":"string"},"pending":{"type":"integer"},"run_id":{"type":"string"},"persona_id":{"type":"string"},"session_id":{"type":"string"},
				"warnings":{"type":"array","items":{"type":"string"}},"message":{"type":"string","description":"The same in words"}}}`,
			run: d.status},
	}
	if slices.Contains(d.options.Allow, AllowReset) {
		tools = append(tools, tool{name: ToolReset, operation: abi.OpResetScope, title: "Erase memory", destructive: true,
			idempotent: true,
			about: "Erases everything that this memory holds of the user, for good. Only when the user has asked for " +
				"exactly that.",
			schema: `{"type":"object","additionalProperties":false}`,
			answer: `{"type":"object","required":["status","remains","warnings","message"],"properties":{
				"status":{"type":"string"},"remains":{"type":"array","items":{"type":"string"}},"warnings":{"type":"array","items":{"type":"string"}},"message":{"type":"string","description":"The same in words"}}}`,
			run: d.reset})
	}
	if slices.Contains(d.options.Allow, AllowForget) {
		tools = append(tools, tool{name: ToolForget, operation: abi.OpForget, title: "Forget", destructive: true,
			idempotent: true,
			about: "Removes some of what the memory holds of the user, for good: the turns with these event_ids, the items with " +
				"these native_ids (" + ToolSearch + " gives both), a session, or a range of time. Name exactly one of them. " +
				"Only when the user has asked for it.",
			fields: []string{"event_ids", "native_ids", "session_id", "from", "to", "reason"},
			schema: `{"type":"object","additionalProperties":false,"properties":{
				"event_ids":{"type":"array","minItems":1,"items":{"type":"string"},"description":"Turns, as event_ids in a search"},
				"native_ids":{"type":"array","minItems":1,"items":{"type":"string"},"description":"Single items, as native_id in a search"},
				"session_id":{"type":"string","description":"All turns of a session up to now"},
				"from":{"type":"string","description":"With to: turns of this time, both ends included, RFC 3339"},
				"to":{"type":"string","description":"See from"},
				"reason":{"type":"string","description":"Why, for the provider's records"}}}`,
			answer: `{"type":"object","required":["status","removed","may_remain","message"],"properties":{
				"status":{"type":"string","description":"done, in_progress (ask again), partial or unsupported"},
				"removed":{"type":"object","description":"Ids by kind","additionalProperties":{"type":"array","items":{"type":"string"}}},
				"may_remain":{"type":"array","items":{"type":"string"}},"message":{"type":"string","description":"The same in words"}}}`,
			run: d.forget})
	}
	if slices.Contains(d.options.Allow, AllowSetMode) {
		tools = append(tools, tool{name: ToolSetMode, operation: abi.OpSetMode, title: "Set the read-only mode",
			idempotent: true,
			about: "Makes the memory of this user read-only, or lets it be written again. While it is read-only nothing is " +
				"recorded and nothing erased.",
			fields: []string{"read_only", "reason"}, required: []string{"read_only"},
			schema: `{"type":"object","additionalProperties":false,"required":["read_only"],"properties":{
				"read_only":{"type":"boolean"},"reason":{"type":"string","description":"Why, for whoever wonders later"}}}`,
			answer: `{"type":"object","required":["read_only","since","in_flight","message"],"properties":{
				"read_only":{"type":"boolean"},"since":{"type":"string"},"in_flight":{"type":"integer"},"message":{"type":"string"}}}`,
			run: d.setMode})
	}
	return tools
}

// definition is the tool as a client sees it.
func (t tool) definition(s state) *mcp.Tool {
	about, closed, destructive := t.about, false, t.destructive
	hints := &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: t.readOnly, IdempotentHint: t.idempotent,
		DestructiveHint: &destructive, OpenWorldHint: &closed}
	switch {
	case t.name == ToolSearch && s.sideEffects:
		// The provider reported it in trace.read_side_effects.
		hints.ReadOnlyHint, hints.IdempotentHint = false, false
	case s.readOnly && t.name == ToolAdd:
		about = "READ-ONLY AT PRESENT: nothing is recorded, a call answers skipped_read_only. " + about
	case s.skipped && t.name == ToolAdd:
		about = "READ-ONLY WHEN LAST TRIED: the call before this list was answered skipped_read_only. " + about
	case s.keepsNothing && t.name == ToolAdd:
		about = "KEEPS NOTHING AT PRESENT: what is recorded is lost, and the user should know. " + about
	case s.readOnly && (t.name == ToolReset || t.name == ToolForget):
		about = "READ-ONLY AT PRESENT: nothing is erased, a call is refused. " + about
	}
	return &mcp.Tool{Name: t.name, Title: t.title, Description: about, InputSchema: json.RawMessage(t.schema),
		OutputSchema: orError(t.answer), Annotations: hints}
}

// orError extends an answer's schema by an error's fields, because some clients apply it to an error's structured
// content, too.
func orError(answer string) json.RawMessage {
	var schema map[string]any
	if err := json.Unmarshal([]byte(answer), &schema); err != nil {
		panic(err) // it is a constant of this package
	}
	schema["properties"].(map[string]any)["error"] = map[string]any{"type": "object",
		"description": "Instead of an answer: code, message, reason, retryable and hint of what went wrong."}
	schema["anyOf"] = []any{map[string]any{"required": schema["required"]}, map[string]any{"required": []any{"error"}}}
	delete(schema, "required")
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return text
}
