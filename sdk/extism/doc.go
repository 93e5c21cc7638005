// Package extism serves a plugin's operations from a module that is built with Extism's go-pdk. The operations are the
// same functions, with the same sdk.Call, that package sdk serves.
//
// A plugin is package main with one export per operation. The build tag extism leaves out the exports of mh1:
//
//	//go:wasmexport retrieve
//	func exportRetrieve() int32 { return extism.Serve(retrieve) }
//
//	tinygo build -target=wasip1 -buildmode=c-shared -tags=extism -o notes.wasm .
//
// docs/write-a-plugin.md lists the differences from mh1.
package extism
