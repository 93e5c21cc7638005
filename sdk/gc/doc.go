// Package gc makes a module collect garbage in the middle of an operation. It is imported for that effect, by a plugin
// one operation of which may allocate more than a guest's memory holds (limits.memory, 128 MiB), because it goes
// through all of a long history:
//
//	import _ "github.com/memhost/memhost/sdk/gc"
//
// Without it a module collects between operations only, when nothing is in progress and all that is in use hangs on
// globals. Then functions need not note in memory which pointers they hold, which is a fifth of a module's size and a
// third of what it executes. An operation that exhausts the memory is stopped with "out of memory".
//
// It is for modules built by this repository's toolchain. Elsewhere it does nothing.
package gc
