//go:build wasm && !extism

package sdk

// instance lives as long as the module's memory.
var instance Memo

func guestHost() Host { return wasmHost{} }

func (wasmHost) Memo() *Memo { return &instance }
