//go:build tinygo && !gc.custom

package sdk

import _ "unsafe" // to link to a function of the runtime

// enoughBytes is the memory of an instance that is used again: three doublings of its initial memory.
const enoughBytes = 2 << 20

var entered uint32

// growHeap doubles the heap. It returns false if the host allows no more.
//
//go:linkname growHeap runtime.growHeap
func growHeap() bool

// memorySize returns the size of the module's memory in pages of 64 KiB; index must be 0.
//
//export llvm.wasm.memory.size.i32
func memorySize(index int32) int32

// makeRoom grows the heap when an instance is entered for the second time. TinyGo collects whenever the heap is full,
// each time scans all of the module's data for pointers, and grows the heap only if little is free after that. With the
// initial heap, every second or third retrieval collected, which took a fifth of the guest's time. An instance that is
// entered only once, as for a command line, does not pay for it.
func makeRoom() {
	if entered < 2 {
		if entered++; entered == 2 {
			Room(enoughBytes)
		}
	}
}

// Room grows the heap until the module's memory has at least n bytes, before an operation that fills it. Collecting
// again and again would cost more than the operation itself. Beyond 32 MiB the host discards the instance after the
// call.
func Room(bytes int) {
	for int(memorySize(0))<<16 < bytes && growHeap() {
	}
}

// Rest does nothing with TinyGo's own heap.
func Rest() {}
