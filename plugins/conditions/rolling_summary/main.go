// Package main is the control rolling_summary: Nanobot's memory of two files: MEMORY.md is always rewritten as a whole,
// HISTORY.md is only appended to.
package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
	_ "github.com/memhost/memhost/sdk/gc" // a long history is imported in one operation
)

// plugin serves the operations common to all memories modelled on Nanobot. Type memory has what is specific to this
// one.
var plugin = nanobot.Plugin{Open: open, Types: []string{"message", "long_term", "history"},
	Queries:   "files, status, skill, history or get_history",
	Mutations: "consolidate, write_memory or import_files", History: "history"}

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, plugin.SetupScope) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, plugin.RecordEvent) }

//go:wasmexport record_events
func exportRecordEvents(n uint32) uint64 { return sdk.Serve(n, plugin.RecordEvents) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, plugin.Retrieve) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, plugin.FormatContext) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, plugin.ResetScope) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, plugin.Health) }

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, plugin.Readiness) }

//go:wasmexport wait_until_ready
func exportWaitUntilReady(n uint32) uint64 { return sdk.Serve(n, plugin.WaitUntilReady) }

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, plugin.FindEvent) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, plugin.Forget) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, plugin.Inventory) }

//go:wasmexport native_query
func exportNativeQuery(n uint32) uint64 { return sdk.Serve(n, plugin.NativeQuery) }

//go:wasmexport native_mutation
func exportNativeMutation(n uint32) uint64 { return sdk.Serve(n, plugin.NativeMutation) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, plugin.Provenance) }
