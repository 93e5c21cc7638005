package heap

import (
	"math/bits"
	"unsafe"
)

// An object consists of a header and the requested bytes; its size is a multiple of granule. The header has two words.
// The first is the object's length, with the lowest bit set if it contains no pointers. The second links the list of
// objects that are still to be scanned.
const (
	granule    = 16
	headerSize = 8
	noPointers = 1

	// One word of a bitmap covers perWord granules and has wordSize bytes.
	perWord  = 32
	wordSize = 4

	// smallest is the shortest free run that is kept in the list.
	smallest = 256

	// An object of at least large bytes is cut off the first run with room for it. For smaller objects, the runs of the
	// list become the current run one after the other.
	large = 2048

	// ahead is how much free memory is cleared at a time: one long fill costs less than many short ones.
	ahead = 2048
)

// arena is memory that holds objects one after the other, in the runs that the last collection found free. Two bitmaps
// at its end have a bit for each granule: whether an object starts there, and, during a collection, whether that object
// is in use. Free memory has no bookkeeping, so a collection costs time in proportion to the memory in use, not to the
// memory allocated.
//
// Positions are offsets from base. Offset 0 holds the head of the list of free runs, so no object is there, and 0 ends
// lists.
type arena struct {
	base unsafe.Pointer // a multiple of 16 minus 8, so that the memory after a header is aligned to 16
	size uintptr        // bytes for objects, and the offset of the first bitmap

	// the current run; the others are in the list, each with the offset of the next and its own length
	cursor, limit uintptr
	wild          uintptr // the run after all objects, up to the end, unless it is the current one; 0 for none
	cleared       uintptr // memory from cursor to here is cleared
	began         uintptr // cursor at the start of the current run
	top           uintptr // no object starts at or above it, except those of the current run

	starts, marks uintptr // the bitmaps; marks is zero between collections
	pending       uintptr // list of marked objects that are still to be scanned

	inUse uintptr // bytes in use after the last collection
	taken uintptr // bytes allocated since then, without those of the current run
}

func (a *arena) word(at uintptr) *uint32 { return (*uint32)(unsafe.Add(a.base, at)) }

func (a *arena) get(at uintptr) uintptr { return uintptr(*a.word(at)) }

func (a *arena) set(at, value uintptr) { *a.word(at) = uint32(value) }

func (a *arena) bytes(at, n uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, at)), n)
}

// open initializes the arena from start to end.
func (a *arena) open(start unsafe.Pointer, end uintptr) {
	*a = arena{base: unsafe.Add(start, -uintptr(start)&(granule-1)+granule-headerSize)}
	a.divide(end)
	a.set(0, 0)
	clear(a.bytes(a.size, a.bitmaps()))
	a.top = granule
	a.use(granule, a.size)
}

// divide places the bitmaps below end.
func (a *arena) divide(end uintptr) {
	words := (end - uintptr(a.base)) / (granule*perWord + 2*wordSize)
	a.size = words * granule * perWord
	a.starts, a.marks = a.size, a.size+wordSize*words
}

// bitmaps returns the total length of the bitmaps.
func (a *arena) bitmaps() uintptr { return bitmapBytes(a.size) * 2 }

// bitmapBytes returns the length of a bitmap for n bytes, rounded up to whole words.
func bitmapBytes(n uintptr) uintptr {
	return (n + granule*perWord - 1) / (granule * perWord) * wordSize
}

// extend adds memory up to a new end.
func (a *arena) extend(end uintptr) {
	was, starts := a.size, a.starts
	a.divide(end)
	used := bitmapBytes(was)
	copy(a.bytes(a.starts, used), a.bytes(starts, used))
	clear(a.bytes(a.starts+used, a.bitmaps()-used))
	if a.limit == was {
		a.limit = a.size
	} else if a.wild == 0 {
		a.wild = was
	}
}

// link inserts a run into the list after another, or first.
func (a *arena) link(behind, at, length uintptr) {
	a.set(at, a.get(behind))
	a.set(at+4, length)
	a.set(behind, at)
}

// use makes a free run the current one.
func (a *arena) use(at, end uintptr) {
	a.settle()
	a.taken += a.limit - a.cursor
	a.cursor, a.began, a.cleared, a.limit = at, at, at, end
}

// settle adds what was allocated from the current run to the totals.
func (a *arena) settle() {
	a.top = max(a.top, a.cursor)
	a.taken += a.cursor - a.began
	a.began = a.cursor
}

// take allocates n bytes, which include the header and are a multiple of granule. It returns 0 if there is no room. The
// memory is zeroed except for the header.
func (a *arena) take(n, flag uintptr) uintptr {
	at := a.cursor
	if n > a.limit-at {
		return a.takeFromOtherRun(n, flag)
	}
	end := at + n
	a.cursor = end
	if end > a.cleared {
		to := min(max(end, a.cleared+ahead), a.limit)
		clear(a.bytes(a.cleared, to-a.cleared))
		a.cleared = to
	}
	a.begin(at, n|flag)
	return at
}

// begin writes an object's header and sets its start bit.
func (a *arena) begin(at, head uintptr) {
	a.set(at, head)
	*a.word(a.starts + at/(granule*perWord)*wordSize) |= 1 << (at / granule % perWord)
}

// takeFromOtherRun allocates from another run. A small object tries each run of the list once. Runs that are too short,
// and the rest of the current run, stay unused until the next collection.
func (a *arena) takeFromOtherRun(n, flag uintptr) uintptr {
	if n >= large {
		return a.cut(n, flag)
	}
	for at := a.get(0); at != 0; at = a.get(0) {
		length := a.get(at + 4)
		a.set(0, a.get(at))
		if length >= n {
			a.use(at, at+length)
			return a.take(n, flag)
		}
		a.taken += length
	}
	if a.wild == 0 || a.size-a.wild < n {
		return 0
	}
	a.use(a.wild, a.size)
	a.wild = 0
	return a.take(n, flag)
}

// cut allocates from the beginning of a run.
func (a *arena) cut(n, flag uintptr) uintptr {
	at := a.wild
	switch {
	case at != 0 && a.size-at >= n:
		a.wild += n
		if a.size-a.wild < smallest {
			a.wild = 0
		}
	default:
		before := uintptr(0)
		for at = a.get(0); at != 0 && a.get(at+4) < n; at = a.get(at) {
			before = at
		}
		if at == 0 {
			return 0
		}
		rest := a.get(at+4) - n
		a.set(before, a.get(at))
		if rest >= smallest {
			a.link(before, at+n, rest)
		}
	}
	a.taken += n
	a.top = max(a.top, at+n)
	clear(a.bytes(at, n))
	a.begin(at, n|flag)
	return at
}

// object returns the object that contains a position below top, or 0.
func (a *arena) object(at uintptr) uintptr {
	w := at / (granule * perWord) * wordSize
	word := *a.word(a.starts + w) & (2<<(at/granule%perWord) - 1)
	for word == 0 {
		if w == 0 {
			return 0
		}
		w -= wordSize
		word = *a.word(a.starts + w)
	}
	start := (w/wordSize*perWord + uintptr(bits.Len32(word)) - 1) * granule
	if at-start >= a.get(start)&^noPointers {
		return 0
	}
	return start
}

// mark marks all objects to which n bytes of words point directly; any word may be a pointer. Most words are not, so
// the loop does little more than check that.
func (a *arena) mark(start unsafe.Pointer, n uintptr) {
	const size = unsafe.Sizeof(n)
	base, top := uintptr(a.base), a.top
	// The last object found. Strings that were cut from one text point into the same object, whose start can be far
	// away.
	last, length := uintptr(0), uintptr(0)
	for i := uintptr(0); i+size <= n; i += size {
		// very large for an address below base
		if at := *(*uintptr)(unsafe.Add(start, i)) - base; at < top && at-last >= length {
			if found := a.object(at); found != 0 {
				last, length = found, a.reach(found)
			}
		}
	}
}

// reach marks an object and returns its length.
func (a *arena) reach(at uintptr) uintptr {
	head := a.get(at)
	word, bit := a.word(a.marks+at/(granule*perWord)*wordSize), uint32(1)<<(at/granule%perWord)
	if *word&bit == 0 {
		*word |= bit
		if head&noPointers == 0 {
			a.set(at+4, a.pending)
			a.pending = at
		}
	}
	return head &^ noPointers
}

// follow scans marked objects and marks what they point to, until none is left.
func (a *arena) follow() {
	for a.pending != 0 {
		at := a.pending
		a.pending = a.get(at + 4)
		a.mark(unsafe.Add(a.base, at+headerSize), a.get(at)-headerSize)
	}
}

// sweep frees everything that is not marked.
func (a *arena) sweep() {
	used := bitmapBytes(a.top)
	free, last, inUse := uintptr(granule), uintptr(0), uintptr(0)
	a.set(0, 0)
	for w := uintptr(0); w < used; w += wordSize {
		for word := *a.word(a.marks + w); word != 0; word &= word - 1 {
			at := (w/wordSize*perWord + uintptr(bits.TrailingZeros32(word))) * granule
			if at-free >= smallest {
				a.link(last, free, at-free)
				last = free
			}
			length := a.get(at) &^ noPointers
			free = at + length
			inUse += length
		}
	}
	a.starts, a.marks = a.marks, a.starts
	clear(a.bytes(a.marks, used))
	a.top, a.inUse, a.taken = free, inUse, 0
	a.cursor, a.limit, a.began, a.cleared, a.wild = 0, 0, 0, 0, 0
	if a.size-free >= smallest {
		a.wild = free
	}
}
