package abi

// MemoryScope names whose memory is meant. Scopes share nothing, whatever their ids look like.
type MemoryScope struct {
	RunID     string `json:"run_id"`
	PersonaID string `json:"persona_id"`
	// BackendNamespace separates installations that share one backend. Empty means the namespace of the configuration; another one is refused.
	BackendNamespace string `json:"backend_namespace,omitempty"`
	// AgentID is part of the scope only when memory.agent_scoped is on; otherwise a request that names one here is invalid_argument.
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
	// EventID identifies the turn within its scope: the same id with the same content is delivered once, with other content it is a conflict.
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
	// Filters are further conditions by name. cross_context: true asks that Context is deliberately not used as a filter.
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

// Evidence points at one item in RetrieveResult.Raw, for labels and measurement. What the backend does not tell is absent.
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

// Shown is a half-open range of bytes of formatted_context: the item's own words, without the list mark, label or date before
// them. Whole is false where the text was cut.
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

// AdapterMode switches the read-only wall.
type AdapterMode struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	// Scope limits the mode to one scope. Nil means the whole slot.
	Scope *MemoryScope `json:"scope,omitempty"`
}

// ModeReceipt tells the mode that holds now.
type ModeReceipt struct {
	ReadOnly   bool         `json:"read_only"`
	Scope      *MemoryScope `json:"scope,omitempty"`
	Since      string       `json:"since"`
	EnforcedBy string       `json:"enforced_by"`
	// InFlight counts writes that were still under way when the mode was set.
	InFlight int64 `json:"in_flight"`
	// NotReady lists scopes whose writes are not yet seen by the backend.
	NotReady []MemoryScope `json:"not_ready"`
}

// WriteStatus says what became of a recorded event.
type WriteStatus string

// The write statuses of the contract.
const (
	StatusCommitted       WriteStatus = "committed"
	StatusQueued          WriteStatus = "queued"
	StatusPending         WriteStatus = "pending"
	StatusPartial         WriteStatus = "partial"
	StatusUncertain       WriteStatus = "uncertain"
	StatusNotRetained     WriteStatus = "not_retained"
	StatusSkippedReadOnly WriteStatus = "skipped_read_only"
)

// NativeIDsKind says whether native ids in a receipt stay valid.
type NativeIDsKind string

// The kinds of native ids.
const (
	NativeIDsFinal     NativeIDsKind = "final"
	NativeIDsTransient NativeIDsKind = "transient"
	NativeIDsNone      NativeIDsKind = "none"
)

// WriteReceipt answers a recorded event.
type WriteReceipt struct {
	EventID       string        `json:"event_id"`
	Status        WriteStatus   `json:"status"`
	NativeIDs     []string      `json:"native_ids"`
	NativeIDsKind NativeIDsKind `json:"native_ids_kind"`
	// StoredCount is how many items the backend says it stored; nil when it does not say.
	StoredCount *int64 `json:"stored_count,omitempty"`
	// Markers are opaque: the provider gets them back in readiness and find_event.
	Markers   []string `json:"markers"`
	Duplicate bool     `json:"duplicate"`
	// Warnings start with a stable code and a colon.
	Warnings  []string `json:"warnings"`
	LatencyMS float64  `json:"latency_ms"`
	// RetryAfterMS is the host's, of an uncertain write: after so many ms recording the event again can settle it.
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty" codec:"host"`
	Trace        *Trace `json:"trace,omitempty"`
}

// EventBatch is several events for one call. They may be of several scopes; order within a scope is kept.
type EventBatch struct {
	Events []MemoryEvent `json:"events"`
}

// BatchReceipts answers an EventBatch, item by item in its order.
type BatchReceipts struct {
	Receipts []ReceiptOrError `json:"receipts"`
}

// ReceiptOrError is a receipt, or an event id with what went wrong: exactly one of Receipt and Error is set.
// On the wire a receipt stands in the list itself, an error as {"event_id": ..., "error": {...}}.
type ReceiptOrError struct {
	Receipt *WriteReceipt
	EventID string
	Error   *Error
}

// SetupReceipt answers setup_scope.
type SetupReceipt struct {
	Ready bool `json:"ready"`
	// Existed tells whether the backend already knew the scope; nil when it does not say.
	Existed *bool `json:"existed,omitempty"`
	// NativeScope is how the backend addresses the scope: name of the concept (workspace, group_id, ...) to id.
	NativeScope map[string]string `json:"native_scope"`
	Warnings    []string          `json:"warnings"`
	Trace       *Trace            `json:"trace,omitempty"`
}

// ResetStatus says how far a reset came.
type ResetStatus string

// The reset statuses of the contract.
const (
	ResetDone       ResetStatus = "done"
	ResetInProgress ResetStatus = "in_progress"
	ResetIncomplete ResetStatus = "incomplete"
	ResetFailed     ResetStatus = "failed"
)

// ResetReceipt answers reset_scope.
type ResetReceipt struct {
	Status ResetStatus `json:"status"`
	// Removed counts removed items by native type; a nil count means that the backend does not say.
	Removed map[string]*int64 `json:"removed"`
	// Remains says what is left and why.
	Remains       []string `json:"remains"`
	OldGeneration int64    `json:"old_generation"`
	NewGeneration int64    `json:"new_generation"`
	Warnings      []string `json:"warnings"`
	Trace         *Trace   `json:"trace,omitempty"`
}

// ForgetRequest asks to remove some of what a scope's memory holds. Exactly one of EventIDs, SessionID, From with To, and
// NativeIDs says what.
//
//	{"scope": {"run_id": "r", "persona_id": "p"}, "event_ids": ["e-17"], "reason": "asked by the user"}
type ForgetRequest struct {
	Scope     MemoryScope `json:"scope"`
	EventIDs  []string    `json:"event_ids,omitempty"`
	SessionID string      `json:"session_id,omitempty"`
	// From and To are RFC 3339: events with From <= timestamp <= To.
	From      string   `json:"from,omitempty"`
	To        string   `json:"to,omitempty"`
	NativeIDs []string `json:"native_ids,omitempty"`
	Reason    string   `json:"reason"`
}

// ForgetStatus says how far a forgetting came.
type ForgetStatus string

// The statuses of a forgetting.
const (
	// ForgetDone: nothing that was asked for is left, except what DerivedMayRemain names.
	ForgetDone ForgetStatus = "done"
	// ForgetInProgress: the host calls again with the same request.
	ForgetInProgress ForgetStatus = "in_progress"
	// ForgetPartial: some of what was asked for cannot be removed.
	ForgetPartial ForgetStatus = "partial"
	// ForgetUnsupported: the backend has no way to remove by what the request names. Nothing was removed.
	ForgetUnsupported ForgetStatus = "unsupported"
)

// ForgetReceipt answers a ForgetRequest.
//
//	{"status": "done", "removed": {"memory": ["m1", "m2"]}, "derived_may_remain": ["summary: the backend does not rebuild it"]}
type ForgetReceipt struct {
	Status ForgetStatus `json:"status"`
	// Removed lists native ids by native type.
	Removed map[string][]string `json:"removed"`
	// DerivedMayRemain says what the backend made of the removed items and may still hold, and why.
	DerivedMayRemain []string `json:"derived_may_remain"`
	Trace            *Trace   `json:"trace,omitempty"`
}

// HealthStatus is a provider's condition.
type HealthStatus string

// The health statuses of the contract.
const (
	HealthOK          HealthStatus = "ok"
	HealthDegraded    HealthStatus = "degraded"
	HealthUnavailable HealthStatus = "unavailable"
)

// BackendHealth answers health.
type BackendHealth struct {
	Status         HealthStatus `json:"status"`
	BackendName    string       `json:"backend_name"`
	BackendVersion string       `json:"backend_version,omitempty"`
	LatencyMS      float64      `json:"latency_ms"`
	// ConsistencyModel is immediate, eventual or async_derived.
	ConsistencyModel  string   `json:"consistency_model"`
	NativeMemoryTypes []string `json:"native_memory_types,omitempty"`
	NativeIngestModes []string `json:"native_ingest_modes,omitempty"`
	NativeQueryModes  []string `json:"native_query_modes,omitempty"`
	// Isolation is hard, filtered or unverified.
	Isolation string `json:"isolation"`
	// PetObservability is strong, partial or weak: how well preference changes can be seen from outside.
	PetObservability string   `json:"pet_observability"`
	Warnings         []string `json:"warnings"`
}

// ReadinessStatus says whether what was recorded can be retrieved.
type ReadinessStatus string

// The readiness statuses of the contract.
const (
	ReadinessReady    ReadinessStatus = "ready"
	ReadinessPending  ReadinessStatus = "pending"
	ReadinessDegraded ReadinessStatus = "degraded"
	ReadinessFailed   ReadinessStatus = "failed"
	ReadinessUnknown  ReadinessStatus = "unknown"
)

// ReadinessRequest asks whether a scope's writes have arrived.
type ReadinessRequest struct {
	Scope MemoryScope `json:"scope"`
	// TimeoutMS is how long to wait for ready; 0 means one look.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ReadinessMarkers is the body of a guest's readiness operation.
type ReadinessMarkers struct {
	Markers []string `json:"markers"`
}

// WaitRequest is the body of a guest's wait_until_ready operation.
type WaitRequest struct {
	// DeadlineMS is how long the guest may work, in ms.
	DeadlineMS int64 `json:"deadline_ms"`
	// Background is true when the host works of its own accord, by the manifest's interval, and nobody waits for the scope to be ready.
	Background bool `json:"background,omitempty"`
}

// BackendReadiness answers readiness and wait_until_ready.
type BackendReadiness struct {
	Status   ReadinessStatus   `json:"status"`
	EventIDs ReadinessEventIDs `json:"event_ids"`
	// Method names the signal that said so.
	Method          string   `json:"method"`
	OldestPendingAt string   `json:"oldest_pending_at,omitempty"`
	StalledSince    string   `json:"stalled_since,omitempty"`
	Warnings        []string `json:"warnings"`
}

// ReadinessEventIDs sorts event ids by what is known of them.
type ReadinessEventIDs struct {
	Pending []string `json:"pending"`
	Lost    []string `json:"lost"`
	Failed  []string `json:"failed"`
	Empty   []string `json:"empty"`
	Unknown []string `json:"unknown"`
}

// FindEventRequest asks a provider whether an event reached its backend.
type FindEventRequest struct {
	EventID string `json:"event_id"`
	// SessionID is the event's own, where the host has the event at hand; "" where it knows the id alone.
	SessionID string   `json:"session_id,omitempty"`
	Markers   []string `json:"markers"`
	// SentAt is RFC 3339: when the write was sent.
	SentAt string `json:"sent_at"`
}

// FindEventAnswer says what the backend has of an event.
type FindEventAnswer struct {
	// Found is present, partial, absent or unknown.
	Found        string   `json:"found"`
	NativeIDs    []string `json:"native_ids"`
	Missing      []string `json:"missing"`
	RetryAfterMS *int64   `json:"retry_after_ms,omitempty"`
	// Markers are those that the write's lost receipt would have had, for readiness.
	Markers []string `json:"markers,omitempty"`
}

// MemoryFeedback is a user's correction of what memory holds.
type MemoryFeedback struct {
	FeedbackID string      `json:"feedback_id"`
	Scope      MemoryScope `json:"scope"`
	SessionID  string      `json:"session_id"`
	Timestamp  string      `json:"timestamp"`
	Text       string      `json:"text"`
	History    []Message   `json:"history,omitempty"`
	NativeIDs  []string    `json:"native_ids,omitempty"`
	EventID    string      `json:"event_id,omitempty"`
}

// FeedbackReceipt answers apply_feedback. Status is applied, no_change, queued or skipped_read_only.
type FeedbackReceipt struct {
	FeedbackID string   `json:"feedback_id"`
	Status     string   `json:"status"`
	NativeIDs  []string `json:"native_ids"`
	Warnings   []string `json:"warnings"`
	Trace      *Trace   `json:"trace,omitempty"`
}

// ProvenanceRequest asks where memory came from: by native id, by event id, or by a range of time.
type ProvenanceRequest struct {
	Scope    MemoryScope `json:"scope"`
	NativeID string      `json:"native_id,omitempty"`
	EventID  string      `json:"event_id,omitempty"`
	From     string      `json:"from,omitempty"`
	To       string      `json:"to,omitempty"`
	Limit    int64       `json:"limit,omitempty"`
	Cursor   string      `json:"cursor,omitempty"`
}

// Provenance answers a ProvenanceRequest.
type Provenance struct {
	Items      []ProvenanceItem `json:"items"`
	NextCursor string           `json:"next_cursor,omitempty"`
	Trace      *Trace           `json:"trace,omitempty"`
}

// ProvenanceItem is evidence with the backend's own item. Evidence.Pointer is empty here: Native is the item itself.
type ProvenanceItem struct {
	Evidence Evidence `json:"evidence"`
	Native   Raw      `json:"native"`
}

// NativeQuery asks one of the provider's own read queries. Its result is for diagnosis and never goes into a prompt.
type NativeQuery struct {
	Scope  MemoryScope    `json:"scope"`
	Name   string         `json:"name"`
	Params map[string]Raw `json:"params,omitempty"`
}

// NativeQueryResult is the backend's answer, verbatim.
type NativeQueryResult struct {
	Name   string `json:"name"`
	Result Raw    `json:"result"`
	Trace  *Trace `json:"trace,omitempty"`
}

// NativeMutation asks for one of the provider's own changes.
type NativeMutation struct {
	Scope  MemoryScope    `json:"scope"`
	Name   string         `json:"name"`
	Params map[string]Raw `json:"params,omitempty"`
	Reason string         `json:"reason"`
}

// MutationReceipt answers a NativeMutation. Status is applied, no_change, rejected or skipped_read_only.
type MutationReceipt struct {
	Status    string   `json:"status"`
	NativeIDs []string `json:"native_ids"`
	Trace     *Trace   `json:"trace,omitempty"`
}

// InventoryRequest asks what a scope holds.
type InventoryRequest struct {
	Scope MemoryScope `json:"scope"`
}

// Inventory counts what a scope holds, so that two moments can be compared.
type Inventory struct {
	Kinds []InventoryKind `json:"kinds"`
	// Complete is false where the backend cannot list everything.
	Complete bool `json:"complete"`
	// Quiescent is false while the backend still works on earlier writes.
	Quiescent bool   `json:"quiescent"`
	Trace     *Trace `json:"trace,omitempty"`
}

// InventoryKind is one native type's count.
type InventoryKind struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	// Digest is the SHA-256 (hex) over the sorted native ids with their versions.
	Digest string `json:"digest,omitempty"`
}

// Capabilities lists what the provider behind the slot can do.
type Capabilities struct {
	Provider      string        `json:"provider"`
	ConditionKind ConditionKind `json:"condition_kind"`
	// Operations are exports that every provider has; Capabilities those it may have.
	Operations        []string `json:"operations"`
	Capabilities      []string `json:"capabilities"`
	NativeMemoryTypes []string `json:"native_memory_types"`
	NativeIngestModes []string `json:"native_ingest_modes"`
	NativeQueryModes  []string `json:"native_query_modes"`
}
