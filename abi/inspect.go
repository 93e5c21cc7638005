package abi

// HealthStatus is the condition of a provider.
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
	// NativeQueryModes names the backend's search modes for a retrieval, such as semantic, bm25, fast. Names of native
	// queries are in Capabilities.
	NativeQueryModes []string `json:"native_query_modes,omitempty"`
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
	// TimeoutMS is how long to wait for ready, in ms; 0 means to check once.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// RetryEmpty sends again the events of which the backend kept nothing (event_ids.empty), and those that failed or
	// were lost. The host takes them from the archive. Without an archive they are listed as failed or lost, and are
	// sent when the caller records them again. An event of which the backend kept a part may be duplicated.
	RetryEmpty bool `json:"retry_empty,omitempty"`
}

// ReadinessMarkers is the body of a guest's readiness operation.
type ReadinessMarkers struct {
	Markers []string `json:"markers"`
}

// WaitRequest is the body of a guest's wait_until_ready operation.
type WaitRequest struct {
	// DeadlineMS is how much time the guest has, in ms.
	DeadlineMS int64 `json:"deadline_ms"`
	// Background is true if the host called at the manifest's interval, so no caller is waiting for the scope to become
	// ready.
	Background bool `json:"background,omitempty"`
}

// BackendReadiness answers readiness and wait_until_ready.
type BackendReadiness struct {
	Status   ReadinessStatus   `json:"status"`
	EventIDs ReadinessEventIDs `json:"event_ids"`
	// Method names the signal on which the answer is based.
	Method          string   `json:"method"`
	OldestPendingAt string   `json:"oldest_pending_at,omitempty"`
	StalledSince    string   `json:"stalled_since,omitempty"`
	Warnings        []string `json:"warnings"`
}

// ReadinessEventIDs groups event ids by their state.
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
	// SessionID is the event's session, or "" if the host knows only the event's id.
	SessionID string   `json:"session_id,omitempty"`
	Markers   []string `json:"markers"`
	// SentAt is when the write was sent, RFC 3339.
	SentAt string `json:"sent_at"`
}

// FindEventAnswer says how much of an event the backend has.
type FindEventAnswer struct {
	// Found is present, partial, absent or unknown.
	Found        string   `json:"found"`
	NativeIDs    []string `json:"native_ids"`
	Missing      []string `json:"missing"`
	RetryAfterMS *int64   `json:"retry_after_ms,omitempty"`
	// Markers are the markers that the lost receipt of the write would have had, for readiness.
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

// ProvenanceItem is evidence with the backend's own item. Evidence.Pointer is empty, since Native is the item itself.
type ProvenanceItem struct {
	Evidence Evidence `json:"evidence"`
	Native   Raw      `json:"native"`
}

// NativeQuery calls one of the provider's own read queries. Its result is for diagnosis and never goes into a prompt.
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

// NativeMutation calls one of the provider's own mutations.
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

// Inventory counts what a scope holds. Two inventories can be compared to detect changes.
type Inventory struct {
	Kinds []InventoryKind `json:"kinds"`
	// Complete is false if the backend cannot list everything.
	Complete bool `json:"complete"`
	// Quiescent is false while the backend still works on earlier writes.
	Quiescent bool   `json:"quiescent"`
	Trace     *Trace `json:"trace,omitempty"`
}

// InventoryKind is the count of one native type.
type InventoryKind struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	// Digest is the SHA-256 (hex) over the sorted native ids with their versions.
	Digest string `json:"digest,omitempty"`
}
