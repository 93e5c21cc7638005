// Package main is the control layered_memory: Nanobot's sessions, compressed into a history, and SOUL, USER and MEMORY,
// edited by Dream, with versions.
package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
	_ "github.com/memhost/memhost/sdk/gc" // a long history is imported and compressed in one operation
)

// plugin serves the operations common to all memories modelled on Nanobot. Type memory has what is specific to this
// one.
var plugin = nanobot.Plugin{Open: open, Types: []string{"message", "long_term", "history"},
	Queries:   "files, status, skill, dream_log, dream_restore, dream_diff or dream_sessions",
	Mutations: "archive, dream, dream_restore or import_files"}

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
