package abi

// Roles of a follower: a provider beside the serving one that gets every recorded event, and whose answers no agent
// sees.
const (
	// RoleBackfill is filled from the archive, or from given events, and then serves in the other's place.
	RoleBackfill = "backfill"
	// RoleShadow stays beside the serving provider, and is asked a share of the retrievals.
	RoleShadow = "shadow"
)

// RunFollower says in a run manifest which other provider gets what the slot records.
type RunFollower struct {
	// Role is backfill or shadow.
	Role          string        `json:"role"`
	Provider      string        `json:"provider"`
	ConditionKind ConditionKind `json:"condition_kind"`
	Module        RunModule     `json:"module"`
	ConfigHash    string        `json:"config_hash"`
	// SamplePercent is the share of retrievals that a shadow is asked.
	SamplePercent int64  `json:"sample_percent,omitempty"`
	Since         string `json:"since"`
}

// FollowerState says what a follower does.
type FollowerState string

// States of a follower.
const (
	// FollowerNone: there is no follower.
	FollowerNone FollowerState = "none"
	// FollowerFilling: there are events that it has not got yet.
	FollowerFilling FollowerState = "filling"
	// FollowerWaiting: its last delivery failed and is tried again after a pause.
	FollowerWaiting FollowerState = "waiting"
	// FollowerReadOnly: the slot, or the scope whose turn it is, is read-only.
	FollowerReadOnly FollowerState = "read_only"
	// FollowerNotReady: it has every event and still works on some.
	FollowerNotReady FollowerState = "not_ready"
	// FollowerAsks: it has every event but those in Open, and those that were dropped. A backfill does not serve before
	// these are accepted.
	FollowerAsks FollowerState = "asks"
	// FollowerReady: it has every event that was recorded.
	FollowerReady FollowerState = "ready"
	// FollowerServes: the backfill is over, and its provider serves.
	FollowerServes FollowerState = "serves"
	// FollowerStopped: it gets nothing until it is started again.
	FollowerStopped FollowerState = "stopped"
)

// FollowerProgress is how far a follower has come.
type FollowerProgress struct {
	// Events is how many events it is to get in all, as far as is known; Done of them it has, LeftOut of them it does not
	// get: they were forgotten, their scope was reset, or their session is a test.
	Events  int64 `json:"events"`
	Done    int64 `json:"done"`
	LeftOut int64 `json:"left_out"`
	// Held counts events of scopes that are read-only: it gets them once these may be written.
	Held int64 `json:"held,omitempty"`
	// Dropped counts events that it never gets: more waited for it than the host keeps where there is no archive, or the
	// archive's retention ended before it had them.
	Dropped int64 `json:"dropped,omitempty"`
	// Unseen counts delivered events that the provider still works on.
	Unseen int64 `json:"unseen"`
	// Open counts the events of OpenEvents, which lists the first 100.
	Open       int64       `json:"open"`
	OpenEvents []OpenEvent `json:"open_events,omitempty"`
	// PerSecond is the present speed in events a second; 0 while it is not known. RemainingMS is how long the rest takes
	// at that speed, in ms.
	PerSecond   float64 `json:"per_second"`
	RemainingMS *int64  `json:"remaining_ms,omitempty"`
	// Error is why it waits or was stopped, RetryAfterMS when it tries again.
	Error        *Error `json:"error,omitempty"`
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty"`
}

// OpenEvent is an event that a follower was sent and may not have.
type OpenEvent struct {
	EventID string      `json:"event_id"`
	Scope   MemoryScope `json:"scope"`
	// Outcome is uncertain (it may have it), lost (it was accepted and never arrived) or refused.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}

// Backfill is how far the filling of another provider has come.
type Backfill struct {
	State FollowerState `json:"state"`
	// Provider and what follows are absent in state none.
	Provider      string        `json:"provider,omitempty"`
	ConditionKind ConditionKind `json:"condition_kind,omitempty"`
	Since         string        `json:"since,omitempty"`
	// EventsPerSecond is the limit that was asked for; 0 means none.
	EventsPerSecond float64          `json:"events_per_second,omitempty"`
	Progress        FollowerProgress `json:"progress"`
	// Remains says after a backfill was thrown away what of it is still in the backend, and why.
	Remains []string `json:"remains,omitempty"`
}

// BackfillEvents brings events of a file to fill another provider from, instead of the archive, in the order in which
// they are to be remembered.
type BackfillEvents struct {
	// First: what was brought before and not used is dropped.
	First  bool          `json:"first,omitempty"`
	Events []MemoryEvent `json:"events"`
}

// BackfillTurn asks for the turn of a backfill: its provider serves as soon as it has every event.
type BackfillTurn struct {
	// AcceptOpen lets it serve although events are open, held back by scopes that are read-only, or dropped: it will not
	// have these.
	AcceptOpen bool `json:"accept_open,omitempty"`
}

// BackfillStop ends a backfill. What it did is kept, and starting it again goes on.
type BackfillStop struct {
	// Discard throws away what it did: the scopes that it filled are reset.
	Discard bool `json:"discard,omitempty"`
}

// BackfillPlan is what a backfill would send: the answer to a dry run. Nothing was sent.
type BackfillPlan struct {
	Provider      string        `json:"provider"`
	ConditionKind ConditionKind `json:"condition_kind"`
	// Events are to be delivered, of so many scopes; LeftOut are not, see FollowerProgress.
	Events  int64 `json:"events"`
	Scopes  int64 `json:"scopes"`
	LeftOut int64 `json:"left_out"`
	// Oldest and Newest are the times of the first and the last event. Absent where there is none.
	Oldest string `json:"oldest,omitempty"`
	Newest string `json:"newest,omitempty"`
	// Tokens are those of the messages' text, counted by Tokenizer.
	Tokens    int64  `json:"tokens"`
	Tokenizer string `json:"tokenizer"`
	// NativeCalls is how many native writes it takes at least: 0 where the module has no backend.
	NativeCalls int64 `json:"native_calls"`
	// Notes say what is not known: model calls that the backend makes by itself.
	Notes []string `json:"notes"`
}

// ShadowList lists the slot's shadows.
type ShadowList struct {
	// Serving is the provider whose answers agents get.
	Serving string   `json:"serving"`
	Shadows []Shadow `json:"shadows"`
}

// Shadow is a provider that gets every write and is asked a share of the retrievals. No agent sees its answers.
type Shadow struct {
	Provider      string        `json:"provider"`
	ConditionKind ConditionKind `json:"condition_kind"`
	State         FollowerState `json:"state"`
	Since         string        `json:"since"`
	// SamplePercent is the share of retrievals that it is asked, RetentionMS how long its answers are kept, in ms.
	SamplePercent int64            `json:"sample_percent"`
	RetentionMS   int64            `json:"retention_ms"`
	Progress      FollowerProgress `json:"progress"`
	// Missed counts retrievals that were to be asked and were not, because the shadow was too slow, since the slot
	// started.
	Missed int64        `json:"missed"`
	Report ShadowReport `json:"report"`
}

// ShadowReport compares the stored answers of a shadow with those of the serving provider. Each figure is over the
// answers that have it; null where none has.
type ShadowReport struct {
	// Answers are stored; Failed of them are errors, Empty of them have no context.
	Answers int64 `json:"answers"`
	Failed  int64 `json:"failed"`
	Empty   int64 `json:"empty"`
	// Errors counts the errors by code.
	Errors map[string]int64 `json:"errors,omitempty"`
	// TokensMean and the others are means over the answers without an error.
	TokensMean        *float64 `json:"tokens_mean,omitempty"`
	ServingTokensMean *float64 `json:"serving_tokens_mean,omitempty"`
	LatencyP50MS      *float64 `json:"latency_p50_ms,omitempty"`
	LatencyP95MS      *float64 `json:"latency_p95_ms,omitempty"`
	ServingP50MS      *float64 `json:"serving_p50_ms,omitempty"`
	ServingP95MS      *float64 `json:"serving_p95_ms,omitempty"`
	// OverlapMean is the mean of ShadowAnswer.Overlap, over so many answers that have one.
	OverlapMean    *float64 `json:"overlap_mean,omitempty"`
	OverlapAnswers int64    `json:"overlap_answers"`
}

// ShadowAnswersRequest asks for stored answers of shadows, newest first.
type ShadowAnswersRequest struct {
	// Provider is one of the shadows; absent means all.
	Provider string `json:"provider,omitempty"`
	// Scope limits them to one person's; absent means all.
	Scope *MemoryScope `json:"scope,omitempty"`
	// Before is next of the page before; absent for the first page.
	Before string `json:"before,omitempty"`
	// Limit is how many answers the page has at most; 0 means 50. At most 500.
	Limit int64 `json:"limit,omitempty"`
}

// ShadowAnswers is a page of stored answers.
type ShadowAnswers struct {
	Answers []ShadowAnswer `json:"answers"`
	// Next goes into before of the following page. Absent on the last page.
	Next string `json:"next,omitempty"`
}

// ShadowAnswer is what a shadow would have answered to a retrieval, beside what the agent got.
type ShadowAnswer struct {
	// At is when the agent had its answer, RFC 3339.
	At       string `json:"at"`
	Provider string `json:"provider"`
	Serving  string `json:"serving"`
	// Query, Scope and SessionID are the request's.
	Query     string      `json:"query"`
	Scope     MemoryScope `json:"scope"`
	SessionID string      `json:"session_id"`
	// ServingContext is what the agent got, with its tokens and how long it took, in ms.
	ServingContext   string  `json:"serving_context"`
	ServingTokens    int64   `json:"serving_tokens"`
	ServingLatencyMS float64 `json:"serving_latency_ms"`
	// FormattedContext is what the shadow answered. Absent together with its figures where Error is set.
	FormattedContext string  `json:"formatted_context,omitempty"`
	Tokens           int64   `json:"tokens"`
	LatencyMS        float64 `json:"latency_ms"`
	Error            *Error  `json:"error,omitempty"`
	// Behind counts the events that the shadow had not got when it was asked.
	Behind int64 `json:"behind"`
	// Both, OnlyServing and OnlyShadow count the source events of the evidence. Overlap is both divided by all three;
	// absent where one of the two names no source events.
	Both        int64    `json:"both"`
	OnlyServing int64    `json:"only_serving"`
	OnlyShadow  int64    `json:"only_shadow"`
	Overlap     *float64 `json:"overlap,omitempty"`
}
