//go:build wasm

// Command echo is a guest for benchmarks, written against ABI.md without the sdk: what it costs is what the host costs.
package main

import (
	"unsafe"

	"github.com/memhost/memhost/abi"
)

func main() {}

var (
	request  []byte
	response []byte
)

//go:wasmexport mh_abi_1
func marker() {}

//go:wasmexport mh_buffer
func buffer(size uint32) uint32 {
	if uint32(cap(request)) < size {
		request = make([]byte, size+64)
	}
	return address(request)
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// say answers with bytes that stay where they are.
func say(b []byte) uint64 { return abi.Pack(address(b), uint32(len(b)), false) }

// nativeQuery gives the whole request back: a copy in, a copy within, a copy out.
//
//go:wasmexport native_query
func nativeQuery(n uint32) uint64 {
	response = append(response[:0], `{"name":"echo","result":`...)
	response = append(append(response, request[:n]...), '}')
	return say(response)
}

// retrieve decodes the contract and encodes it.
//
//go:wasmexport retrieve
func retrieve(n uint32) uint64 {
	var e abi.Envelope
	var r abi.RetrieveRequest
	if abi.Unmarshal(request[:n], &e) != nil || abi.Unmarshal(e.Body, &r) != nil {
		return 0
	}
	response = abi.AppendJSON(response[:0], &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{{Route: "echo",
		Body: e.Body}}}})
	return say(response)
}

var (
	setupAnswer  = []byte(`{"ready":true,"native_scope":{}}`)
	recordAnswer = []byte(`{"status":"not_retained","native_ids_kind":"none"}`)
	resetAnswer  = []byte(`{"status":"done"}`)
	formatAnswer = []byte(`{"formatted_context":"","token_count":0,"truncated":false}`)
	healthAnswer = []byte(`{"status":"ok","backend_name":"echo","consistency_model":"immediate","isolation":"hard","pet_observability":"weak"}`)
)

//go:wasmexport setup_scope
func setupScope(uint32) uint64 { return say(setupAnswer) }

//go:wasmexport record_event
func recordEvent(uint32) uint64 { return say(recordAnswer) }

//go:wasmexport reset_scope
func resetScope(uint32) uint64 { return say(resetAnswer) }

//go:wasmexport format_context
func formatContext(uint32) uint64 { return say(formatAnswer) }

//go:wasmexport health
func health(uint32) uint64 { return say(healthAnswer) }
