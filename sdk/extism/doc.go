// Package extism serves a plugin's operations from a module that is built with Extism's go-pdk. It is the shell; the
// operations are the same functions that package sdk serves, over the same sdk.Call.
//
// A plugin is package main with one visible line per operation, built with the tag extism, which leaves the exports of
// mh1 out:
//
//	//go:wasmexport retrieve
//	func exportRetrieve() int32 { return extism.Serve(retrieve) }
//
//	tinygo build -target=wasip1 -buildmode=c-shared -tags=extism -o notes.wasm .
//
// docs/write-a-plugin.md says what differs from mh1.
package extism
