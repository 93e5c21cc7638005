// Package state keeps what the host must remember between calls: the glue state of providers (keys and logs of a
// [Space]) and the host's own records (ledger, scopes, modes, in a [Table]).
//
// Most callers need [Open], the reads of [Store], and a [Batch] that they fill and hand to [Store.Commit]:
//
//	store, err := state.Open(dir, state.Options{})
//	...
//	var b state.Batch
//	put := b.Put(space, "cursor", data, state.AnyVersion)
//	b.PutRecord("ledger", eventKey, receipt)
//	result, err := store.Commit(ctx, &b) // both are on disk, or neither
//	version := result.Versions[put]
//
// Reads go by key or by page and each sees one moment; nothing reads and writes inside a transaction of the caller. All
// writing is one atomic batch with preconditions. So a store can be one file ([Bolt], here) or a database that several
// hosts share (package postgres).
//
// Files, in reading order: store.go and batch.go (the contract), options.go, folder.go and slot.go (the data folder),
// bolt.go (reads), commit.go (group commit), apply.go (what a batch does to the file), layout.go (what lies where),
// check.go (is the file sound), errors.go.
package state
