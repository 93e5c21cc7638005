//go:build tinygo && gc.custom

package heap

import (
	"runtime"
	"unsafe"
)

//go:extern __heap_base
var heapBase [0]byte

const pageSize = 64 << 10

//export llvm.wasm.memory.size.i32
func memorySize(index int32) int32

//export llvm.wasm.memory.grow.i32
func memoryGrow(index, pages int32) int32

//go:linkname findGlobals runtime.findGlobals
func findGlobals(found func(start, end uintptr))

//go:linkname runtimePanic runtime.runtimePanic
func runtimePanic(text string)

var memory arena

//go:linkname initHeap runtime.initHeap
func initHeap() {
	memory.open(unsafe.Pointer(&heapBase), memoryEnd())
}

func memoryEnd() uintptr { return uintptr(memorySize(0)) * pageSize }

// pointerFree reports whether the compiler's layout of an object says that it has no pointers: the lowest bit is set,
// the next five are a length, and all others are zero.
func pointerFree(layout uintptr) bool { return layout&1 != 0 && layout>>6 == 0 }

//go:linkname alloc runtime.alloc
func alloc(size uintptr, layout unsafe.Pointer) unsafe.Pointer {
	at := memory.cursor
	// the fast path of take: the object fits into memory that is already cleared
	if room := memory.cleared - at; room > size && room-size >= headerSize {
		n := (size + headerSize + granule - 1) &^ (granule - 1)
		memory.cursor = at + n
		if pointerFree(uintptr(layout)) {
			n |= noPointers
		}
		object := unsafe.Add(memory.base, at)
		*(*uint32)(object) = uint32(n)
		*memory.word(memory.starts + at/(granule*perWord)*wordSize) |= 1 << (at / granule % perWord)
		return unsafe.Add(object, headerSize)
	}
	return allocSlowly(size, layout)
}

//go:noinline
func allocSlowly(size uintptr, layout unsafe.Pointer) unsafe.Pointer {
	n := (size + headerSize + granule - 1) &^ (granule - 1)
	flag := uintptr(0)
	if pointerFree(uintptr(layout)) {
		flag = noPointers
	}
	for n > size && size < 1<<31 {
		if at := memory.take(n, flag); at != 0 {
			return unsafe.Add(memory.base, at+headerSize)
		}
		if !makeRoom(n) {
			break
		}
	}
	runtimePanic("out of memory")
	return nil
}

// markInOperation marks everything that an operation in progress can reach. It is nil unless the module collects during
// operations.
var markInOperation func()

// CollectWithin allows garbage to be collected during an operation. mark must call MarkRoots for all root memory,
// including what running functions hold; the compiler must have been configured to keep that in memory.
func CollectWithin(mark func()) { markInOperation = mark }

// MarkRoots marks the objects to which reachable memory points.
func MarkRoots(start, end uintptr) { memory.mark(unsafe.Pointer(start), end-start) }

// makeRoom grows the memory. If it may collect, and enough was allocated since the last collection, it collects
// instead.
func makeRoom(n uintptr) bool {
	memory.settle()
	worth := markInOperation != nil && memory.taken >= memory.size/2
	if worth {
		collect(markInOperation)
		if memory.inUse < memory.size/2 && n < memory.size/4 {
			return true
		}
	}
	if grow(n) {
		return true
	}
	if markInOperation == nil || worth || memory.taken == 0 {
		return false
	}
	collect(markInOperation)
	return true
}

// grow doubles the memory, or adds more if n bytes need more. If the host does not allow that, it adds only what n
// bytes need.
func grow(n uintptr) bool {
	pages := int32((n+n/32+2*granule*perWord)/pageSize + 1)
	return add(max(pages, memorySize(0))) || add(pages)
}

func add(pages int32) bool {
	if memoryGrow(0, pages) < 0 {
		return false
	}
	memory.extend(memoryEnd())
	return true
}

// Room grows the memory to n bytes before an operation that fills it.
func Room(bytes int) {
	if more := int32(bytes/pageSize) - memorySize(0); more > 0 {
		add(more)
	}
}

// Rest collects if more than n bytes have been allocated since the last collection. Call it at the end of an operation,
// when everything in use is reachable from globals.
func Rest(after int) {
	memory.settle()
	if memory.taken > uintptr(after) {
		collect(markGlobals)
	}
}

func markGlobals() { findGlobals(MarkRoots) }

// collect frees everything that mark does not reach.
func collect(mark func()) {
	memory.settle()
	mark()
	memory.follow()
	memory.sweep()
}

//go:linkname runtimeGC runtime.GC
func runtimeGC() {
	if markInOperation != nil {
		collect(markInOperation)
	}
}

//go:linkname free runtime.free
func free(unsafe.Pointer) {}

//go:linkname setFinalizer runtime.SetFinalizer
func setFinalizer(any, any) {}

//go:linkname readMemStats runtime.ReadMemStats
func readMemStats(m *runtime.MemStats) {
	memory.settle()
	m.Sys, m.HeapSys = uint64(memoryEnd()), uint64(memory.size)
	m.HeapInuse = uint64(memory.inUse + memory.taken)
	m.HeapAlloc, m.Alloc = m.HeapInuse, m.HeapInuse
}
