// Package main is the provider honcho: turns of conversation become messages of Honcho's v3 API, and what its deriver
// makes of them becomes a context.
package main

import "github.com/memhost/memhost/sdk"

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, withBackend(setupScope)) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, withBackend(recordEvent)) }

//go:wasmexport record_events
func exportRecordEvents(n uint32) uint64 { return sdk.Serve(n, withBackend(recordEvents)) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, withBackend(retrieve)) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, withBackend(formatContext)) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, withBackend(resetScope)) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, withBackend(health)) }

//go:wasmexport readiness
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, withBackend(readiness)) }

//go:wasmexport find_event
func exportFindEvent(n uint32) uint64 { return sdk.Serve(n, withBackend(findEvent)) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, withBackend(inventory)) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, withBackend(provenance)) }

//go:wasmexport native_query
func exportNativeQuery(n uint32) uint64 { return sdk.Serve(n, withBackend(nativeQuery)) }

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, withBackend(forget)) }

//go:wasmexport native_mutation
func exportNativeMutation(n uint32) uint64 { return sdk.Serve(n, withBackend(nativeMutation)) }
