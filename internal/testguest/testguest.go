// Package testguest holds guests for the host's own tests and benchmarks. Probe does what the text that it gets tells it, good or bad; Echo does next to nothing.
package testguest

import _ "embed"

//go:embed probe/probe.wasm
var probe []byte

//go:embed echo/echo.wasm
var echo []byte

// Probe is the module of provider "probe". Its README lists the commands.
func Probe() []byte { return probe }

// Echo is the module of provider "echo": native_query gives back its params as they came, without reading them; retrieve decodes and encodes the contract.
func Echo() []byte { return echo }
