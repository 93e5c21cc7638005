// Package fleet is what the hosts of one slot agree on besides the content of their [state.Store]: whose turn a scope
// has, which hosts live, the slot's mode, and the generation of the provider that serves.
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
// # Turns
//
// An operation that writes to a scope begins with [Fleet.Begin], which reads the scope's turn and the facts that the
// operation depends on, and waits while a live host has the turn. It then writes in one of two ways:
//
//   - with [Turn.Once], when it needs one batch in all: a provider without native calls;
//   - else [Turn.Take] in the batch that it commits before its first native call, [Turn.Hold] in every later one, and
//     [Turn.Release] in the last one.
//
// [Turn.Commit] chooses among them.
//
// Each taking raises the epoch, and Hold and Release expect it. A host that was paused and lost its turn therefore
// commits nothing more of that operation. Take and Once also expect the facts: a write that was admitted before the
// mode became read-only, and had not taken its turn by then, is refused; one that had is seen as a held turn by whoever
// waits for writes under way.
//
//	operation      turns[scope] before     in its batch                 after
//	Once           free, 7                 expect free 7, put free 8    free, 8
//	Take           free, 8                 expect free 8, put A 9       A, 9
//	Hold           A, 9                    expect A 9                   A, 9
//	Release        A, 9                    expect A 9, put free 9       free, 9
//	take-over by B A, 9 and A has ended    expect A 9, put B 10         B, 10
//
// A take-over is [Turn.From] to the host: an event that the ended session had sent to a backend may still arrive there,
// until the longest native deadline and the provider's settling time are over.
//
// # Sessions
//
// A turn names a session, not a host: a host that lost its session never gets the same one again. [Sessions] is the one
// thing that the store cannot be asked by records, since it depends on a clock that all hosts share. When End says that
// a session has ended, it has ended for good: the store refuses its commits.
//
// # One host
//
// A store that one process owns needs none of this: with nil Sessions, Begin returns at once, Look reads nothing, and
// the methods of Turn add nothing to a batch. The host's code is the same.
package fleet
