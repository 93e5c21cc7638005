// Package run walks the cells of an evaluation: one for each provider and replicate, each with a host, a data folder, a
// slot and a journal of its own, in a run's folder (package rundir).
//
// A cell, for each persona: record a session; where probes follow it, hold a test session: wait for readiness, take the
// inventory, raise the wall, ask the probes once for each budget, try a write that must be skipped, lower the wall,
// take the inventory again. After the next readiness that write must not be found. Nothing is ever reset. Each step is
// a line of the journal before the next begins, so that a cell goes on after kill -9 where it was: what is in the
// journal is not asked again, and a write without a line is settled by the slot's own ledger.
//
// Reading order: run.go (a run and its cells), cell.go (one cell), session.go (a test session), progress.go (what a
// journal says is done), resume.go (whether memory still holds it), plan.go (what it will cost).
package run
