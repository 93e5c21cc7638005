package abi

// MemoryScope identifies one memory. Scopes share nothing, even if their ids are similar.
type MemoryScope struct {
	RunID     string `json:"run_id"`
	PersonaID string `json:"persona_id"`
	// BackendNamespace separates installations that share one backend. Empty means the configured namespace; any other
	// value is rejected.
	BackendNamespace string `json:"backend_namespace,omitempty"`
	// AgentID is part of the scope only if memory.agent_scoped is on; otherwise a request with an agent_id is
	// invalid_argument.
	AgentID string `json:"agent_id,omitempty"`
}

// Role says who speaks in a message.
type Role string

// The roles of the contract.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleTool      Role = "tool"
)

// Message is one utterance of a turn.
type Message struct {
	Role Role `json:"role"`
	// Content is the text, kept byte for byte. Nil (null or absent in JSON) if the message only calls tools.
	Content    *string    `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is one call that an assistant message makes.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text of the arguments as the model wrote it, unparsed.
	Arguments string `json:"arguments"`
}

// MemoryEvent is one turn of a conversation, the unit that every provider records.
type MemoryEvent struct {
	// EventID identifies the turn within its scope. The same id with the same content is delivered once; with different
	// content it is a conflict.
	EventID   string `json:"event_id"`
	RunID     string `json:"run_id"`
	UserID    string `json:"user_id"`
	AgentID   string `json:"agent_id,omitempty"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	// Timestamp is RFC 3339 with a zone. It is compared in UTC and stored unchanged.
	Timestamp string         `json:"timestamp"`
	Messages  []Message      `json:"messages"`
	Scenario  string         `json:"scenario,omitempty"`
	Context   string         `json:"context,omitempty"`
	Attribute string         `json:"attribute,omitempty"`
	Metadata  map[string]Raw `json:"metadata,omitempty"`
}

// ContextBudget bounds what a retrieval may put into a prompt. A nil field means no limit.
type ContextBudget struct {
	// MinTokens is a target. Results are never padded to reach it; the trace reports a shortfall.
	MinTokens *int64 `json:"min_tokens,omitempty"`
	// MaxTokens bounds the formatted context, counted by the configured tokenizer.
	MaxTokens *int64 `json:"max_tokens,omitempty"`
	// MaxItems bounds the number of the backend's items.
	MaxItems *int64 `json:"max_items,omitempty"`
}

// RetrieveRequest asks for the memory that helps with Query.
type RetrieveRequest struct {
	Query     string        `json:"query"`
	Scope     MemoryScope   `json:"scope"`
	SessionID string        `json:"session_id"`
	Budget    ContextBudget `json:"budget,omitempty"`
	Scenario  string        `json:"scenario,omitempty"`
	Context   string        `json:"context,omitempty"`
	Attribute string        `json:"attribute,omitempty"`
	// Filters are further conditions by name. With cross_context: true, Context is deliberately not used as a filter.
	Filters map[string]Raw `json:"filters,omitempty"`
	// AsOf asks for memory as it was at that time, RFC 3339. trace.as_of_mode says whether the provider could do that.
	AsOf string `json:"as_of,omitempty"`
}

// RetrieveResult is what a provider found, in its own format, and the text that an agent puts into its prompt.
type RetrieveResult struct {
	Raw RawResult `json:"raw"`
	// FormattedContext is one memory-context element, or the empty string when there is no memory.
	FormattedContext string     `json:"formatted_context"`
	Evidence         []Evidence `json:"evidence"`
	Trace            *Trace     `json:"trace,omitempty"`
}

// RawResult holds the backend's answers unchanged.
type RawResult struct {
	Calls []RawCall `json:"calls"`
	// Notes are the plugin's additions to the answers.
	Notes map[string]Raw `json:"notes,omitempty"`
}

// RawCall is the answer to one native call.
type RawCall struct {
	Route string `json:"route"`
	// Body equals the JSON value that the host saw from the backend.
	Body Raw `json:"body"`
}

// Evidence locates one item in RetrieveResult.Raw, for labels and measurement. Fields that the backend does not report
// are absent.
type Evidence struct {
	// Pointer is an RFC 6901 JSON Pointer into RetrieveResult.Raw.
	Pointer string `json:"pointer"`
	// Rank counts from 1 in the backend's order.
	Rank  int64  `json:"rank"`
	Group string `json:"group,omitempty"`
	// Span is the item's position if it is part of a longer text.
	Span       *Span    `json:"span,omitempty"`
	NativeID   string   `json:"native_id,omitempty"`
	NativeType string   `json:"native_type,omitempty"`
	Text       string   `json:"text,omitempty"`
	Score      *float64 `json:"score,omitempty"`
	CreatedAt  string   `json:"created_at,omitempty"`
	UpdatedAt  string   `json:"updated_at,omitempty"`
	ValidAt    string   `json:"valid_at,omitempty"`
	InvalidAt  string   `json:"invalid_at,omitempty"`
	ExpiredAt  string   `json:"expired_at,omitempty"`
	Superseded *bool    `json:"superseded,omitempty"`
	// TimeBasis says what the timestamps mean.
	TimeBasis      TimeBasis `json:"time_basis,omitempty"`
	SourceEventIDs []string  `json:"source_event_ids,omitempty"`
	// Shown is the position of the item's text in the formatted context of the same answer. Nil: the item is not shown.
	Shown *Shown `json:"shown,omitempty"`
}

// Shown is a half-open range of bytes of formatted_context: the item's own words, without the list mark, label or date
// before them. Whole is false if the text was cut.
//
//	formatted_context  <memory-context backend="mem0" scope="r/p">\n- The cat is called Zorvex.\n</memory-context>
//	shown              {"start": 46, "end": 71, "whole": true}
type Shown struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Whole bool  `json:"whole"`
}

// Span is a half-open range of bytes in the text to which an Evidence's pointer leads.
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// TimeBasis says whether a time is that of the event, that of its ingestion, or derived by the backend.
type TimeBasis string

// The time bases of the contract.
const (
	TimeEvent   TimeBasis = "event"
	TimeIngest  TimeBasis = "ingest"
	TimeDerived TimeBasis = "derived"
)

// FormatRequest asks to format an earlier result again, for example for another budget.
type FormatRequest struct {
	Result RetrieveResult `json:"result"`
	Budget ContextBudget  `json:"budget,omitempty"`
	Scope  MemoryScope    `json:"scope"`
}

// FormatResult is the formatted context with its size.
type FormatResult struct {
	FormattedContext string `json:"formatted_context"`
	// TokenCount is counted by the configured tokenizer.
	TokenCount int64 `json:"token_count"`
	Truncated  bool  `json:"truncated"`
	// Evidence is the request's evidence in the same order, with Shown set for this text. Modules older than this field
	// leave it out.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Profile decides how a provider calls its backend.
type Profile string

// The profiles. ProfileSourceDesign makes exactly the native calls that the published design of the adapters names.
// ProfileBest, the default, departs from them where the provider's page gives a measured reason.
const (
	ProfileSourceDesign Profile = "source-design"
	ProfileBest         Profile = "best"
)

// Frame decides how much of the formatted context may be something other than the memory's own words.
type Frame string

// The frames. FrameFull is the default.
const (
	FrameFull    Frame = "full"
	FrameCompact Frame = "compact"
	FrameMinimal Frame = "minimal"
)
