// Package main is the control ledger_memory: an append-only ledger of events, hash-chained commits, and branches.
package main

import (
	"github.com/memhost/memhost/sdk"
	// rebuilding the view of a ledger of 100,000 events reads all of it in one operation
	_ "github.com/memhost/memhost/sdk/gc"
)

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, setupScope) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, recordEvent) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, retrieve) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, formatContext) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, resetScope) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, health) }

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, readiness) }

//go:wasmexport wait_until_ready
func exportWaitUntilReady(n uint32) uint64 { return sdk.Serve(n, waitUntilReady) }

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, findEvent) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, erase) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, inventory) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, provenance) }

//go:wasmexport native_query
func exportNativeQuery(n uint32) uint64 { return sdk.Serve(n, nativeQuery) }

//go:wasmexport native_mutation
func exportNativeMutation(n uint32) uint64 { return sdk.Serve(n, nativeMutation) }
