// Package main is the control static_profile: a fixed text about the persona, from the configuration, regardless of
// what is recorded or asked.
package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/fixed"
	"github.com/memhost/memhost/plugins/conditions/internal/nothing"
	"github.com/memhost/memhost/sdk"
)

// control serves the operations that do not show the profile.
var control = fixed.Control{Open: open, Memory: "profile", Query: "fixed", Observability: "weak",
	Empty:   "no_profile: the configuration has no profile at all: every retrieval is empty",
	Missing: noProfile,
	Remains: "the profile: it comes from the configuration, not from recorded events"}

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
