// Package main is the memory plugin cognee: one export for each operation, and what they do in the files beside this
// one, in the order of the exports.
package main

import "github.com/memhost/memhost/sdk"

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

// What follows are capabilities: exporting one is offering it.

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, readiness) }

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, findEvent) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, inventory) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, forget) }
