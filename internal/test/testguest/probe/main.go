// Command probe is a guest that does what the text that it gets tells it. README.md lists the commands.
package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testguest/probing"
	"github.com/memhost/memhost/sdk"
)

func main() {}

func init() { probing.Outside = outside }

//go:wasmexport setup_scope
func setupScope(n uint32) uint64 { return sdk.Serve(n, probing.SetUp) }

//go:wasmexport record_event
func recordEvent(n uint32) uint64 { return misbehave(sdk.Serve(n, probing.Record)) }

//go:wasmexport record_events
func recordEvents(n uint32) uint64 { return misbehave(sdk.Serve(n, probing.RecordAll)) }

//go:wasmexport retrieve
func retrieve(n uint32) uint64 { return misbehave(sdk.Serve(n, probing.Answer)) }

//go:wasmexport format_context
func formatContext(n uint32) uint64 { return sdk.Serve(n, probing.Format) }

//go:wasmexport reset_scope
func resetScope(n uint32) uint64 { return sdk.Serve(n, probing.Reset) }

//go:wasmexport health
func healthOf(n uint32) uint64 { return sdk.Serve(n, probing.Health) }

//go:wasmexport readiness
func readiness(n uint32) uint64 { return sdk.Serve(n, probing.Ready) }

//go:wasmexport wait_until_ready
func waitUntilReady(n uint32) uint64 { return sdk.Serve(n, probing.Work) }

//go:wasmexport find_event
func findEvent(n uint32) uint64 { return sdk.Serve(n, probing.Find) }

//go:wasmexport inventory
func inventory(n uint32) uint64 { return sdk.Serve(n, probing.Count) }

//go:wasmexport native_mutation
func nativeMutation(n uint32) uint64 { return sdk.Serve(n, probing.Mutate) }

// misbehave returns a packed integer that breaks the ABI, if a command asked for it.
func misbehave(packed uint64) uint64 {
	how := probing.Breach
	probing.Breach = ""
	switch how {
	case "garbage":
		return abi.Pack(0xfffffff0, 1000, false)
	case "zero":
		return 0
	case "notjson":
		return packText("this is not JSON")
	case "wrongtype":
		return packText(`["another shape"]`)
	}
	return packed
}
