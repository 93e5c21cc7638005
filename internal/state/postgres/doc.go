// Package postgres is a [state.Store] in a PostgreSQL database, for hosts on several machines.
//
// [Migrate] makes the tables, [Open] connects. Each batch is one transaction, and so durable as the server's
// synchronous_commit says. Batches of one space, and of one record with a precondition, go one after another, whichever
// host they come from: they lock the space's row and the record's row, in an order that all batches share. Each read is
// one statement, which sees one moment.
//
// A version is greater than every version that the same space had before. Versions of different spaces come from one
// sequence, so that no two are the same, but batches of different hosts may get theirs in another order than they
// commit.
//
// A record that a batch expects and does not write is locked for sharing: batches that rely on the same record do not
// wait for each other, and one that writes it waits for them.
//
// With [Options].One the store belongs to one host at a time, as a data folder does. A row names the host, which renews
// it every 3 seconds; 15 seconds after the last renewal another host may delete the row and take over. Each commit
// locks the row of its host in its own transaction, so that a host that was paused and lost the row commits nothing
// more, whatever it believes. A host whose renewals fail answers no reads from the moment at which another may have
// taken over. With [Options].Many each host has such a row, the turns of package fleet keep them apart, and a host that
// lost its row begins a new session.
//
// The SQL needs row locks and READ COMMITTED, no advisory locks and no LISTEN.
package postgres
