// Package sdk is for plugin authors: it serves the operations of the contract and provides typed calls to the host.
//
// A plugin is package main with one export per operation:
//
//	//go:wasmexport retrieve
//	func retrieve(n uint32) uint64 { return sdk.Serve(n, adapter.Retrieve) }
//
// where adapter.Retrieve is an ordinary function, func(*sdk.Call, *abi.RetrieveRequest) (*abi.RetrieveResult, error).
// Package sdktest runs the same function in a unit test on standard Go.
//
// An operation calls the backend with Call.HTTP or Call.Bolt, and keeps state with Get, Put, Append and the other
// methods of Call. State that it writes is committed together with its answer, or not at all if it returns an error.
// Errors are *abi.Error; return those of a Call unchanged, and use Failure for an error status of the backend.
//
// Keep nothing important in globals: the host starts and stops instances at any time and runs several at once, so a
// global is at most a cache. Do not wait for unfinished work: answer pending, queued or in_progress, and the host calls
// again.
package sdk
