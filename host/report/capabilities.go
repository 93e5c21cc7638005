package report

import "github.com/memhost/memhost/abi"

// Capabilities lists what the provider behind the slot can do.
type Capabilities struct {
	Provider      string            `json:"provider"`
	ConditionKind abi.ConditionKind `json:"condition_kind"`
	// Operations are exports that every provider has; Capabilities those it may have.
	Operations        []string `json:"operations"`
	Capabilities      []string `json:"capabilities"`
	NativeMemoryTypes []string `json:"native_memory_types"`
	NativeIngestModes []string `json:"native_ingest_modes"`
	// NativeQueryModes name the ways in which the backend can search for a retrieval: semantic, bm25, fast.
	NativeQueryModes []string `json:"native_query_modes"`
	// NativeQueries and NativeMutations are what native_query and native_mutation take with this configuration.
	NativeQueries   []abi.NativeDecl `json:"native_queries,omitempty"`
	NativeMutations []abi.NativeDecl `json:"native_mutations,omitempty"`
}

// KeepsNothing reports whether a provider is a control that keeps nothing of what is recorded: it declares no way to
// take events in, and no kind of memory. All its receipts say not_retained.
func KeepsNothing(c *Capabilities) bool {
	return c.ConditionKind == abi.KindControl && len(c.NativeIngestModes) == 0 && len(c.NativeMemoryTypes) == 0
}
