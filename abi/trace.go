package abi

// ConditionKind distinguishes memory architectures from control conditions.
type ConditionKind string

// The kinds of provider.
const (
	KindArchitecture ConditionKind = "architecture"
	KindControl      ConditionKind = "control"
)

// ResultState is the outcome of a successful retrieval. An outage is not one of them: it is an error.
type ResultState string

// The result states of the contract.
const (
	ResultResults  ResultState = "results"
	ResultEmpty    ResultState = "empty"
	ResultDegraded ResultState = "degraded"
	ResultUnknown  ResultState = "unknown"
)

// FilterMode says how the labels of a request were applied.
type FilterMode string

// The filter modes. FiltersApplied may also contain hard_session and unverified.
const (
	FilterHard     FilterMode = "hard"
	FilterSemantic FilterMode = "semantic"
	FilterNone     FilterMode = "none"
)

// Trace describes how an answer was produced. It never goes into a prompt. The host sets operation, scope, generation,
// condition_kind, latency_ms, io, backend_ms, plugin_ms, host_ms and tokenizer. It overwrites them if a plugin sets
// them, and a guest leaves them out.
type Trace struct {
	Operation     string        `json:"operation" codec:"host"`
	BackendName   string        `json:"backend_name"`
	ConditionKind ConditionKind `json:"condition_kind" codec:"host"`
	Scope         MemoryScope   `json:"scope" codec:"host"`
	Generation    int64         `json:"generation" codec:"host"`
	// Host is the name of the host that ran the operation (ClusterHost.Name), if several hosts serve the slot.
	Host string `json:"host,omitempty" codec:"host"`
	// NativeOperation names the backend calls. If the plugin leaves it empty, the host lists the routes that were used,
	// each once: "episodes delete_group". Empty means that the backend was not called.
	NativeOperation string   `json:"native_operation,omitempty"`
	NativeIDs       []string `json:"native_ids,omitempty"`
	LatencyMS       float64  `json:"latency_ms" codec:"host"`
	// Consistency is committed, queued or pending. For a retrieval the host sets it from the ledger: committed if the
	// scope has no outstanding write.
	Consistency string `json:"consistency,omitempty"`
	// ConsistencyAsOf is the time (RFC 3339, UTC) at which the host read Consistency from the ledger.
	ConsistencyAsOf string      `json:"consistency_as_of,omitempty" codec:"host"`
	ResultState     ResultState `json:"result_state,omitempty"`
	TokenCount      *int64      `json:"token_count,omitempty"`
	// FrameTokens counts the tokens of the formatted context that are not the items' own words: the element's tags,
	// headings, labels, dates.
	FrameTokens           *int64            `json:"frame_tokens,omitempty"`
	Tokenizer             string            `json:"tokenizer" codec:"host"`
	RetrievedCount        *int64            `json:"retrieved_count,omitempty"`
	TopScore              *float64          `json:"top_score,omitempty"`
	OldestRetrievedAt     string            `json:"oldest_retrieved_at,omitempty"`
	NewestRetrievedAt     string            `json:"newest_retrieved_at,omitempty"`
	TimeBasis             TimeBasis         `json:"time_basis,omitempty"`
	RepresentationVersion string            `json:"representation_version,omitempty"`
	LastDerivedAt         string            `json:"last_derived_at,omitempty"`
	FilterMode            FilterMode        `json:"filter_mode,omitempty"`
	FiltersApplied        map[string]string `json:"filters_applied,omitempty"`
	LabelsVerified        *bool             `json:"labels_verified,omitempty"`
	// BudgetApplied says for each budget field how it was applied.
	BudgetApplied   map[string]BudgetUse `json:"budget_applied,omitempty"`
	BudgetShortfall *int64               `json:"budget_shortfall,omitempty"`
	Truncated       *bool                `json:"truncated,omitempty"`
	// Effective contains the search mode and limits as used.
	Effective map[string]Raw `json:"effective,omitempty"`
	// AsOfMode is native or ignored.
	AsOfMode        string         `json:"as_of_mode,omitempty"`
	ReadSideEffects []string       `json:"read_side_effects,omitempty"`
	Warnings        []string       `json:"warnings"`
	Details         map[string]Raw `json:"details,omitempty"`
	IO              []IO           `json:"io" codec:"host"`
	BackendMS       float64        `json:"backend_ms" codec:"host"`
	PluginMS        float64        `json:"plugin_ms" codec:"host"`
	HostMS          float64        `json:"host_ms" codec:"host"`
}

// BudgetUse says how one budget field took effect. All numbers are in the field's own unit: items of max_items, tokens
// of max_tokens and min_tokens. Nil: not known, or there is no such number.
//
//	max_items   {"how": "native", "sent": 10, "asked": 12, "received": 10, "shown": 7, "ceiling": 10}
//	max_tokens  {"how": "formatter", "asked": 800, "received": 1460, "shown": 760}
type BudgetUse struct {
	// How is native (the backend applied the value), fixed (the backend has its own limit), advisory or formatter.
	How string `json:"how"`
	// Sent is the value that was sent to the backend.
	Sent *int64 `json:"sent,omitempty"`
	// Asked is the request's value. The host sets it.
	Asked *int64 `json:"asked,omitempty" codec:"host"`
	// Received is how much the backend's answer contained, before formatting.
	Received *int64 `json:"received,omitempty"`
	// Shown is how much of it is in the formatted context, not counting the frame.
	Shown *int64 `json:"shown,omitempty"`
	// Ceiling is the maximum that the used routes can return, according to the manifest's limits. The host sets it.
	Ceiling *int64 `json:"ceiling,omitempty" codec:"host"`
}

// IO is one native call as the host saw it.
type IO struct {
	Route string `json:"route"`
	Class string `json:"class"`
	// Status is the backend's status; 0 if there was no answer.
	Status int64 `json:"status"`
	// StartMS is when the call was sent, in ms after the operation began. Cassettes recorded before this field existed
	// leave it out.
	StartMS  *float64 `json:"start_ms,omitempty"`
	MS       float64  `json:"ms"`
	BytesOut int64    `json:"bytes_out"`
	BytesIn  int64    `json:"bytes_in"`
	Retries  int64    `json:"retries"`
}
