// Package journal is what a cell of an evaluation wrote down, line by line, while it ran: trace.jsonl in the cell's
// folder.
//
// It is the only input of scoring besides the pack. Each line names the hash of the line before it, so that a line
// that is changed, dropped or moved later is found by Verify; the head (the hash of the last line) is sealed in
// run.json. A chain proves order and completeness against its head, not who made it: somebody who rewrites every line
// and the head makes a valid chain.
package journal

import "github.com/memhost/memhost/abi"

// Line is one line of trace.jsonl. Exactly one of the pointers is set, the one that Kind names.
type Line struct {
	// N counts from 1.
	N int64 `json:"n"`
	// Prev is the SHA-256 of the line before it, without its newline, in hexadecimal; of the first line, the SHA-256 of
	// the empty text.
	Prev string `json:"prev"`
	// At is RFC 3339, by the clock of the machine that ran the cell.
	At   string `json:"at"`
	Kind Kind   `json:"kind"`
	// PersonaID and Session (from 1) say where in the timeline the line belongs; absent in begin, end and dropped.
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
	Closed      *Closed      `json:"closed,omitempty"`
	Freshness   *Freshness   `json:"freshness,omitempty"`
	End         *End         `json:"end,omitempty"`
}

// Kind is the kind of a line.
type Kind string

// The kinds of lines, in the order in which a cell writes them. A test session is opened by the line wall with up
// true, and ends with the line closed.
const (
	KindBegin       Kind = "begin"        // the cell's manifest is sealed
	KindDropped     Kind = "dropped"      // a resumed run found an unterminated last line and cut it off
	KindRecord      Kind = "record"       // an event was recorded
	KindReadiness   Kind = "readiness"    // the wait before a test session, or the look at what the canary check needs
	KindInventory   Kind = "inventory"    // before the wall went up, after it came down, and after an interruption
	KindWall        Kind = "wall"         // the read-only mode was set or lifted
	KindProbe       Kind = "probe"        // a probe was asked, once for each budget
	KindCanary      Kind = "canary"       // a write was tried behind the wall
	KindCanaryCheck Kind = "canary_check" // whether that write can be found
	KindAnswer      Kind = "answer"       // an agent answered a probe
	KindTranscript  Kind = "transcript"   // a simulated user talked with the agent under evaluation
	KindNonceCheck  Kind = "nonce_check"  // whether a conversation can be found, and what came of it too late
	KindClosed      Kind = "closed"       // the test session is over, with its verdicts
	KindFreshness   Kind = "freshness"    // how long something acknowledged could not be retrieved yet
	KindEnd         Kind = "end"          // the cell is complete
)

// Begin is the cell as it was sealed before its first event.
type Begin struct {
	RunID     string `json:"run_id"` // the scope's run_id of every persona in this cell
	Label     string `json:"label"`  // the provider's label in the lab file
	Replicate int    `json:"replicate"`
	// PackSHA256 is the pack's content hash, LabSHA256 that of the lab file as it was resolved, ManifestSHA256 that of
	// the cell's manifest.json.
	PackSHA256     string `json:"pack_sha256"`
	LabSHA256      string `json:"lab_sha256"`
	ManifestSHA256 string `json:"manifest_sha256"`
}

// Dropped is what a resumed run cut off the end of the file.
type Dropped struct {
	Bytes int64 `json:"bytes"`
}

// Record is the receipt of one event, or its error.
type Record struct {
	EventID string          `json:"event_id"`
	Status  abi.WriteStatus `json:"status,omitempty"`
	// Duplicate is true where a resumed run recorded the event again: its latency measures no provider.
	Duplicate bool `json:"duplicate,omitempty"`
	// Again is how often the event was recorded again because its receipt was uncertain or partial. Status and Warnings
	// are of the last receipt, LatencyMS and IO of the first.
	Again int `json:"again,omitempty"`
	// Failed is true where the event was given up after its last try: memory lacks it, and the cell went on. Error says
	// why.
	Failed bool `json:"failed,omitempty"`
	// Native is how many native items the receipt names.
	Native    int        `json:"native,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
	LatencyMS float64    `json:"latency_ms"`
	IO        []abi.IO   `json:"io,omitempty"`
}

// Readiness is how a wait for memory ended.
type Readiness struct {
	// Purpose is test_session or canary_check.
	Purpose string              `json:"purpose"`
	Status  abi.ReadinessStatus `json:"status"`
	// TimedOut is true where the lab's patience ended before the status was ready: the session's probes count as
	// pending.
	TimedOut bool                  `json:"timed_out,omitempty"`
	Events   abi.ReadinessEventIDs `json:"event_ids"`
	WaitedMS float64               `json:"waited_ms"`
	Error    *abi.Error            `json:"error,omitempty"`
}

// Inventory is what the provider counted.
type Inventory struct {
	// When is before (the wall went up), after (it came down) or Resumed.
	When      string         `json:"when"`
	Inventory *abi.Inventory `json:"inventory,omitempty"`
	Error     *abi.Error     `json:"error,omitempty"`
}

// Resumed is when an inventory was taken after an interruption: it is compared with what the journal says about the
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
	// Read counts from 1: reads after the first are for stability and enter no other metric.
	Read int `json:"read"`
	// ContextSHA256 names the formatted context in contexts/, RawSHA256 the raw answers in blobs/.
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
	Text    string          `json:"text"` // what a later retrieval must not show
	Status  abi.WriteStatus `json:"status,omitempty"`
	Error   *abi.Error      `json:"error,omitempty"`
}

// CanaryCheck is the search for a canary after the next readiness.
type CanaryCheck struct {
	EventID string     `json:"event_id"`
	Found   bool       `json:"found"`
	Error   *abi.Error `json:"error,omitempty"`
}

// Answer is what the agent under evaluation said. Requests and answers are kept verbatim in blobs/.
type Answer struct {
	ProbeID       string `json:"probe_id"`
	Budget        int64  `json:"budget"`
	Turn          int    `json:"turn"` // 1; runs of earlier versions had more with a simulator
	Text          string `json:"text"`
	RequestSHA256 string `json:"request_sha256"`
	AnswerSHA256  string `json:"answer_sha256"`
	Model         string `json:"model"`
	// Stub: the project's stand-in for a model answered. A report says so in large letters.
	Stub      bool       `json:"stub,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
	LatencyMS float64    `json:"latency_ms"`
	// Params are the parameters that the request had: an endpoint may refuse some.
	Params string `json:"params,omitempty"`
	// FinishReason is why the model stopped, in the endpoint's word: stop, length, content_filter, ...
	FinishReason string `json:"finish_reason,omitempty"`
	// Usage is what the endpoint counted; nil if it reported nothing.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is the number of tokens of one request to a model, as its endpoint counts them.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
}

// Closed is the end of a test session with what it proved.
type Closed struct {
	// Wall is clean (inventories equal, complete and quiescent, canary skipped), breached or inconclusive.
	Wall   string `json:"wall"`
	Detail string `json:"detail,omitempty"`
	Probes int    `json:"probes"`
	// Pending is true where the wait before the session timed out.
	Pending bool `json:"pending,omitempty"`
}

// Freshness is one event of a scope that is for this alone: recorded, and asked for until it was shown.
type Freshness struct {
	EventID string `json:"event_id"`
	// Found: it was shown. Otherwise memory was ready and did not show it, or the time was over.
	Found bool `json:"found"`
	// AfterMS is from its receipt to the end of the retrieval that showed it, or of the last one. A retrieval takes
	// time, too: it is an upper bound.
	AfterMS float64 `json:"after_ms"`
	Reads   int     `json:"reads"`
	// Duplicate is true where a resumed run recorded it again: its time measures no provider.
	Duplicate bool       `json:"duplicate,omitempty"`
	Error     *abi.Error `json:"error,omitempty"`
}

// End completes a cell.
type End struct {
	Events   int `json:"events"`
	Sessions int `json:"sessions"` // test sessions
	Probes   int `json:"probes"`
}
