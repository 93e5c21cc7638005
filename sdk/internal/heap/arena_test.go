package heap

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// world is an arena in a buffer, and a program's view of it: variables that point to objects, which point to each
// other.
type world struct {
	arena
	buffer []uint64
	end    uintptr
	// variables are the roots, as words.
	variables []uintptr
	// known are the expected objects, by address.
	known map[uintptr]*object
}

type object struct {
	size     uintptr
	leaf     bool
	pattern  byte
	pointers map[uintptr]uintptr // by offset in the object
}

func newWorld(bytes, first int) *world {
	w := &world{buffer: make([]uint64, bytes/8), known: map[uintptr]*object{}}
	for i := range w.buffer {
		w.buffer[i] = 0xA5A5A5A5A5A5A5A5 // memory is not zero before its first use
	}
	w.end = uintptr(unsafe.Pointer(unsafe.SliceData(w.buffer))) + uintptr(bytes)
	w.open(unsafe.Pointer(unsafe.SliceData(w.buffer)),
		uintptr(unsafe.Pointer(unsafe.SliceData(w.buffer)))+uintptr(first))
	return w
}

func (w *world) collect() {
	w.settle()
	if len(w.variables) > 0 {
		w.mark(unsafe.Pointer(unsafe.SliceData(w.variables)), uintptr(len(w.variables))*unsafe.Sizeof(uintptr(0)))
	}
	w.follow()
	w.sweep()
	reached := w.reached()
	for at := range w.known {
		if !reached[at] {
			delete(w.known, at)
		}
	}
}

// reached returns the objects that the program can still reach.
func (w *world) reached() map[uintptr]bool {
	seen := map[uintptr]bool{}
	var visit func(at uintptr)
	visit = func(at uintptr) {
		if at == 0 || seen[at] {
			return
		}
		seen[at] = true
		for _, to := range w.known[at].pointers {
			visit(to)
		}
	}
	for _, v := range w.variables {
		for at, o := range w.known {
			if v >= at && v < at+o.size { // a pointer into an object keeps it
				visit(at)
			}
		}
	}
	return seen
}

func (w *world) content(at uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(w.base, at-uintptr(w.base))), w.known[at].size)
}

// check requires every reachable object to be unchanged.
func (w *world) check(t require.TestingT) {
	for at := range w.reached() {
		o := w.known[at]
		for i, c := range w.content(at) {
			if _, pointer := o.pointers[uintptr(i)&^7]; !pointer && c != o.pattern {
				require.Failf(t, "overwritten", "byte %d of an object of %d bytes is %#x, want %#x", i, o.size, c,
					o.pattern)
			}
		}
		for offset, to := range o.pointers {
			require.Equal(t, to, *(*uintptr)(unsafe.Add(w.base, at-uintptr(w.base)+offset)))
		}
	}
}

// allocate does what alloc does, in the test's memory.
func (w *world) allocate(t require.TestingT, size uintptr, leaf bool, pattern byte) uintptr {
	n, flag := (size+headerSize+granule-1)&^(granule-1), uintptr(0)
	if leaf {
		flag = noPointers
	}
	place := w.take(n, flag)
	if place == 0 {
		w.collect()
		if place = w.take(n, flag); place == 0 {
			return 0
		}
	}
	at := uintptr(w.base) + place + headerSize
	require.Zero(t, at%16)
	reached := w.reached()
	for other, o := range w.known {
		if reached[other] {
			require.True(t, at >= other+o.size || other >= at+size, "two objects in one place")
		}
	}
	delete(w.known, at)
	for other, o := range w.known { // its memory has been reused
		if at < other+o.size && other < at+size {
			delete(w.known, other)
		}
	}
	w.known[at] = &object{size: size, leaf: leaf, pattern: pattern, pointers: map[uintptr]uintptr{}}
	content := w.content(at)
	require.Equal(t, make([]byte, size), content, "a new object is zero")
	for i := range content {
		content[i] = pattern
	}
	return at
}

func TestObjectsInUseStayAsTheyAreAndOthersAreFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := 64 << 10
		w := newWorld(total, rapid.IntRange(4<<10, total).Draw(t, "first size"))
		w.variables = make([]uintptr, 6)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			slot := rapid.IntRange(0, len(w.variables)-1).Draw(t, "variable")
			switch rapid.SampledFrom([]string{"new", "new", "new", "point", "inner", "forget", "collect", "extend",
				"noise"}).Draw(t, "step") {
			case "new":
				size := uintptr(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 5000)).Draw(t, "size"))
				w.variables[slot] = w.allocate(t, size, rapid.Bool().Draw(t, "leaf"),
					byte(rapid.IntRange(1, 255).Draw(t,
						"pattern")))
			case "point":
				from, to := w.variables[slot], w.variables[rapid.IntRange(0, len(w.variables)-1).Draw(t, "to")]
				o := w.known[from]
				if o == nil || o.leaf || o.size < 8 || w.known[to] == nil {
					continue
				}
				offset := uintptr(rapid.IntRange(0, int(o.size/8)-1).Draw(t, "offset")) * 8
				*(*uintptr)(unsafe.Add(w.base, from-uintptr(w.base)+offset)) = to
				o.pointers[offset] = to
			case "inner":
				if o := w.known[w.variables[slot]]; o != nil {
					w.variables[slot] += uintptr(rapid.IntRange(0, int(o.size)-1).Draw(t, "into"))
				}
			case "forget":
				w.variables[slot] = 0
			case "noise":
				w.variables[slot] = uintptr(w.base) + uintptr(rapid.IntRange(-100, total+100).Draw(t, "anywhere"))
			case "collect":
				w.collect()
				inUse := uintptr(0)
				for at := range w.reached() {
					inUse += (w.known[at].size + headerSize + granule - 1) &^ (granule - 1)
				}
				require.GreaterOrEqual(t, w.inUse, inUse) // a word that happens to point to an object keeps it
			case "extend":
				if end := uintptr(w.base) + w.size + w.bitmaps(); end+4096 < w.end {
					w.extend(end + 4096 + uintptr(rapid.IntRange(0, int(w.end-end-4096)).Draw(t, "by")))
				}
			}
			w.check(t)
		}
	})
}

func TestWhatNothingPointsToIsUsedAgain(t *testing.T) {
	w := newWorld(64<<10, 64<<10)
	w.variables = make([]uintptr, 1)
	for i := range 10_000 { // 20 times the memory
		w.variables[0] = w.allocate(t, uintptr(100+i%7*40), i%2 == 0, 7)
		require.NotZero(t, w.variables[0])
	}
	w.variables[0] = 0
	w.collect()
	assert.Zero(t, w.inUse)
	assert.NotZero(t, w.take(w.size-2*granule, 0), "all of the memory is one run again")
}

func TestAnObjectKeepsWhatItPointsToAndALeafDoesNot(t *testing.T) {
	for _, leaf := range []bool{false, true} {
		w := newWorld(16<<10, 16<<10)
		w.variables = []uintptr{0}
		inner := w.allocate(t, 24, true, 1)
		outer := w.allocate(t, 24, leaf, 2)
		*(*uintptr)(unsafe.Add(w.base, outer-uintptr(w.base)+8)) = inner
		w.known[outer].pointers[8] = inner
		w.variables[0] = outer
		w.settle()
		w.mark(unsafe.Pointer(&w.variables[0]), 8)
		w.follow()
		w.sweep()
		assert.Equal(t, map[bool]uintptr{false: 64, true: 32}[leaf], w.inUse)
	}
}

func TestALongChainIsFollowedWithoutRecursion(t *testing.T) {
	w := newWorld(1<<20, 1<<20)
	w.variables = []uintptr{0}
	const links = 30_000
	last := uintptr(0)
	for range links {
		at := uintptr(w.base) + w.take(32, 0) + headerSize
		*(*uintptr)(unsafe.Add(w.base, at-uintptr(w.base))) = last
		last = at
	}
	w.variables[0] = last
	w.settle()
	w.mark(unsafe.Pointer(&w.variables[0]), 8)
	w.follow()
	w.sweep()
	assert.EqualValues(t, links*32, w.inUse)
}
