// Command probe_extism is the guest probe as an Extism module.
package main

import (
	"github.com/memhost/memhost/internal/test/testguest/probing"
	"github.com/memhost/memhost/sdk/extism"
)

func main() {}

func init() { probing.Outside = outside }

//go:wasmexport setup_scope
func setupScope() int32 { return extism.Serve(probing.SetUp) }

//go:wasmexport record_event
func recordEvent() int32 { return misbehave(extism.Serve(probing.Record)) }

//go:wasmexport record_events
func recordEvents() int32 { return misbehave(extism.Serve(probing.RecordAll)) }

//go:wasmexport retrieve
func retrieve() int32 { return misbehave(extism.Serve(probing.Answer)) }

//go:wasmexport format_context
func formatContext() int32 { return extism.Serve(probing.Format) }

//go:wasmexport reset_scope
func resetScope() int32 { return extism.Serve(probing.Reset) }

//go:wasmexport health
func healthOf() int32 { return extism.Serve(probing.Health) }

//go:wasmexport readiness
func readiness() int32 { return extism.Serve(probing.Ready) }

//go:wasmexport wait_until_ready
func waitUntilReady() int32 { return extism.Serve(probing.Work) }

//go:wasmexport find_event
func findEvent() int32 { return extism.Serve(probing.Find) }

//go:wasmexport inventory
func inventory() int32 { return extism.Serve(probing.Count) }

//go:wasmexport native_mutation
func nativeMutation() int32 { return extism.Serve(probing.Mutate) }

// misbehave breaks the ABI after the answer, if a command asked for it.
func misbehave(code int32) int32 {
	how := probing.Breach
	probing.Breach = ""
	switch how {
	case "garbage":
		overrun()
	case "zero":
		say("")
	case "notjson":
		say("this is not JSON")
	case "wrongtype":
		say(`["another shape"]`)
	}
	return code
}
