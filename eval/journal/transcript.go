package journal

import "github.com/memhost/memhost/abi"

// Transcript is one conversation of a test session: a simulated user with the agent under evaluation, the subject. Its
// line names persona and session, the journal's first line the provider and the replicate.
//
// It is a record of the evaluation, and never memory.
type Transcript struct {
	// ProbeID is the probe that the conversation is about, Budget the max_tokens that the subject was given for its
	// retrievals; 0 means none.
	ProbeID string `json:"probe_id"`
	Budget  int64  `json:"budget"`
	// Scenario, Context and Attribute are the labels of the user's situation.
	Scenario  string `json:"scenario,omitempty"`
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Seat is how the subject was connected: builtin, command or chat.
	Seat string `json:"seat"`
	// Simulator is what played the user: scripted, or the name of a model.
	Simulator string     `json:"simulator"`
	Exchanges []Exchange `json:"exchanges"`
	Ended     Ended      `json:"ended"`
	// Error is why the conversation ended with subject_failed or simulator_failed.
	Error *abi.Error `json:"error,omitempty"`
	// Retrievals are those that the subject made, by the host's account, in order.
	Retrievals []Retrieval `json:"retrievals,omitempty"`
	// Breaches are writes or calls behind the wall that must not have happened.
	Breaches []Breach `json:"breaches,omitempty"`
	// NotSent lists what this kind of subject cannot pass to a retrieval: context, attribute, scenario, scope.
	NotSent []string `json:"not_sent,omitempty"`
}

// First is the subject's first answer; empty if it gave none.
func (t *Transcript) First() string {
	if len(t.Exchanges) == 0 {
		return ""
	}
	return t.Exchanges[0].Agent
}

// Exchange is one text of the user, the subject's answer, and the user's reaction to it.
type Exchange struct {
	// User is what the simulator said; the subject was sent Nonce with it.
	User  string `json:"user"`
	Nonce string `json:"nonce,omitempty"`
	// Agent is empty where the subject gave no answer.
	Agent string `json:"agent,omitempty"`
	// Action is what the user did after the answer; empty where there was none.
	Action Action `json:"action,omitempty"`
	// RequestSHA256 and AnswerSHA256 name the request to a model and its answer in blobs/, where the runner sees them.
	RequestSHA256 string `json:"request_sha256,omitempty"`
	AnswerSHA256  string `json:"answer_sha256,omitempty"`
	Model         string `json:"model,omitempty"`
	// Stub: a stand-in for a model answered. A report says so in large letters.
	Stub      bool    `json:"stub,omitempty"`
	LatencyMS float64 `json:"latency_ms"`
	// Usage is what the subject reports, SimulatorUsage what the user's model counted for Action and the next User.
	Usage          *Usage `json:"usage,omitempty"`
	SimulatorUsage *Usage `json:"simulator_usage,omitempty"`
}

// Action is what a simulated user does after an answer.
type Action string

// The actions. Accept and give_up end the conversation.
const (
	ActionAccept  Action = "accept"  // the answer uses the preference in force
	ActionCorrect Action = "correct" // the user says what the preference is
	ActionRepeat  Action = "repeat"  // the user asks again, and says nothing new
	ActionGiveUp  Action = "give_up" // the user ends the conversation without what they wanted
)

// Reaction is an action with what the user says next.
type Reaction struct {
	Action Action `json:"action"`
	// Text is the user's next text; empty after accept and give_up.
	Text string `json:"text,omitempty"`
	// Usage is what a model's endpoint counted; nil for a scripted user.
	Usage *Usage `json:"usage,omitempty"`
}

// Ended is how a conversation ended.
type Ended string

// The ways to end.
const (
	EndedAccepted  Ended = "accepted"
	EndedGivenUp   Ended = "given_up"
	EndedTurns     Ended = "turns"            // the limit on turns was reached
	EndedSubject   Ended = "subject_failed"   // the subject hung, exited, or said what could not be read
	EndedSimulator Ended = "simulator_failed" // the user's model gave no reaction: the conversation is missing
)

// Retrieval is one retrieval that a subject made.
type Retrieval struct {
	// Turn is the exchange, from 1, during which it was made.
	Turn  int    `json:"turn"`
	Query string `json:"query"`
	// Context and Attribute are the labels that the subject sent.
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// MaxTokens is the budget that the subject asked for; 0 means none.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	// ContextSHA256 names the formatted context in contexts/.
	ContextSHA256 string         `json:"context_sha256,omitempty"`
	Evidence      []abi.Evidence `json:"evidence,omitempty"`
	Trace         *abi.Trace     `json:"trace,omitempty"`
	Error         *abi.Error     `json:"error,omitempty"`
}

// Breach is something that a subject did and must not do, or that memory shows of it later.
type Breach struct {
	// Kind is a stable name, such as record_after_wall, mode, other_scope, late_delivery, nonce_found.
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
}

// NonceCheck is the search for what the user said in a test session's conversations, after the next readiness. The
// line's session is the one that was searched for.
type NonceCheck struct {
	// Nonces is how many were searched for.
	Nonces int `json:"nonces"`
	// Breaches are the nonces that were found, and what reached a conversation's door after it was over.
	Breaches []LateBreach `json:"breaches,omitempty"`
	// Error is why the search is incomplete.
	Error *abi.Error `json:"error,omitempty"`
}

// LateBreach is a breach that was found after its conversation.
type LateBreach struct {
	ProbeID string `json:"probe_id"`
	Budget  int64  `json:"budget"`
	Breach
}
