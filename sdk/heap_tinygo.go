//go:build tinygo && !gc.custom

package sdk

import _ "unsafe" // for the name of a function of the runtime

// enoughBytes is the memory that an instance gets when it is used again: three doublings of what it starts with.
const enoughBytes = 2 << 20

var entered uint32

// growHeap doubles the heap; it returns false where the host allows no more.
//
//go:linkname growHeap runtime.growHeap
func growHeap() bool

// memorySize is the module's memory in pages of 64 KiB; index is 0.
//
//export llvm.wasm.memory.size.i32
func memorySize(index int32) int32

// makeRoom grows the heap when an instance is entered for the second time. TinyGo collects whenever the heap is full,
// each time looks through all of the module's data for pointers, and grows by itself only where little is free after
// that: with the heap of a start, every second or third retrieval collected, for a fifth of the time in the guest. An
// instance that is entered once, as by a command line, pays nothing.
func makeRoom() {
	if entered < 2 {
		if entered++; entered == 2 {
			Room(enoughBytes)
		}
	}
}

// Room grows the heap until the module's memory has at least that many bytes, for an operation that is about to fill
// it: what it would otherwise spend on collecting again and again is more than its own work. Beyond 32 MiB the host
// throws the instance away behind the call.
func Room(bytes int) {
	for int(memorySize(0))<<16 < bytes && growHeap() {
	}
}

// Rest is for the toolchain's own heap only.
func Rest() {}
