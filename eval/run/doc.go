// Package run runs the cells of an evaluation: one for each provider and replicate, each with its own host, data
// folder, slot and journal, in a run's folder (package rundir).
//
// For each persona, a cell records a session. If probes follow, it runs a test session: wait for readiness, take the
// inventory, make the slot read-only, ask the probes once for each budget, try a write that must be skipped, end the
// read-only mode, take the inventory again. After the next readiness that write must not be found. Nothing is ever
// reset. Each step is journaled before the next starts, so that after kill -9 a cell continues where it was: what is in
// the journal is not repeated, and a write without a line is settled by the slot's own ledger.
//
// Cells take turns, person by person, in an order shuffled for each person (turns.go).
//
// Reading order: run.go (a run and its cells), turns.go (whose turn it is), cell.go (one cell), session.go (a test session), progress.go (what is
// done according to a journal), resume.go (whether memory still has it), plan.go (what a run will cost).
package run
