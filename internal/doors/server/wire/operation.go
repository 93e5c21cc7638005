package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// Kinds of an OperationLine.
const (
	LineOperation = "operation"
	LineStep      = "step"
	LineMissed    = "missed"
	LineAlive     = "alive"
)

// OperationLine is one line of the stream of operations. It has no text of a user or of memory.
type OperationLine struct {
	// Kind is operation (one ended), step (of a start or a swap), missed (the reader was too slow) or alive (nothing
	// happened for 15 s; also the first line).
	Kind string `json:"kind"`
	// At is when the door wrote it, RFC 3339.
	At string `json:"at"`
	// Operation is the contract's name of the operation that ended.
	Operation string `json:"operation,omitempty"`
	Provider  string `json:"provider,omitempty"`
	// Origin is page for a request from the slot's page.
	Origin string `json:"origin,omitempty"`
	// Code is that of its error; absent for success.
	Code string `json:"code,omitempty"`
	// LatencyMS is how long it took; BackendMS and PluginMS are the parts of the backend and the plugin.
	LatencyMS float64 `json:"latency_ms,omitempty"`
	BackendMS float64 `json:"backend_ms,omitempty"`
	PluginMS  float64 `json:"plugin_ms,omitempty"`
	// IO lists its native calls.
	IO []abi.IO `json:"io,omitempty"`
	// Step is the step that ended.
	Step *report.RunStep `json:"step,omitempty"`
	// Missed counts the lines that were left out here.
	Missed int64 `json:"missed,omitempty"`
}
