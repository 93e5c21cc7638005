// Package testguest holds guests for the host's own tests and benchmarks. Probe does what the text that it gets tells
// it, good or bad; Echo does next to nothing. Wrong is what the conformance kit is tested with.
package testguest

import "embed"

//go:embed probe/probe.wasm
var probe []byte

//go:embed echo/echo.wasm
var echo []byte

// Probe is the module of provider "probe". Its README lists the commands.
func Probe() []byte { return probe }

// Echo is the module of provider "echo": native_query gives back its params as they came, without reading them;
// retrieve decodes and encodes the contract.
func Echo() []byte { return echo }

//go:embed */*.wasm
var all embed.FS

// ProbeExtism is the probe as a module for Extism. Nil if it has not been built.
func ProbeExtism() []byte { return built("probe_extism") }

// EchoExtism is the echo as a module for Extism; its retrieve finds nothing. Nil if it has not been built.
func EchoExtism() []byte { return built("echo_extism") }

// Wrong is the module of the providers "wrong" and "wrong_control": right, unless its block names a fault. Nil if it
// has not been built.
func Wrong() []byte { return built("wrong") }

func built(name string) []byte {
	wasm, err := all.ReadFile(name + "/" + name + ".wasm")
	if err != nil {
		return nil
	}
	return wasm
}
