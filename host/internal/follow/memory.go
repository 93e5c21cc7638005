// Package follow fills additional memories next to the serving one: every recorded event is delivered to them later,
// too, and no agent sees their answers. There are two kinds of followers, which differ only in how they end:
//
//	backfill   is filled from the archive, catches up, and then replaces the serving memory
//	shadow     remains a follower, and gets a share of the retrievals
//
// A follower's queue is the archive. Accepted events are numbered there with the transaction that keeps their receipt;
// the follower stores the number up to which it has handled all of them, so archived events naturally come before live
// ones. If no archive is kept, the same table is a queue, from which an event is removed once every follower has it.
//
// It reads pages of events, delivers the scopes of a page concurrently and each scope's events in order, and stores its
// position after each page. When the process ends within a page, the next one delivers that page again: recording an
// event twice is safe, because a Memory knows what has arrived.
//
// Callers never wait for a follower: it gets events through the store, and retrievals through a queue that drops what
// does not fit.
package follow

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// Memory is what a Follower fills: a provider with its own scopes and ledger. Once it serves or is closed, it has
// nothing outstanding.
type Memory interface {
	// Open makes the memory ready to receive events. It is called before each page, and does nothing once it has
	// succeeded.
	Open(ctx context.Context) error
	// Has reports whether the provider has an operation, such as abi.OpFindEvent.
	Has(op string) bool
	// Scope returns the scope that an event belongs to.
	Scope(event *abi.MemoryEvent) (abi.MemoryScope, error)
	// TestSession reports whether events of a session are not recorded.
	TestSession(session string) bool
	// ReadOnly reports whether the scope of an event is read-only now; for a nil event, whether all scopes are.
	ReadOnly(event *abi.MemoryEvent) (bool, error)
	// Busy reports whether a caller is being served that a delivery would slow down.
	Busy() bool
	// RecordEvents records events of one scope in order, each once.
	RecordEvents(ctx context.Context, events *abi.EventBatch) (*abi.BatchReceipts, error)
	// Reset erases a scope, if the memory has it.
	Reset(ctx context.Context, scope abi.MemoryScope) error
	// Outstanding returns which of the listed events are still open and which other events were lost, and counts the
	// events that the memory is still processing.
	Outstanding(ctx context.Context, listed []report.OpenEvent) (open []report.OpenEvent, unseen int64, err error)
	// Awaited counts, without the listed ones, the events still being processed that were already being processed at
	// the first call. It is called once everything was delivered: while callers record continuously, a memory that
	// processes events later always has new ones.
	Awaited(ctx context.Context, listed []report.OpenEvent) (int64, error)
	// Retrieve repeats at this memory what an agent asked the serving one.
	Retrieve(ctx context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	// TakeTurn lets the memory serve: while nothing is recorded, the Follower delivers the rest (CatchUp) and ends its
	// work (Finish). If that takes too long, served is false and nothing has changed.
	TakeTurn(ctx context.Context) (served bool, err error)
}

// Lost is the outcome of an open event that the memory had accepted but does not have (report.OpenEvent).
const Lost = "lost"
