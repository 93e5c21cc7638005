//go:build tinygo && gc.custom

package gc

import (
	_ "unsafe" // for the names of functions of the runtime

	"github.com/memhost/memhost/sdk/internal/heap"
)

func init() { heap.CollectWithin(reachable) }

// reachable marks what is reachable from the stack, where the compiler has every function note its pointers, and from
// globals.
//
//go:linkname reachable runtime.gcMarkReachable
func reachable()

//go:linkname markRoots runtime.markRoots
func markRoots(start, end uintptr) { heap.MarkRoots(start, end) }
