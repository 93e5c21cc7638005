package abi

// AdapterMode turns the read-only mode on or off.
type AdapterMode struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	// Scope limits the mode to one scope. Nil means the whole slot.
	Scope *MemoryScope `json:"scope,omitempty"`
}

// ModeReceipt is the mode that holds now.
type ModeReceipt struct {
	ReadOnly   bool         `json:"read_only"`
	Scope      *MemoryScope `json:"scope,omitempty"`
	Since      string       `json:"since"`
	EnforcedBy string       `json:"enforced_by"`
	// InFlight counts writes, and calls of other operations that are not reads, which were let through before and are
	// still under way. While the mode is read-only, 0 means that nothing can change the backend any more.
	InFlight int64 `json:"in_flight"`
	// Complete is false when the mode became read-only and the wait for what was under way ended before InFlight was 0;
	// nil otherwise.
	Complete *bool `json:"complete,omitempty"`
	// NotReady lists scopes with writes that the backend has not yet shown.
	NotReady []MemoryScope `json:"not_ready"`
	// Warnings each begin with a stable code and a colon: "test_sessions_empty: ...".
	Warnings []string `json:"warnings,omitempty"`
}

// WriteStatus is the outcome of a recorded event.
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
	// RetryAfterMS is filled by the host for an uncertain write: after so many ms recording the event again can settle
	// it.
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
	// Existed reports whether the backend already knew the scope; nil when it does not say.
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
	// Outside names the copies that the host's store cannot reach, such as a database's files, and what to do about them.
	Outside []string `json:"outside,omitempty"`
	Trace   *Trace   `json:"trace,omitempty"`
}

// ForgetRequest asks to remove some of what a scope's memory holds. Exactly one of EventIDs, SessionID, From with To,
// and NativeIDs says what.
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
//	{"status": "done", "removed": {"memory": ["m1", "m2"]},
//	 "derived_may_remain": ["summary: the backend does not rebuild it"]}
type ForgetReceipt struct {
	Status ForgetStatus `json:"status"`
	// Removed lists native ids by native type.
	Removed map[string][]string `json:"removed"`
	// DerivedMayRemain says what the backend made of the removed items and may still hold, and why.
	DerivedMayRemain []string `json:"derived_may_remain"`
	// Outside names the copies that the host's store cannot reach, such as a database's files, and what to do about them.
	Outside []string `json:"outside,omitempty"`
	Trace   *Trace   `json:"trace,omitempty"`
}
