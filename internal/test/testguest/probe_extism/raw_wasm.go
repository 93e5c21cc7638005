//go:build wasm

package main

import pdk "github.com/extism/go-pdk"

//go:wasmimport extism:host/user log
func importLog(level int32, text uint64)

//go:wasmimport extism:host/env output_set
func outputSet(offset, length uint64)

// outside calls a host function with a pointer that is no block.
func outside() { importLog(1, 0xffffff00) }

// overrun names an output outside of Extism's memory.
func overrun() { outputSet(0xfffffff0, 1000) }

func say(text string) { pdk.OutputString(text) }
