package journal

import "github.com/memhost/memhost/abi"

// Transcript is one conversation of a test session, between a simulated user and the agent under evaluation (the
// subject). Its line has persona and session, the journal's first line has provider and replicate.
//
// It is a record of the evaluation, and never memory.
type Transcript struct {
	// ProbeID is the probe that the conversation is about; Budget is the max_tokens of the subject's retrievals, 0 for
	// no limit.
	ProbeID string `json:"probe_id"`
	Budget  int64  `json:"budget"`
	// Scenario, Context and Attribute are the labels of the user's situation.
	Scenario  string `json:"scenario,omitempty"`
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Seat is how the subject was connected: builtin, command or chat.
	Seat string `json:"seat"`
	// Told is the user's name as given to the subject; empty if it got none.
	Told string `json:"told,omitempty"`
	// Simulator is who played the user: scripted, or the name of a model.
	Simulator string     `json:"simulator"`
	Exchanges []Exchange `json:"exchanges"`
	Ended     Ended      `json:"ended"`
	// Error is why the conversation ended with subject_failed or simulator_failed.
	Error *abi.Error `json:"error,omitempty"`
	// Retrievals are the retrievals that the subject made, as seen by the host, in order.
	Retrievals []Retrieval `json:"retrievals,omitempty"`
	// Breaches are writes or calls that must not happen while read-only.
	Breaches []Breach `json:"breaches,omitempty"`
	// NotSent lists what this kind of subject cannot pass to a retrieval: context, attribute, scenario, scope.
	NotSent []string `json:"not_sent,omitempty"`
}

// First is the subject's first answer; empty if there is none.
func (t *Transcript) First() string {
	if len(t.Exchanges) == 0 {
		return ""
	}
	return t.Exchanges[0].Agent
}

// Exchange is one text of the user, the subject's answer, and the user's reaction.
type Exchange struct {
	// User is what the simulated user said; the subject received Nonce with it.
	User  string `json:"user"`
	Nonce string `json:"nonce,omitempty"`
	// Agent is the subject's answer; empty if there is none.
	Agent string `json:"agent,omitempty"`
	// Action is what the user did after the answer; empty if there is none.
	Action Action `json:"action,omitempty"`
	// RequestSHA256 and AnswerSHA256 are the hashes of the request to a model and its answer in blobs/, if the runner
	// sees them.
	RequestSHA256 string `json:"request_sha256,omitempty"`
	AnswerSHA256  string `json:"answer_sha256,omitempty"`
	Model         string `json:"model,omitempty"`
	// Stub means that a stand-in for a model answered. Reports show this prominently.
	Stub      bool    `json:"stub,omitempty"`
	LatencyMS float64 `json:"latency_ms"`
	// Usage is reported by the subject; SimulatorUsage is the user's model's count for Action and the next User.
	Usage          *Usage `json:"usage,omitempty"`
	SimulatorUsage *Usage `json:"simulator_usage,omitempty"`
}

// Action is what a simulated user does after an answer.
type Action string

// The actions. Accept and give_up end the conversation.
const (
	ActionAccept  Action = "accept"  // the answer uses the preference in force
	ActionCorrect Action = "correct" // the user states the preference
	ActionRepeat  Action = "repeat"  // the user asks again without new information
	ActionGiveUp  Action = "give_up" // the user ends the conversation without success
)

// Reaction is an action and what the user says next.
type Reaction struct {
	Action Action `json:"action"`
	// Text is the user's next text; empty after accept and give_up.
	Text string `json:"text,omitempty"`
	// Usage is counted by a model's endpoint; nil for a scripted user.
	Usage *Usage `json:"usage,omitempty"`
}

// Ended is how a conversation ended.
type Ended string

// The ways to end.
const (
	EndedAccepted  Ended = "accepted"
	EndedGivenUp   Ended = "given_up"
	EndedTurns     Ended = "turns"            // the limit on turns was reached
	EndedSubject   Ended = "subject_failed"   // the subject hung, exited, or sent something unreadable
	EndedSimulator Ended = "simulator_failed" // the user's model gave no reaction; the conversation counts as missing
)

// Retrieval is one retrieval that a subject made.
type Retrieval struct {
	// Turn is the number of the exchange, from 1, during which it was made.
	Turn  int    `json:"turn"`
	Query string `json:"query"`
	// Context and Attribute are the labels that the subject sent.
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// MaxTokens is the budget that the subject requested; 0 means none.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	// ContextSHA256 names the formatted context in contexts/.
	ContextSHA256 string         `json:"context_sha256,omitempty"`
	Evidence      []abi.Evidence `json:"evidence,omitempty"`
	Trace         *abi.Trace     `json:"trace,omitempty"`
	Error         *abi.Error     `json:"error,omitempty"`
}

// Breach is something forbidden that a subject did, or that memory later reveals.
type Breach struct {
	// Kind is a stable name, such as record_after_wall, mode, other_scope, late_delivery, nonce_found.
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
}

// Feedback is one correction that was passed to apply_feedback after its conversation, when the wall was down.
type Feedback struct {
	FeedbackID string `json:"feedback_id"`
	ProbeID    string `json:"probe_id"`
	Budget     int64  `json:"budget"`
	Text       string `json:"text"`
	// NativeIDs are the retrieved items that name a value that is not in force.
	NativeIDs []string `json:"native_ids,omitempty"`
	// Status is applied, no_change or queued; empty after an error.
	Status   string     `json:"status,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Error    *abi.Error `json:"error,omitempty"`
}

// NonceCheck is the search in memory, after the next readiness, for what the user said in a test session's
// conversations. The line's session is the one that is searched for.
type NonceCheck struct {
	// Nonces is how many nonces were searched for.
	Nonces int `json:"nonces"`
	// Breaches are the nonces that were found, and calls that a conversation's door received after its end.
	Breaches []LateBreach `json:"breaches,omitempty"`
	// Error is why the search is incomplete.
	Error *abi.Error `json:"error,omitempty"`
}

// LateBreach is a breach that was found after its conversation ended.
type LateBreach struct {
	ProbeID string `json:"probe_id"`
	Budget  int64  `json:"budget"`
	Breach
}
