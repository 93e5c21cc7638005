// Package journal reads and writes the journal of a cell of an evaluation: trace.jsonl in the cell's folder, to which
// the cell appends lines while it runs.
//
// It is the only input of scoring besides the pack. Each line has the hash of the previous line, so that Verify detects
// lines that were changed, dropped or moved later; the head (the hash of the last line) is sealed in run.json. The
// chain proves order and completeness relative to its head, but not its author: rewriting every line and the head
// produces a valid chain.
package journal

import "github.com/memhost/memhost/abi"

// Line is one line of trace.jsonl. Exactly one of the pointers is set, the one that Kind names.
type Line struct {
	// N is the line number, from 1.
	N int64 `json:"n"`
	// Prev is the SHA-256 of the previous line, without its newline, in hexadecimal; for the first line, the SHA-256 of
	// the empty text.
	Prev string `json:"prev"`
	// At is RFC 3339, by the clock of the machine that ran the cell.
	At   string `json:"at"`
	Kind Kind   `json:"kind"`
	// PersonaID and Session (from 1) are the position in the timeline; absent in begin, end and dropped.
	PersonaID string `json:"persona_id,omitempty"`
	Session   int    `json:"session,omitempty"`

	Begin       *Begin       `json:"begin,omitempty"`
	Dropped     *Dropped     `json:"dropped,omitempty"`
	Record      *Record      `json:"record,omitempty"`
	Readiness   *Readiness   `json:"readiness,omitempty"`
	Inventory   *Inventory   `json:"inventory,omitempty"`
	Wall        *Wall        `json:"wall,omitempty"`
	Probe       *Probe       `json:"probe,omitempty"`
	Canary      *Canary      `json:"canary,omitempty"`
	CanaryCheck *CanaryCheck `json:"canary_check,omitempty"`
	Answer      *Answer      `json:"answer,omitempty"`
	Transcript  *Transcript  `json:"transcript,omitempty"`
	NonceCheck  *NonceCheck  `json:"nonce_check,omitempty"`
	Feedback    *Feedback    `json:"feedback,omitempty"`
	Closed      *Closed      `json:"closed,omitempty"`
	Freshness   *Freshness   `json:"freshness,omitempty"`
	End         *End         `json:"end,omitempty"`
}

// Kind is the kind of a line.
type Kind string

// The kinds of lines, in the order in which a cell writes them. A test session starts with a line wall with up true,
// and ends with a line closed.
const (
	KindBegin       Kind = "begin"        // the cell's manifest is sealed
	KindDropped     Kind = "dropped"      // a resumed run removed an unterminated last line
	KindRecord      Kind = "record"       // an event was recorded
	KindReadiness   Kind = "readiness"    // the wait before a test session, or the check for what the canary check needs
	KindInventory   Kind = "inventory"    // before the wall was raised, after it was lowered, and after an interruption
	KindWall        Kind = "wall"         // the read-only mode was switched on or off
	KindProbe       Kind = "probe"        // a probe was asked, once for each budget
	KindCanary      Kind = "canary"       // a write was tried while read-only
	KindCanaryCheck Kind = "canary_check" // whether that write can be found
	KindAnswer      Kind = "answer"       // an agent answered a probe
	KindTranscript  Kind = "transcript"   // a simulated user had a conversation with the agent under evaluation
	KindNonceCheck  Kind = "nonce_check"  // whether a conversation can be found in memory, and its late calls
	KindFeedback    Kind = "feedback"     // a user's correction was passed to apply_feedback
	KindClosed      Kind = "closed"       // the test session is over, with its verdicts
	KindFreshness   Kind = "freshness"    // how long something acknowledged could not be retrieved
	KindEnd         Kind = "end"          // the cell is complete
)

// Begin describes the cell as sealed before its first event.
type Begin struct {
	RunID     string `json:"run_id"` // the run_id in the scope of every persona in this cell
	Label     string `json:"label"`  // the provider's label in the lab file
	Replicate int    `json:"replicate"`
	// PackSHA256 is the pack's content hash, LabSHA256 the hash of the resolved lab file, ManifestSHA256 the hash of
	// the cell's manifest.json.
	PackSHA256     string `json:"pack_sha256"`
	LabSHA256      string `json:"lab_sha256"`
	ManifestSHA256 string `json:"manifest_sha256"`
}

// Dropped is what a resumed run removed from the end of the file.
type Dropped struct {
	Bytes int64 `json:"bytes"`
}

// Record is the receipt of one event, or its error.
type Record struct {
	EventID string          `json:"event_id"`
	Status  abi.WriteStatus `json:"status,omitempty"`
	// Duplicate means that a resumed run recorded the event again, so that its latency says nothing about the provider.
	Duplicate bool `json:"duplicate,omitempty"`
	// Again is how often the event was recorded again because its receipt was uncertain or partial. Status and Warnings
	// come from the last receipt, LatencyMS and IO from the first.
	Again int `json:"again,omitempty"`
	// Failed means that the event was given up after its last attempt: memory lacks it, and the cell continued. Error
	// says why.
	Failed bool `json:"failed,omitempty"`
	// Native is how many native items the receipt names.
	Native    int        `json:"native,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
	LatencyMS float64    `json:"latency_ms"`
	IO        []abi.IO   `json:"io,omitempty"`
}

// Readiness is the result of waiting for memory.
type Readiness struct {
	// Purpose is test_session or canary_check.
	Purpose string              `json:"purpose"`
	Status  abi.ReadinessStatus `json:"status"`
	// TimedOut means that events were still outstanding when the wait ended: the session's probes count as pending.
	TimedOut bool                  `json:"timed_out,omitempty"`
	Events   abi.ReadinessEventIDs `json:"event_ids"`
	WaitedMS float64               `json:"waited_ms"`
	Error    *abi.Error            `json:"error,omitempty"`
	// Native are the native calls with which the cell's memory became ready since its last line of this kind, in the
	// background, too. With several people side by side they may be another person's.
	Native []RouteCalls `json:"native,omitempty"`
}

// Outstanding reports whether memory may still be working on events, or cannot say. A failed event is not outstanding:
// it will not arrive.
func (r *Readiness) Outstanding() bool {
	return r.Status == abi.ReadinessPending || r.Status == abi.ReadinessUnknown ||
		len(r.Events.Pending)+len(r.Events.Unknown) > 0
}

// RouteCalls sums up native calls of one route.
type RouteCalls struct {
	Route    string `json:"route"`
	Calls    int64  `json:"calls"`
	Retries  int64  `json:"retries,omitempty"`
	BytesOut int64  `json:"bytes_out"`
	BytesIn  int64  `json:"bytes_in"`
}

// Inventory is what the provider counted.
type Inventory struct {
	// When is before (the wall was raised), after (it was lowered) or Resumed.
	When      string         `json:"when"`
	Inventory *abi.Inventory `json:"inventory,omitempty"`
	Error     *abi.Error     `json:"error,omitempty"`
}

// Resumed is the When of an inventory after an interruption, which is compared with what the journal says about the
// memory.
const Resumed = "resumed"

// Wall is a change of the read-only mode.
type Wall struct {
	Up      bool             `json:"up"`
	Receipt *abi.ModeReceipt `json:"receipt,omitempty"`
	Error   *abi.Error       `json:"error,omitempty"`
}

// Probe is one retrieval: a probe under one budget.
type Probe struct {
	ProbeID string `json:"probe_id"`
	// Budget is max_tokens; 0 means no limit.
	Budget int64 `json:"budget"`
	// Read counts from 1. Reads after the first only measure stability, and enter no other metric.
	Read int `json:"read"`
	// ContextSHA256 is the hash of the formatted context in contexts/, RawSHA256 that of the raw answers in blobs/.
	ContextSHA256 string         `json:"context_sha256,omitempty"`
	RawSHA256     string         `json:"raw_sha256,omitempty"`
	Evidence      []abi.Evidence `json:"evidence,omitempty"`
	Trace         *abi.Trace     `json:"trace,omitempty"`
	Error         *abi.Error     `json:"error,omitempty"`
	LatencyMS     float64        `json:"latency_ms"`
}

// Canary is a write that was tried while the slot was read-only.
type Canary struct {
	EventID string          `json:"event_id"`
	Text    string          `json:"text"` // what a later retrieval must not return
	Status  abi.WriteStatus `json:"status,omitempty"`
	Error   *abi.Error      `json:"error,omitempty"`
}

// CanaryCheck is the search for a canary after the next readiness.
type CanaryCheck struct {
	EventID string     `json:"event_id"`
	Found   bool       `json:"found"`
	Error   *abi.Error `json:"error,omitempty"`
}

// Answer is the answer of the agent under evaluation. Requests and answers are stored verbatim in blobs/.
type Answer struct {
	ProbeID       string `json:"probe_id"`
	Budget        int64  `json:"budget"`
	Turn          int    `json:"turn"` // always 1; runs of earlier versions had more with a simulator
	Text          string `json:"text"`
	RequestSHA256 string `json:"request_sha256"`
	AnswerSHA256  string `json:"answer_sha256"`
	Model         string `json:"model"`
	// Stub means that the project's stand-in for a model answered. Reports show this prominently.
	Stub      bool       `json:"stub,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
	LatencyMS float64    `json:"latency_ms"`
	// Params are the parameters of the request: an endpoint may reject some.
	Params string `json:"params,omitempty"`
	// FinishReason is the endpoint's reason why the model stopped: stop, length, content_filter, ...
	FinishReason string `json:"finish_reason,omitempty"`
	// Usage is the endpoint's count; nil if it reported nothing.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is the number of tokens of one request to a model, as counted by its endpoint.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
}

// Closed is the end of a test session, with what it proved.
type Closed struct {
	// Wall is clean (inventories equal, complete and quiescent, canary skipped), breached or inconclusive.
	Wall   string `json:"wall"`
	Detail string `json:"detail,omitempty"`
	Probes int    `json:"probes"`
	// Pending means that events were still outstanding when the session began.
	Pending bool `json:"pending,omitempty"`
}

// Freshness is one event in a scope used only for this: it is recorded, and then retrieved repeatedly until it is
// returned.
type Freshness struct {
	EventID string `json:"event_id"`
	// Found means that it was returned. Otherwise memory was ready but did not return it, or the time was over.
	Found bool `json:"found"`
	// AfterMS is the time from its receipt to the end of the retrieval that returned it, or of the last one. It is an
	// upper bound, because a retrieval takes time, too.
	AfterMS float64 `json:"after_ms"`
	Reads   int     `json:"reads"`
	// Duplicate means that a resumed run recorded it again, so that its time says nothing about the provider.
	Duplicate bool       `json:"duplicate,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
}

// End is the end of a complete cell.
type End struct {
	Events   int `json:"events"`
	Sessions int `json:"sessions"` // test sessions
	Probes   int `json:"probes"`
}
