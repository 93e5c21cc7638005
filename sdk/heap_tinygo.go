//go:build tinygo && !extism

package sdk

import _ "unsafe" // for the name of a function of the runtime

// doublings take a module's memory from the 256 KiB that it starts with to 2 MiB.
const doublings = 3

var entered uint32

// growHeap doubles the heap; it returns false where the host allows no more.
//
//go:linkname growHeap runtime.growHeap
func growHeap() bool

// makeRoom grows the heap when an instance is entered for the second time. TinyGo collects whenever the heap is full, each time looks through all of the
// module's data for pointers, and grows by itself only where little is free after that: with the heap of a start, every second or third retrieval
// collected, for a fifth of the time in the guest. An instance that is entered once, as by a command line, pays nothing.
func makeRoom() {
	if entered < 2 {
		if entered++; entered == 2 {
			for range doublings {
				growHeap()
			}
		}
	}
}
