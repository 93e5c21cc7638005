//go:build tinygo && gc.custom

package sdk

import "github.com/memhost/memhost/sdk/internal/heap"

const (
	// enoughBytes is the memory of an instance that is used again, so that no ordinary operation has to collect.
	enoughBytes = 2 << 20

	// restBytes is how much garbage may remain before it is collected at the end of an operation: several operations'
	// worth, and little enough to stay in the processor's nearest caches.
	restBytes = 256 << 10
)

var entered bool

// makeRoom grows the memory when an instance is entered for the second time. An instance that is entered only once, as
// for a command line, does not pay for it.
func makeRoom() {
	if entered {
		Room(enoughBytes)
	}
	entered = true
}

// Rest collects the garbage of past operations if there is enough of it. Package sdk calls it after each operation,
// when everything in use is reachable from globals.
func Rest() { heap.Rest(restBytes) }

// Room grows the module's memory to at least n bytes before an operation that fills it. Growing step by step would cost
// more than the operation itself. Beyond 32 MiB the host discards the instance after the call.
func Room(bytes int) { heap.Room(bytes) }
