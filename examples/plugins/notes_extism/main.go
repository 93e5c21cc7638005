// Package main is the memory of package memory as an Extism plugin, built with go-pdk: one export for each operation.
package main

import (
	"github.com/memhost/memhost/examples/plugins/notes/memory"
	"github.com/memhost/memhost/sdk/extism"
)

func main() {}

//go:wasmexport setup_scope
func exportSetupScope() int32 { return extism.Serve(memory.SetupScope) }

//go:wasmexport record_event
func exportRecordEvent() int32 { return extism.Serve(memory.RecordEvent) }

//go:wasmexport retrieve
func exportRetrieve() int32 { return extism.Serve(memory.Retrieve) }

//go:wasmexport format_context
func exportFormatContext() int32 { return extism.Serve(memory.FormatContext) }

//go:wasmexport reset_scope
func exportResetScope() int32 { return extism.Serve(memory.ResetScope) }

//go:wasmexport health
func exportHealth() int32 { return extism.Serve(memory.Health) }
