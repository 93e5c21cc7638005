// Package gc makes a module collect garbage during an operation, not only between operations. Import it in a plugin
// that has an operation which may allocate more than a guest's memory (limits.memory, 128 MiB), for example because it
// reads all of a long history:
//
//	import _ "github.com/memhost/memhost/sdk/gc"
//
// Without it, a module collects only between operations, when everything in use is reachable from globals. Functions
// then need not store their pointers where the collector can find them, which saves a fifth of a module's size and a
// third of the instructions it executes. An operation that exhausts the memory fails with "out of memory".
//
// The import has an effect only in modules built by this repository's toolchain.
package gc
