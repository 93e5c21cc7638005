//go:build tinygo && gc.custom

package gc

import (
	_ "unsafe" // to link to functions of the runtime

	"github.com/memhost/memhost/sdk/internal/heap"
)

func init() { heap.CollectWithin(reachable) }

// reachable marks what is reachable from globals and from the stack. The compiler makes every function store its
// pointers on the stack.
//
//go:linkname reachable runtime.gcMarkReachable
func reachable()

//go:linkname markRoots runtime.markRoots
func markRoots(start, end uintptr) { heap.MarkRoots(start, end) }
