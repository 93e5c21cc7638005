//go:build wasm

// Command echo_extism is the guest echo as an Extism module, written with go-pdk alone: what it costs is what Extism
// and the host cost.
package main

import pdk "github.com/extism/go-pdk"

func main() {}

func say(text string) int32 {
	pdk.OutputString(text)
	return 0
}

// nativeQuery gives the whole request back.
//
//go:wasmexport native_query
func nativeQuery() int32 {
	answer := append([]byte(`{"name":"echo","result":`), pdk.Input()...)
	pdk.Output(append(answer, '}'))
	return 0
}

//go:wasmexport retrieve
func retrieve() int32 { return say(`{"raw":{"calls":[]},"formatted_context":"","evidence":[]}`) }

//go:wasmexport setup_scope
func setupScope() int32 { return say(`{"ready":true,"native_scope":{}}`) }

//go:wasmexport record_event
func recordEvent() int32 { return say(`{"status":"not_retained","native_ids_kind":"none"}`) }

//go:wasmexport reset_scope
func resetScope() int32 { return say(`{"status":"done"}`) }

//go:wasmexport format_context
func formatContext() int32 { return say(`{"formatted_context":"","token_count":0,"truncated":false}`) }

//go:wasmexport health
func health() int32 {
	return say(`{"status":"ok","backend_name":"echo","consistency_model":"immediate","isolation":"hard","pet_observability":"weak"}`)
}
