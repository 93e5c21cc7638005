// Package sdk is what a plugin author imports: it serves the operations of the contract and gives typed calls to the
// host.
//
// A plugin is package main with one visible line per operation:
//
//	//go:wasmexport retrieve
//	func retrieve(n uint32) uint64 { return sdk.Serve(n, adapter.Retrieve) }
//
// where adapter.Retrieve is an ordinary function, func(*sdk.Call, *abi.RetrieveRequest) (*abi.RetrieveResult, error).
// The same function runs in a unit test on standard Go, with the host of package sdktest behind the Call.
//
// A guest keeps nothing of importance between calls: instances come and go, several run at once, and a global is at
// most a cache. A guest never waits: unfinished work is answered as pending, queued or in_progress, and the host calls
// again.
package sdk
