// Package main is the memory of package memory as a memhost plugin: one export for each operation.
package main

import (
	"github.com/memhost/memhost/examples/plugins/notes/memory"
	"github.com/memhost/memhost/sdk"
)

func main() {}

//go:wasmexport setup_scope
func exportSetupScope(n uint32) uint64 { return sdk.Serve(n, memory.SetupScope) }

//go:wasmexport record_event
func exportRecordEvent(n uint32) uint64 { return sdk.Serve(n, memory.RecordEvent) }

//go:wasmexport retrieve
func exportRetrieve(n uint32) uint64 { return sdk.Serve(n, memory.Retrieve) }

//go:wasmexport format_context
func exportFormatContext(n uint32) uint64 { return sdk.Serve(n, memory.FormatContext) }

//go:wasmexport reset_scope
func exportResetScope(n uint32) uint64 { return sdk.Serve(n, memory.ResetScope) }

//go:wasmexport health
func exportHealth(n uint32) uint64 { return sdk.Serve(n, memory.Health) }
