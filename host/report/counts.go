package report

import "time"

// Counts are what a host has counted since it was made, for metrics.
type Counts struct {
	// Commits are transactions that wrote state. Refused ones met a state other than the one they
	// relied on, and were decided anew. Failed ones met a failure of the store. Neither applied anything. Whether Uncertain
	// ones did is not known.
	Commits, CommitsRefused, CommitsFailed, CommitsUncertain int64
	// TurnWaits is how often a write waited for one of another host to the same scope, TurnWaited how long in all.
	TurnWaits  int64
	TurnWaited time.Duration
	// TakeOvers is how often a scope was taken over from a host that had ended.
	TakeOvers int64
	// LateWrites are native calls that left this host after its session had ended (abi.LateWrite).
	LateWrites int64
	// UncertainEvents is how often the outcome of sending an event was not known.
	UncertainEvents int64
}

// FollowerCounts are what metrics show about the followers of a slot that have one provider and one role.
type FollowerCounts struct {
	// Role is abi.RoleShadow or abi.RoleBackfill.
	Role, Provider string
	// Queue is how many events they have not handled yet, including those that wait because their scope is read-only. Lag is
	// how long ago the oldest of these was recorded.
	Queue int64
	Lag   time.Duration
	// Delivered counts the events that they got since this process began to fill them. Failed counts the deliveries that
	// were refused, did not reach them, or had an unknown outcome.
	Delivered, Failed int64
}

// Store is what metrics show of a host's store. A part that cannot be read is nil.
type Store struct {
	Open        *OpenEvents
	Bytes       *int64 // of the data file, or of the slot's tables with their indexes
	Connections *Connections
}

// OpenEvents are the events whose delivery is not settled.
type OpenEvents struct {
	// Queued ones the backend works on, Pending ones may still arrive, Lost ones did not arrive.
	Queued, Pending, Lost int64
	// Oldest is how long ago the oldest queued or pending one was sent; nil where there are too many to look at.
	Oldest *time.Duration
}

// Connections are those of a host to a database that several hosts may share.
type Connections struct {
	// Used are open, Most are opened at most, Allowed is what the server allows the user over all hosts.
	Used, Most, Allowed int
}
