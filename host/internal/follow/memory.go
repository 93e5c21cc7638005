// Package follow fills memories beside the one that serves: every recorded event is delivered to them too, later, and
// no agent sees what they answer. There are two kinds of such followers, which differ only in how they end:
//
//	backfill   is filled from the archive, catches up, and then serves in the other's place
//	shadow     stays, and is asked a share of the retrievals
//
// A follower's queue is the archive. Accepted events are numbered there with the transaction that keeps their receipt;
// the follower keeps the number up to which it has dealt with all of them, and so archived events come before live ones
// by themselves. Where no archive is kept the same table serves as a queue, which is emptied once every follower has an
// event.
//
// It takes pages of events, delivers the scopes of a page side by side and each scope's events in order, and keeps its
// position after each page. When the process ends within a page, the next one delivers that page again: recording an
// event twice is safe, because a Memory knows what has arrived.
//
// Nobody who is served waits for a follower: events reach it by the store, retrievals by a queue that drops.
package follow

import (
	"context"

	"github.com/memhost/memhost/abi"
)

// Memory is what a Follower fills: a provider with scopes and a ledger of its own. Once it serves or is closed, it has
// nothing outstanding.
type Memory interface {
	// Open makes it ready to take events. It is called before each page, and does nothing once it has succeeded.
	Open(ctx context.Context) error
	// Has reports whether it has an operation, such as abi.OpFindEvent.
	Has(op string) bool
	// Scope is where an event belongs.
	Scope(event *abi.MemoryEvent) (abi.MemoryScope, error)
	// TestSession reports whether events of a session are not recorded.
	TestSession(session string) bool
	// ReadOnly reports whether nothing may be recorded now in the scope of an event, or, of nil, in any scope.
	ReadOnly(event *abi.MemoryEvent) (bool, error)
	// Busy reports whether somebody is being served whom a delivery would slow down.
	Busy() bool
	// RecordEvents records events of one scope in order, each once.
	RecordEvents(ctx context.Context, events *abi.EventBatch) (*abi.BatchReceipts, error)
	// Reset erases a scope, if the memory has it.
	Reset(ctx context.Context, scope abi.MemoryScope) error
	// Outstanding returns which of the listed events are still open, together with those of its others that were lost, and
	// how many more it still works on.
	Outstanding(ctx context.Context, listed []abi.OpenEvent) (open []abi.OpenEvent, unseen int64, err error)
	// Awaited counts the events on which it still works of those on which it worked at the first call, without the listed
	// ones. It is called once everything was delivered: where callers record without a pause, a memory that works on its
	// events later always has some that are new.
	Awaited(ctx context.Context, listed []abi.OpenEvent) (int64, error)
	// Retrieve asks it what an agent has asked another memory.
	Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	// TakeTurn lets it serve: while nobody records, the Follower delivers the rest (CatchUp) and ends its work (Finish).
	// Where that takes too long served is false and everything is as before.
	TakeTurn(ctx context.Context) (served bool, err error)
}

// Lost is the outcome of an open event that the memory had accepted and does not have (abi.OpenEvent).
const Lost = "lost"
