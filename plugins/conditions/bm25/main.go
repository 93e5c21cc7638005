// Package main is the controls bm25 and hybrid, and recall: every message, ranked by the words that it shares with the
// query, and by vectors if there is an embedder.
package main

import (
	"github.com/memhost/memhost/sdk"
	_ "github.com/memhost/memhost/sdk/gc" // a query reads many blocks of postings
)

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

//go:wasmexport forget
func exportForget(n uint32) uint64 { return sdk.Serve(n, forget) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, inventory) }

//go:wasmexport provenance
func exportProvenance(n uint32) uint64 { return sdk.Serve(n, provenance) }
