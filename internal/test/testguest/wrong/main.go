// Package main is a guest in front of examples/tiny: a correct provider, unless its configuration names a fault.
// The conformance kit is tested with it: each fault must be found, at its clause and nowhere else.
package main

import "github.com/memhost/memhost/sdk"

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, setUp) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, record) }

//go:wasmexport record_events
func exportRecordEvents(n uint32) uint64 { return sdk.Serve(n, recordAll) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, retrieve) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, formatContext) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, reset) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, health) }

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, readiness) }

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, findEvent) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, forget) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, inventory) }

//go:wasmexport native_query
func exportNativeQuery(n uint32) uint64 { return sdk.Serve(n, query) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, provenance) }
