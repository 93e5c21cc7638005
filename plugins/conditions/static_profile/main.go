// Package main is the control static_profile: a fixed text about the persona, from the configuration, whatever is
// said or asked.
package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/nothing"
	"github.com/memhost/memhost/sdk"
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
func exportReadiness(n uint32) uint64 { return sdk.Serve(n, nothing.Readiness) }

//go:wasmexport inventory
func exportInventory(n uint32) uint64 { return sdk.Serve(n, nothing.Inventory) }
