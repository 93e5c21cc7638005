// Package fleet is what the hosts of one slot agree on besides the content of their [state.Store]: who holds the lock of
// a scope, which hosts live, the slot's mode, and the generation of the provider that serves.
//
// # Everything agreed is a record
//
// What hosts agree on are records of the store that they share, and the store's preconditions make it binding. A batch
// that writes on the strength of a record expects that record as it was read. When it changed, the batch is refused as
// a whole, and the operation begins anew. So there is no leader, no message between hosts that must arrive, and no lock
// that outlives a transaction; a host decides nothing by its clock.
//
//	table    key          value
//	turns    scope's key  session (16 bytes, zero for free) and epoch (8 bytes, big endian)
//	modes    "slot", ...  the host's, as before
//	shared   "serving"    the host's: generation, module and configuration of the provider
//
// # Locks
//
// An operation that writes to a scope begins with [Fleet.Begin], which reads the scope's lock and the facts that the
// operation depends on, and waits while a live host has the lock. It then writes in one of two ways:
//
//   - with [Lock.Once], when it needs one batch in all: a provider without native calls;
//   - else [Lock.Take] in the batch that it commits before its first native call, [Lock.Hold] in every later one, and
//     [Lock.Release] in the last one.
//
// [Lock.Commit] chooses among them.
//
// Each taking raises the epoch, and Hold and Release expect it. A host that was paused and lost its lock therefore
// commits nothing more of that operation. Take and Once also expect the facts: a write that was admitted before the
// mode became read-only, and had not taken its lock by then, is refused; one that had is seen as a held lock by a
// caller that waits for writes under way.
//
//	operation      turns[scope] before     in its batch                 after
//	Once           free, 7                 expect free 7, put free 8    free, 8
//	Take           free, 8                 expect free 8, put A 9       A, 9
//	Hold           A, 9                    expect A 9                   A, 9
//	Release        A, 9                    expect A 9, put free 9       free, 9
//	take-over by B A, 9 and A has ended    expect A 9, put B 10         B, 10
//
// A take-over is [Lock.From] to the host: an event that the ended session had sent to a backend may still arrive there,
// until the longest native deadline and the provider's settling time are over.
//
// # Sessions
//
// A lock names a session, not a host: a host that lost its session never gets the same one again. [Sessions] is the one
// thing that the store cannot be asked by records, since it depends on a clock that all hosts share. When End says that
// a session has ended, it stays ended: the store refuses its commits.
//
// # One host
//
// A store that one process owns needs none of this: with nil Sessions, Begin returns at once, Look reads nothing, and
// the methods of Turn add nothing to a batch. The host's code is the same.
package fleet
