// Package postgres is a [state.Store] in a PostgreSQL database, for hosts on several machines.
//
// [Migrate] creates the tables, [Open] connects. Each batch is one transaction, and as durable as the server's
// synchronous_commit makes it. Batches on one space, or on one record with a precondition, run one after another,
// whichever host they come from: they lock the space's row and the record's row, in an order that all batches share.
// Each read is one statement, which sees one snapshot.
//
// A version is greater than every earlier version in the same space. Versions of all spaces come from one sequence, so
// no two are the same, but batches of different hosts may commit in another order than that of their versions.
//
// A record that a batch expects but does not write is locked in shared mode: batches that rely on the same record do
// not wait for each other, and one that writes it waits for them.
//
// With [Options].One the store belongs to one host at a time, like a data folder. A row names the host, which renews it
// every 3 seconds; 15 seconds after the last renewal another host may delete the row and take over. Each commit locks
// the row of its host in its own transaction, so that a host that was paused and lost the row cannot commit any more. A
// host whose renewals fail stops answering reads at the moment when another may have taken over. With [Options].Many
// each host has such a row, the locks of package fleet coordinate them, and a host that lost its row starts a new
// session.
//
// The SQL needs row locks and READ COMMITTED, no advisory locks and no LISTEN.
package postgres
