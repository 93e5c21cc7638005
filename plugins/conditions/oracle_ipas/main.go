// Package main is the control oracle_ipas: the true values of the preferences, from the configuration, filtered by the
// request's labels and time.
package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/plugins/conditions/internal/nothing"
	"github.com/memhost/memhost/sdk"
)

// control serves the operations that do not show entries.
var control = fixed.Control{Open: open, Memory: "ground_truth", Query: "labels and time", Observability: "strong",
	Empty:   "no_ground_truth: the configuration has no entry at all: every retrieval is empty",
	Missing: noGroundTruth,
	Remains: "the ground truth: it comes from the configuration, not from recorded events"}

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, control.SetupScope) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, control.RecordEvent) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, retrieve) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, formatContext) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, control.ResetScope) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, control.Health) }

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, nothing.Readiness) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, nothing.Inventory) }
