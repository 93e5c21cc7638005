package report

import "github.com/memhost/memhost/abi"

// Roles of a follower: a provider in addition to the serving one that gets every recorded event, and whose answers no
// agent sees.
const (
	// RoleBackfill is filled from the archive, or from given events, and then serves in the other's place.
	RoleBackfill = "backfill"
	// RoleShadow follows the serving provider permanently, and gets a share of the retrievals.
	RoleShadow = "shadow"
)

// RunFollower says in a run manifest which other provider gets what the slot records.
type RunFollower struct {
	// Role is backfill or shadow.
	Role          string            `json:"role"`
	Provider      string            `json:"provider"`
	ConditionKind abi.ConditionKind `json:"condition_kind"`
	Module        RunModule         `json:"module"`
	ConfigHash    string            `json:"config_hash"`
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
	// Dropped counts events that it never gets: without an archive, because more events waited than the host keeps;
	// with one, because the archive's retention ended first.
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
	Error        *abi.Error `json:"error,omitempty"`
	RetryAfterMS *int64     `json:"retry_after_ms,omitempty"`
}

// OpenEvent is an event that a follower was sent and may not have.
type OpenEvent struct {
	EventID string          `json:"event_id"`
	Scope   abi.MemoryScope `json:"scope"`
	// Outcome is uncertain (it may have it), lost (it was accepted and never arrived) or refused.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}
