// Package fleet has what the hosts of one slot agree on besides the content of their [state.Store]: which host holds
// the lock of a scope, which hosts are alive, the slot's mode, and the generation of the provider that serves.
//
// # Everything agreed is a record
//
// Hosts agree through records in the store that they share, and enforce them with the store's preconditions. A batch
// that relies on a record expects its value to be unchanged. If it has changed, the whole batch is rejected, and the
// operation starts over. So there is no leader, no message between hosts that must arrive, and no database lock that
// outlives a transaction; and no decision depends on a host's clock.
//
//	table    key          value
//	turns    scope's key  session (16 bytes, zero for free) and epoch (8 bytes, big endian)
//	modes    "slot", ...  the host's, as before
//	shared   "serving"    the host's: generation, module and configuration of the provider
//
// # Locks
//
// An operation that writes to a scope starts with [Fleet.Begin], which reads the scope's lock and the facts that the
// operation depends on, and waits while a live host has the lock. It then writes in one of two ways:
//
//   - with [Lock.Once], if it needs only one batch: a provider without native calls;
//   - otherwise with [Lock.Take] in the batch that it commits before its first native call, [Lock.Hold] in every later
//     one, and [Lock.Release] in the last one.
//
// [Lock.Commit] chooses among them.
//
// Each Take increases the epoch, and Hold and Release expect it. A host that was paused and lost its lock therefore
// commits nothing more of that operation. Take and Once also expect the facts: a write that was admitted before the
// mode became read-only, but had not taken its lock by then, is rejected; one that had taken it is visible as a held
// lock to a caller that waits for running writes.
//
//	operation      turns[scope] before     in its batch                 after
//	Once           free, 7                 expect free 7, put free 8    free, 8
//	Take           free, 8                 expect free 8, put A 9       A, 9
//	Hold           A, 9                    expect A 9                   A, 9
//	Release        A, 9                    expect A 9, put free 9       free, 9
//	take-over by B A, 9 and A has ended    expect A 9, put B 10         B, 10
//
// After a take-over, [Lock.From] is the ended session: an event that it had sent to a backend may still arrive there,
// until the longest native deadline and the provider's settling time are over.
//
// # Sessions
//
// A lock names a session, not a host: a host that lost its session never gets the same one again. [Sessions] is the
// only part that is not a record, because it depends on a clock that all hosts share. Once End reports that a session
// has ended, it stays ended: the store rejects its commits.
//
// # One host
//
// A store that one process owns needs none of this: with nil Sessions, Begin returns at once, Look reads nothing, and
// the methods of Turn add nothing to a batch. The host's code is the same.
package fleet
