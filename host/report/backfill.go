package report

import "github.com/memhost/memhost/abi"

// Backfill is how far the filling of another provider has come.
type Backfill struct {
	State FollowerState `json:"state"`
	// Provider and what follows are absent in state none.
	Provider      string            `json:"provider,omitempty"`
	ConditionKind abi.ConditionKind `json:"condition_kind,omitempty"`
	Since         string            `json:"since,omitempty"`
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
	First  bool              `json:"first,omitempty"`
	Events []abi.MemoryEvent `json:"events"`
}

// Validate accepts everything: the events are checked when they are stored.
func (*BackfillEvents) Validate() error { return nil }

// BackfillServe lets the provider of a backfill serve, which it does as soon as it has every event.
type BackfillServe struct {
	// AcceptOpen lets it serve although events are open, held back by scopes that are read-only, or dropped: it will not
	// have these.
	AcceptOpen bool `json:"accept_open,omitempty"`
}

// Validate finds nothing wrong: every value is valid.
func (*BackfillServe) Validate() error { return nil }

// BackfillStop ends a backfill. What it did is kept, and starting it again continues it.
type BackfillStop struct {
	// Discard throws away what it did: the scopes that it filled are reset.
	Discard bool `json:"discard,omitempty"`
}

// Validate finds nothing wrong: every value is valid.
func (*BackfillStop) Validate() error { return nil }

// BackfillPlan is what a backfill would send: the answer to a dry run. Nothing was sent.
type BackfillPlan struct {
	Provider      string            `json:"provider"`
	ConditionKind abi.ConditionKind `json:"condition_kind"`
	// Events are to be delivered, of so many scopes; LeftOut are not, see FollowerProgress.
	Events  int64 `json:"events"`
	Scopes  int64 `json:"scopes"`
	LeftOut int64 `json:"left_out"`
	// Oldest and Newest are the times of the first and the last event. Absent if there are none.
	Oldest string `json:"oldest,omitempty"`
	Newest string `json:"newest,omitempty"`
	// Tokens are those of the messages' text, counted by Tokenizer.
	Tokens    int64  `json:"tokens"`
	Tokenizer string `json:"tokenizer"`
	// NativeCalls is the minimum number of native writes that it takes: 0 if the module has no backend.
	NativeCalls int64 `json:"native_calls"`
	// Notes say what is not known: model calls that the backend makes by itself.
	Notes []string `json:"notes"`
}
