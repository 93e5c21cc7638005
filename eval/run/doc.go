// Package run runs the cells of an evaluation: one for each provider and replicate, each with a host, a data folder, a
// slot and a journal of its own, in a run's folder (package rundir).
//
// A cell, for each persona: record a session; if probes follow it, hold a test session: wait for readiness, take the
// inventory, make the slot read-only, ask the probes once for each budget, try a write that must be skipped, end the
// read-only mode, take the inventory again. After the next readiness that write must not be found. Nothing is ever
// reset. Each step is a line of the journal before the next begins, so that after kill -9 a cell continues where it
// was: what is in the journal is not asked again, and a write without a line is settled by the slot's own ledger.
//
// Reading order: run.go (a run and its cells), cell.go (one cell), session.go (a test session), progress.go (what a
// journal says is done), resume.go (whether memory still has it), plan.go (what it will cost).
package run
