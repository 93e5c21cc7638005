// Package state stores what the host must keep between calls: the state of providers (keys and logs of a [Space]) and
// the host's own records (ledger, scopes, modes, in a [Table]).
//
// Most callers need [Open], the reads of [Store], and a [Batch] that they fill and pass to [Store.Commit]:
//
//	store, err := state.Open(dir, state.Options{})
//	...
//	var b state.Batch
//	put := b.Put(space, "cursor", data, state.AnyVersion)
//	b.PutRecord("ledger", eventKey, receipt)
//	result, err := store.Commit(ctx, &b) // both are on disk, or neither
//	version := result.Versions[put]
//
// Each read, of a key or a page, sees one consistent snapshot. There are no transactions that callers keep open: every
// write is one atomic batch with preconditions. So a store can be one file ([Bolt], here) or a database that several
// hosts share (package postgres).
//
// Files, in reading order: store.go and batch.go (the contract), options.go, folder.go and slot.go (the data folder),
// bolt.go (reads), commit.go (group commit), apply.go (what a batch does to the file), layout.go (the file's layout),
// check.go (its integrity), errors.go.
package state
