// Package main is the provider graphiti: a temporal knowledge graph behind Graphiti's REST service, its MCP server or
// memhost's gateway, read over Bolt if that is configured.
package main

import "github.com/memhost/memhost/sdk"

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, setupScope) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, recordEvent) }

//go:wasmexport record_events
func exportRecordEvents(n uint32) uint64 { return sdk.Serve(n, recordEvents) }

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

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, findEvent) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, inventory) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, provenance) }

//go:wasmexport native_query
func exportNativeQuery(n uint32) uint64 { return sdk.Serve(n, nativeQuery) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, forget) }

//go:wasmexport native_mutation
func exportNativeMutation(n uint32) uint64 { return sdk.Serve(n, nativeMutation) }
