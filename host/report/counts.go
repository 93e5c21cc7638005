package report

import "time"

// Counts are what a host has counted since it was created, for metrics.
type Counts struct {
	// Commits are transactions that wrote state. Refused ones found a state other than expected, and their operations
	// decided again. Failed ones met a failure of the store. Neither applied anything. Whether Uncertain ones did is
	// not known.
	Commits, CommitsRefused, CommitsFailed, CommitsUncertain int64
	// TurnWaits is how often a write waited for another host's write to the same scope, TurnWaited how long in total.
	TurnWaits  int64
	TurnWaited time.Duration
	// TakeOvers is how often a scope was taken over from a host that had ended.
	TakeOvers int64
	// LateWrites are native calls that left this host after its session had ended (LateWrite).
	LateWrites int64
	// UncertainEvents is how often the outcome of sending an event was unknown.
	UncertainEvents int64
}

// FollowerCounts are the numbers of a slot's followers with one provider and one role, for metrics.
type FollowerCounts struct {
	// Role is RoleShadow or RoleBackfill.
	Role, Provider string
	// Queue is how many events they have not handled yet, including those that wait because their scope is read-only. Lag is
	// how long ago the oldest of these was recorded.
	Queue int64
	Lag   time.Duration
	// Delivered counts the events that they got since this process began to fill them. Failed counts the deliveries that
	// were refused, did not reach them, or had an unknown outcome.
	Delivered, Failed int64
}

// Store describes a host's store, for metrics. A part that cannot be read is nil.
type Store struct {
	Open        *OpenEvents
	Bytes       *int64 // of the data file, or of the slot's tables and indexes
	Connections *Connections
}

// OpenEvents are the events whose delivery is not settled.
type OpenEvents struct {
	// Queued ones are being processed by the backend, Pending ones may still arrive, Lost ones did not arrive.
	Queued, Pending, Lost int64
	// Oldest is how long ago the oldest queued or pending one was sent; nil if there are too many to check.
	Oldest *time.Duration
}

// Connections are a host's connections to a database that several hosts may share.
type Connections struct {
	// Used is the number of open connections, Max the host's limit, Allowed the server's limit for the user over all
	// hosts.
	Used, Max, Allowed int
}
