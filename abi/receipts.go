package abi

// AdapterMode turns the read-only mode on or off.
type AdapterMode struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	// Scope limits the mode to one scope. Nil means the whole slot.
	Scope *MemoryScope `json:"scope,omitempty"`
}

// ModeReceipt reports the current mode.
type ModeReceipt struct {
	ReadOnly   bool         `json:"read_only"`
	Scope      *MemoryScope `json:"scope,omitempty"`
	Since      string       `json:"since"`
	EnforcedBy string       `json:"enforced_by"`
	// InFlight counts writes and other calls that are not reads, admitted earlier and still running. In read-only mode,
	// 0 means that nothing can change the backend any more.
	InFlight int64 `json:"in_flight"`
	// Complete is false if the mode became read-only, but the wait for running calls ended before InFlight was 0. Nil
	// otherwise.
	Complete *bool `json:"complete,omitempty"`
	// NotReady lists scopes with writes that are not retrievable yet.
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

// NativeIDsKind says how long the native ids in a receipt stay valid.
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
	// StoredCount is how many items the backend reports to have stored; nil if it does not report that.
	StoredCount *int64 `json:"stored_count,omitempty"`
	// Markers are opaque to the host. The provider gets them back in readiness and find_event.
	Markers   []string `json:"markers"`
	Duplicate bool     `json:"duplicate"`
	// Warnings each begin with a stable code and a colon.
	Warnings  []string `json:"warnings"`
	LatencyMS float64  `json:"latency_ms"`
	// RetryAfterMS is set by the host for an uncertain write: after this time, in ms, recording the event again can
	// settle its outcome.
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty" codec:"host"`
	Trace        *Trace `json:"trace,omitempty"`
}

// EventBatch is several events for one call. They may belong to several scopes; the order within a scope is kept.
type EventBatch struct {
	Events []MemoryEvent `json:"events"`
}

// BatchReceipts answers an EventBatch, with one entry per event, in the same order.
type BatchReceipts struct {
	Receipts []ReceiptOrError `json:"receipts"`
}

// ReceiptOrError is the result of one event of a batch: exactly one of Receipt and Error is set. In JSON a receipt is
// an element of the list itself; an error is {"event_id": ..., "error": {...}}.
type ReceiptOrError struct {
	Receipt *WriteReceipt
	EventID string
	Error   *Error
}

// SetupReceipt answers setup_scope.
type SetupReceipt struct {
	Ready bool `json:"ready"`
	// Existed reports whether the backend already knew the scope; nil if it does not report that.
	Existed *bool `json:"existed,omitempty"`
	// NativeScope is how the backend addresses the scope: it maps the backend's terms (workspace, group_id, ...) to
	// ids.
	NativeScope map[string]string `json:"native_scope"`
	Warnings    []string          `json:"warnings"`
	Trace       *Trace            `json:"trace,omitempty"`
}

// ResetStatus says how much of a reset is done.
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
	// Removed counts removed items by native type. A nil count means that the backend does not report it.
	Removed map[string]*int64 `json:"removed"`
	// Remains says what is left and why.
	Remains       []string `json:"remains"`
	OldGeneration int64    `json:"old_generation"`
	NewGeneration int64    `json:"new_generation"`
	Warnings      []string `json:"warnings"`
	// Outside names copies that the host's store cannot reach, such as the database's files, and says what to do about
	// them.
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

// ForgetStatus says how much of a forget request is done.
type ForgetStatus string

// The forget statuses.
const (
	// ForgetDone: nothing that was asked for remains, except what DerivedMayRemain lists.
	ForgetDone ForgetStatus = "done"
	// ForgetInProgress: the host must call again with the same request.
	ForgetInProgress ForgetStatus = "in_progress"
	// ForgetPartial: some of what was asked for cannot be removed.
	ForgetPartial ForgetStatus = "partial"
	// ForgetUnsupported: the backend cannot remove by the criterion in the request. Nothing was removed.
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
	// DerivedMayRemain lists what the backend derived from the removed items and may still hold, and why.
	DerivedMayRemain []string `json:"derived_may_remain"`
	// Outside names copies that the host's store cannot reach, such as the database's files, and says what to do about
	// them.
	Outside []string `json:"outside,omitempty"`
	Trace   *Trace   `json:"trace,omitempty"`
}
