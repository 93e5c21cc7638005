//go:build tinygo && gc.custom

package sdk

import "github.com/memhost/memhost/sdk/internal/heap"

const (
	// enoughBytes is the memory that an instance gets when it is used again, so that no ordinary operation has to
	// collect.
	enoughBytes = 2 << 20

	// restBytes of garbage are left before they are collected at the end of an operation: several operations' worth,
	// and little enough to stay in a processor's nearest caches.
	restBytes = 256 << 10
)

var entered bool

// makeRoom grows the memory when an instance is entered for the second time. An instance that is entered once, as by a
// command line, does not pay for it.
func makeRoom() {
	if entered {
		Room(enoughBytes)
	}
	entered = true
}

// Rest collects the garbage of past operations if there is enough of it. A server of operations calls it after each
// one, when everything in use is reachable from globals; package sdk does.
func Rest() { heap.Rest(restBytes) }

// Room grows the module's memory to at least that many bytes, for an operation that is about to fill it: what it would
// otherwise spend on growing again and again is more than its own work. Beyond 32 MiB the host throws the instance away
// behind the call.
func Room(bytes int) { heap.Room(bytes) }
