package abi

// MemoryScope names whose memory is meant. Scopes share nothing, whatever their ids look like.
type MemoryScope struct {
	RunID     string `json:"run_id"`
	PersonaID string `json:"persona_id"`
	// BackendNamespace separates installations that share one backend. Empty means the namespace of the configuration;
	// another one is refused.
	BackendNamespace string `json:"backend_namespace,omitempty"`
	// AgentID is part of the scope only when memory.agent_scoped is on; otherwise a request that names one here is
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
	// Content is the text, kept byte for byte. Nil (JSON null or absent) where the message only calls tools.
	Content    *string    `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is one call that an assistant message makes.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text of the arguments as the model wrote it, not parsed.
	Arguments string `json:"arguments"`
}

// MemoryEvent is a turn of conversation: the unit that every provider records.
type MemoryEvent struct {
	// EventID identifies the turn within its scope: the same id with the same content is delivered once, with other
	// content it is a conflict.
	EventID   string `json:"event_id"`
	RunID     string `json:"run_id"`
	UserID    string `json:"user_id"`
	AgentID   string `json:"agent_id,omitempty"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	// Timestamp is RFC 3339 with a zone, compared in UTC and kept as given.
	Timestamp string         `json:"timestamp"`
	Messages  []Message      `json:"messages"`
	Scenario  string         `json:"scenario,omitempty"`
	Context   string         `json:"context,omitempty"`
	Attribute string         `json:"attribute,omitempty"`
	Metadata  map[string]Raw `json:"metadata,omitempty"`
}

// ContextBudget bounds what a retrieval may put into a prompt. A nil field means no limit.
type ContextBudget struct {
	// MinTokens is wished for, never padded to: a shortfall is reported in the trace.
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
	// Filters are further conditions by name. cross_context: true asks that Context is deliberately not used as a
	// filter.
	Filters map[string]Raw `json:"filters,omitempty"`
	// AsOf is RFC 3339: answer as memory stood then. trace.as_of_mode says whether the provider could.
	AsOf string `json:"as_of,omitempty"`
}

// RetrieveResult is what a provider found, in its own shape, with the string an agent puts into its prompt.
type RetrieveResult struct {
	Raw RawResult `json:"raw"`
	// FormattedContext is one memory-context element, or the empty string when there is no memory.
	FormattedContext string     `json:"formatted_context"`
	Evidence         []Evidence `json:"evidence"`
	Trace            *Trace     `json:"trace,omitempty"`
}

// RawResult keeps the backend's answers as they came.
type RawResult struct {
	Calls []RawCall `json:"calls"`
	// Notes is what the plugin adds to them.
	Notes map[string]Raw `json:"notes,omitempty"`
}

// RawCall is the answer to one native call.
type RawCall struct {
	Route string `json:"route"`
	// Body equals the JSON value that the host saw from the backend.
	Body Raw `json:"body"`
}

// Evidence points at one item in RetrieveResult.Raw, for labels and measurement. What the backend does not report is
// absent.
type Evidence struct {
	// Pointer is an RFC 6901 JSON Pointer into RetrieveResult.Raw.
	Pointer string `json:"pointer"`
	// Rank counts from 1 in the backend's order.
	Rank  int64  `json:"rank"`
	Group string `json:"group,omitempty"`
	// Span is where in prose the item stands.
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
	// TimeBasis says what the times mean.
	TimeBasis      TimeBasis `json:"time_basis,omitempty"`
	SourceEventIDs []string  `json:"source_event_ids,omitempty"`
	// Shown is where the item's text is in the formatted context that comes with it. Nil: the item is not shown there.
	Shown *Shown `json:"shown,omitempty"`
}

// Shown is a half-open range of bytes of formatted_context: the item's own words, without the list mark, label or date
// before them. Whole is false where the text was cut.
//
//	formatted_context  <memory-context backend="mem0" scope="r/p">\n- The cat is called Zorvex.\n</memory-context>
//	shown              {"start": 46, "end": 71, "whole": true}
type Shown struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Whole bool  `json:"whole"`
}

// Span is a half-open range of bytes in the text at an Evidence's pointer.
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// TimeBasis says whether a time is of the event, of its ingestion, or derived by the backend.
type TimeBasis string

// The time bases of the contract.
const (
	TimeEvent   TimeBasis = "event"
	TimeIngest  TimeBasis = "ingest"
	TimeDerived TimeBasis = "derived"
)

// FormatRequest asks to format an earlier result again, perhaps for another budget.
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
	// Evidence is the request's, in its order, with Shown for this text. A module from before this field leaves it out.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Profile is what a provider holds to when it asks its backend.
type Profile string

// The profiles. ProfileSourceDesign makes exactly the native calls that the published design of the adapters names.
// ProfileBest, the default, departs from them where the provider's page gives a measured reason.
const (
	ProfileSourceDesign Profile = "source-design"
	ProfileBest         Profile = "best"
)

// Frame is how much of the formatted context may be other than the memory's own words.
type Frame string

// The frames. FrameFull is what a provider writes when nothing is configured.
const (
	FrameFull    Frame = "full"
	FrameCompact Frame = "compact"
	FrameMinimal Frame = "minimal"
)
